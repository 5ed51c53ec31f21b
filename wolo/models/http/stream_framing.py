"""Splits a byte stream into payloads: server-sent events (SSE), or one JSON document per line."""

from __future__ import annotations

from wolo.errors import BadAnswer

MEBIBYTE = 1024 * 1024
LARGEST_EVENT_BYTES = 32 * MEBIBYTE
"""Large enough for a whole file in one tool call; larger events are errors."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseSplitter:
    """Returns the `data` of each completed event, in order.

    Works on bytes, so split characters and separators such as U+2028 need no care. Comments and other fields (`event`, `id`,
    `retry`) are ignored.
    """

    def __init__(self, largest_event_bytes: int = LARGEST_EVENT_BYTES) -> None:
        self._limit_bytes = largest_event_bytes
        self._size_bytes = 0
        self._line: list[bytes] = []
        """Pieces of the incomplete line, joined once for linear time."""
        self._data: list[bytes] = []
        """Data lines of the incomplete event."""
        self._after_return = False
        """The last byte was a CR, so a following LF belongs to it."""
        self._start: bytes | None = b""
        """First bytes, until a byte order mark is ruled out."""

    def feed(self, received: bytes) -> list[bytes]:
        if self._start is not None:
            start = self._start + received
            if len(start) < len(BYTE_ORDER_MARK) and BYTE_ORDER_MARK.startswith(start):
                self._start = start
                return []
            self._start, received = None, start.removeprefix(BYTE_ORDER_MARK)
        if self._after_return or b"\r" in received:
            received = received.removeprefix(b"\n") if self._after_return else received
            self._after_return = received.endswith(b"\r")
            received = received.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines, line_feed, rest = received.rpartition(b"\n")
        payloads: list[bytes] = []
        if line_feed:
            if self._line:
                lines = b"".join((*self._line, lines))
                self._line = []
            payloads = self._read(lines.split(b"\n"))
        if rest:
            self._line.append(rest)
        is_pending = bool(self._line or self._data)
        self._size_bytes = len(received) + (0 if payloads else self._size_bytes) if is_pending else 0
        if self._size_bytes > self._limit_bytes:
            raise BadAnswer(
                f"The provider sent one event of more than {self._limit_bytes // MEBIBYTE} MiB; reading was stopped.",
                hint="Ask for the work in smaller pieces, or check what answers at this address.",
            )
        return payloads

    def end(self) -> list[bytes]:
        """End of stream. Emits an event without its blank line, which some servers omit."""
        return self._read([b"".join(self._line), b""])

    def _read(self, lines: list[bytes]) -> list[bytes]:
        data = self._data
        if not data and (plain := _read_single_lines(lines)):
            return plain
        payloads = []
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line:
                if data:
                    payloads.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
            elif line == b"data":
                data.append(b"")
        return payloads


def _read_single_lines(lines: list[bytes]) -> list[bytes]:
    """The usual case in one pass: every event is one line of data. Empty for anything else."""
    if len(lines) % 2 or any(lines[1::2]):
        return []
    payloads = [line[6:] for line in lines[::2] if line.startswith(b"data: ")]
    return payloads if len(payloads) * 2 == len(lines) else []


class LineSplitter:
    """Returns each completed line, in order.

    Works on bytes, so split characters and separators such as U+2028 need no care. A body whose first line is a lone brace is
    one document over many lines, returned at the end.
    """

    def __init__(self, largest_line_bytes: int = LARGEST_EVENT_BYTES) -> None:
        self._limit_bytes = largest_line_bytes
        self._size_bytes = 0
        self._held: list[bytes] = []
        """Pieces of the incomplete line, joined once for linear time."""
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
        payloads = _payloads_in(lines)
        if self._is_first and payloads:
            self._is_first = False
            if payloads[0] == b"{":
                self._is_document = True
                self._hold(lines + b"\n" + rest)
                return []
        if rest:
            self._hold(rest)
        return payloads

    def end(self) -> list[bytes]:
        """End of stream; the last line needs no line end."""
        rest = b"".join(self._held)
        self._held = []
        return [rest.strip().removeprefix(BYTE_ORDER_MARK)] if self._is_document else _payloads_in(rest)

    def _hold(self, piece: bytes) -> None:
        self._held.append(piece)
        self._size_bytes += len(piece)
        if self._size_bytes > self._limit_bytes:
            raise BadAnswer(
                f"The provider sent one line of more than {self._limit_bytes // MEBIBYTE} MiB; reading was stopped.",
                hint="Ask for the work in smaller pieces, or check what answers at this address.",
            )


def _payloads_in(lines: bytes) -> list[bytes]:
    return [line for each in lines.split(b"\n") if (line := each.strip().removeprefix(BYTE_ORDER_MARK))]
