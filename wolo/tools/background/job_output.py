"""The output of a background job, and the patterns that its lines are matched with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wolo.errors import ToolError
from wolo.guard.secrets.redactor import Secrets
from wolo.operating_system import os
from wolo.tools.clipping import clean
from wolo.workspace.processes.output_capture import CapturedOutput

MAX_FILE_BYTES = 32 * 1024 * 1024
_NEWS_BYTES = 256 * 1024
"""Bytes saved from each end of unread output."""
_NEWEST_BYTES = 16 * 1024
_LONGEST_LINE_BYTES = 64 * 1024
"""An unfinished line beyond this length is passed on in pieces."""


class JobOutput:
    """Output of one job: all of it in a file up to a limit, and the unread part in memory. Whole lines are passed on; reading
    includes an unfinished line."""

    def __init__(self, path: Path, secrets: Secrets) -> None:
        """Raises OSError when the file cannot be created."""
        self.path, self._secrets = path, secrets
        self.size_bytes = 0
        self.newest = b""
        """The last lines, whether they were read or not."""
        self.listeners: list[Callable[[bytes], None]] = []
        """Called with new lines, and with the unfinished one at each change; secrets are redacted. Must not raise."""
        self.watchers: list[Callable[[bytes], None]] = []
        """Called with what is complete: never with the same text twice. Must not raise."""
        self._unread = CapturedOutput(_NEWS_BYTES)
        self._line = bytearray()
        self._kept_bytes = 0
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def add(self, chunk: bytes) -> None:
        self._line += chunk
        whole = self._line.rfind(b"\n") + 1
        if not whole and len(self._line) > _LONGEST_LINE_BYTES:
            whole = len(self._line)
        if whole:
            self._pass_on(whole)
        if self._line and self.listeners:
            self._notify(self._unfinished_line())

    def peek(self) -> bytes:
        """Returns unread output with the unfinished line, and leaves it unread."""
        head, tail = self._unread.peek()
        return head + (b"\n" if tail else b"") + tail + self._unfinished_line()

    def _unfinished_line(self) -> bytes:
        """Without an end that may be part of a secret."""
        text = self._secrets.hide_data(b"".join(clean(bytes(self._line))))
        return text[: len(text) - self._secrets.count_unfinished(text)]

    def _notify(self, text: bytes) -> None:
        for listener in self.listeners:
            listener(text)

    @property
    def has_unread(self) -> bool:
        return self._unread.size_bytes > 0 or bool(self._line)

    def read_new(self) -> bytes:
        """Returns output since the last read; the middle is omitted when it is long."""
        self._pass_on(len(self._line))
        unread, self._unread = self._unread, CapturedOutput(_NEWS_BYTES)
        head, tail = unread.take()
        note = f"\n[… {unread.omitted_bytes:,} bytes left out …]\n".encode() if unread.omitted_bytes else b""
        return head + note + tail

    def close(self) -> None:
        """Completes the file and notes in it what is missing."""
        if self._fd < 0:
            return
        self._pass_on(len(self._line), is_last=True)
        if self.size_bytes > self._kept_bytes:
            self._write(f"\n[… {self.size_bytes - self._kept_bytes:,} bytes were not saved; their end follows: …]\n".encode())
            self._write(self.newest[-(self.size_bytes - self._kept_bytes) :])
        os.close(self._fd)
        self._fd = -1

    def remove(self) -> None:
        self.close()
        with suppress(OSError):
            self.path.unlink()

    @property
    def room_bytes(self) -> int:
        return MAX_FILE_BYTES - self._kept_bytes

    def _pass_on(self, size: int, *, is_last: bool = False) -> None:
        """Holds back text that may be part of a secret, until more output, the end of its line, or the end of the job."""
        text = self._secrets.hide_data(b"".join(clean(bytes(self._line[:size]))))
        held = 0 if is_last or text.endswith(b"\n") else self._secrets.count_unfinished(text)
        self._line[:size] = text[len(text) - held :]
        text = text[: len(text) - held]
        self.size_bytes += len(text)
        self._unread.add(text)
        self._notify(text)
        for watcher in self.watchers:
            watcher(text)
        self.newest = (self.newest + text[-_NEWEST_BYTES:])[-_NEWEST_BYTES:]
        if kept := text[: self.room_bytes]:
            self._write(kept)
            self._kept_bytes += len(kept)

    def _write(self, text: bytes) -> None:
        """A full disk affects the file only, not the job."""
        with suppress(OSError):
            while text:
                text = text[os.write(self._fd, text) :]


Alternatives = tuple[tuple[str, ...], ...]
"""Each is pieces of text that a line holds in this order."""
_MOST_PATTERN_CHARS = 1000


def read_pattern(pattern: str) -> Alternatives:
    """Text, `|` between alternatives, `.*` for any characters: matched in linear time, whatever is printed. Raises ToolError."""
    if not pattern or len(pattern) > _MOST_PATTERN_CHARS:
        raise ToolError(f"`pattern` has 1 to {_MOST_PATTERN_CHARS:,} characters.")
    alternatives, piece, rest = [[""]], "", pattern
    while rest:
        if rest.startswith(".*"):
            alternatives[-1].append("")
            rest = rest[2:]
            continue
        piece, rest = rest[0], rest[1:]
        if piece == "|":
            alternatives.append([""])
            continue
        if piece in "[]()+*?^${}" or (piece == "\\" and (not rest or rest[0].isalnum())):
            raise ToolError(
                "`pattern` is text; `|` separates alternatives, `.*` is anything; put a backslash before []()+*?^${}."
            )
        if piece == "\\":
            piece, rest = rest[0], rest[1:]
        alternatives[-1][-1] += piece
    if not all(any(pieces) for pieces in alternatives):
        raise ToolError("An alternative of `pattern` is empty, so every line would match.")
    return tuple(map(tuple, alternatives))


def find_line(alternatives: Alternatives, text: str) -> str | None:
    """Returns the first line that holds the pieces of an alternative."""
    return next((line for line in text.splitlines() if any(_holds(line, pieces) for pieces in alternatives)), None)


def _holds(line: str, pieces: tuple[str, ...]) -> bool:
    at = 0
    for piece in pieces:
        if (start := line.find(piece, at)) < 0:
            return False
        at = start + len(piece)
    return True


_MOST_MATCHES = 20
"""Of one delivery to the model."""
_MATCH_CHARS = 300


class LineWatch:
    """Collects the whole lines of a job that match a pattern, until the model gets them."""

    def __init__(self, alternatives: Alternatives, on_match: Callable[[], None] = lambda: None) -> None:
        """`on_match` must not raise."""
        self._alternatives, self._on_match = alternatives, on_match
        self._line = b""
        self._matches: list[str] = []
        self._num_more = 0

    def add(self, text: bytes) -> None:
        """Takes output without secrets. Must not raise."""
        *lines, self._line = (self._line + text).split(b"\n")
        self._line = self._line[-_LONGEST_LINE_BYTES:]
        for line in lines:
            self._check(line)

    def end(self) -> None:
        """The job has ended, and with it an unfinished line."""
        line, self._line = self._line, b""
        if line:
            self._check(line)

    @property
    def has_matches(self) -> bool:
        return bool(self._matches)

    def take(self) -> list[str]:
        """Returns the lines that matched since the last call."""
        matches, self._matches = self._matches, []
        more, self._num_more = self._num_more, 0
        return [*matches, f"… and {more:,} more lines that match"] if more else matches

    def _check(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        if find_line(self._alternatives, text) is None:
            return
        if len(self._matches) < _MOST_MATCHES:
            self._matches.append(text if len(text) <= _MATCH_CHARS else f"{text[:_MATCH_CHARS]}…")
        else:
            self._num_more += 1
        self._on_match()
