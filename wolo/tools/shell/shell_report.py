"""What the shell says when a command has come to its end: where that led, and whether it leaves something running."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

_LOWEST_FD = 200
"""Where the shell reports its directory: beyond the numbers that scripts use for themselves."""
_SCRIPT = "trap '{{ set +x; }} 2>/dev/null; {{ command jobs -pr || :; command pwd -P; }} >/dev/fd/{fd} 2>/dev/null' EXIT; "
"""At the very end: what is left running, a number a line, and the directory."""


class LastWord(Struct, frozen=True):
    fd: int
    """Where the shell writes."""
    _reading: int

    @property
    def script(self) -> str:
        """What the shell runs first."""
        return _SCRIPT.format(fd=self.fd)

    def read(self) -> tuple[Path | None, bool]:
        """Where the command led, and whether it left something running."""
        with contextlib.suppress(BlockingIOError):
            numbers, slash, rest = os.read(self._reading, 65536).partition(b"/")
            path = Path(os.fsdecode((slash + rest).removesuffix(b"\n")))
            return (path if path.is_absolute() and path.is_dir() else None), bool(numbers.strip())
        return None, False


@contextlib.contextmanager
def last_word() -> Iterator[LastWord]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        high = fcntl.fcntl(writing, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD)
    finally:
        os.close(writing)
    try:
        yield LastWord(high, reading)
    finally:
        os.close(high)
        os.close(reading)
