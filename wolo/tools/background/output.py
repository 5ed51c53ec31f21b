"""What a job prints: all of it in a file up to a bound, and in memory what is new since the last look."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wolo.tools.background.clipping import clean
from wolo.workspace.processes.output_capture import Printed

MAX_FILE_BYTES = 32 * 1024 * 1024
_NEWS_BYTES = 256 * 1024
"""Kept of each end of what is new."""
_NEWEST_BYTES = 16 * 1024
_LONGEST_LINE_BYTES = 64 * 1024
"""A line that does not end is passed on in pieces."""


class Spool:
    """Text, made fit to read. Ends of lines decide when something is passed on; a look takes the line under way, too."""

    def __init__(self, path: Path, hide: Callable[[bytes], bytes], held: Callable[[bytes], int] = lambda text: 0) -> None:
        """`hide` takes secrets out of a text; `held` tells how much of its end may be the beginning of one.

        Raises OSError where there can be no such file.
        """
        self.path = path
        self._hide = hide
        self._held = held
        self.size_bytes = 0
        self.newest = b""
        """Its last lines, also when they were looked at."""
        self._unread = Printed(_NEWS_BYTES)
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

    @property
    def has_news(self) -> bool:
        return self._unread.size_bytes > 0 or bool(self._line)

    def look(self) -> bytes:
        """What has come since the last look, both ends of it when it was much."""
        self._pass_on(len(self._line))
        unread, self._unread = self._unread, Printed(_NEWS_BYTES)
        head, tail = unread.take()
        note = f"\n[… {unread.omitted_bytes:,} bytes left out …]\n".encode() if unread.omitted_bytes else b""
        return head + note + tail

    def close(self) -> None:
        """All has come. What the file lacks is said in it."""
        if self._fd < 0:
            return
        self._pass_on(len(self._line), is_last=True)
        if self.size_bytes > self._kept_bytes:
            self._write(f"\n[… {self.size_bytes - self._kept_bytes:,} bytes were not kept; this is their end: …]\n".encode())
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
        """What may be half of a secret waits for the rest, unless no more comes or its line has ended."""
        text = self._hide(b"".join(clean(bytes(self._line[:size]))))
        held = 0 if is_last or text.endswith(b"\n") else self._held(text)
        self._line[:size] = text[len(text) - held :]
        text = text[: len(text) - held]
        self.size_bytes += len(text)
        self._unread.add(text)
        self.newest = (self.newest + text[-_NEWEST_BYTES:])[-_NEWEST_BYTES:]
        if kept := text[: self.room_bytes]:
            self._write(kept)
            self._kept_bytes += len(kept)

    def _write(self, text: bytes) -> None:
        """A disk that is full costs the file, not the job."""
        with suppress(OSError):
            while text:
                text = text[os.write(self._fd, text) :]
