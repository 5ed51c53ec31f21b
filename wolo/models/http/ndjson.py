"""A stream of JSON documents, one a line: the bytes, however they are cut, become the lines that hold something."""

from __future__ import annotations

from wolo.errors import BadAnswer
from wolo.models.http.sse import BYTE_ORDER_MARK, LARGEST_EVENT_BYTES, MEBIBYTE


class LineSplitter:
    """Feed it what was received; it returns every line that is now complete, in order.

    Works on bytes: a character cut in two, or a separator such as U+2028 inside a JSON string, is nothing special. A body whose
    first line is nothing but a brace is one document, written over many lines: that comes as one, at the end.
    """

    def __init__(self, largest_line_bytes: int = LARGEST_EVENT_BYTES) -> None:
        self._limit_bytes = largest_line_bytes
        self._size_bytes = 0
        self._held: list[bytes] = []
        """Pieces of the line that has no end yet; joined once, so that a long line costs linear time."""
        self._is_first = True
        self._is_document = False

    def feed(self, received: bytes) -> list[bytes]:
        lines, line_feed, rest = received.rpartition(b"\n")
        if not line_feed or self._is_document:
            self._hold(received)
            return []
        if self._held:
            lines = b"".join((*self._held, lines))
            self._held, self._size_bytes = [], 0
        found = _filled(lines)
        if self._is_first and found:
            self._is_first = False
            if found[0] == b"{":
                self._is_document = True
                self._hold(lines + b"\n" + rest)
                return []
        if rest:
            self._hold(rest)
        return found

    def end(self) -> list[bytes]:
        """The stream is over: the last line needs no line end."""
        rest = b"".join(self._held)
        self._held = []
        return [rest.strip().removeprefix(BYTE_ORDER_MARK)] if self._is_document else _filled(rest)

    def _hold(self, piece: bytes) -> None:
        self._held.append(piece)
        self._size_bytes += len(piece)
        if self._size_bytes > self._limit_bytes:
            raise BadAnswer(
                f"The provider sent one line of more than {self._limit_bytes // MEBIBYTE} MiB; reading was stopped.",
                hint="Ask for the work in smaller pieces, or check what answers at this address.",
            )


def _filled(lines: bytes) -> list[bytes]:
    return [line for each in lines.split(b"\n") if (line := each.strip().removeprefix(BYTE_ORDER_MARK))]
