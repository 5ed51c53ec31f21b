"""Placeholders: a name that is missing can be kept from coming into being only where something stands to be covered.

Each is an empty directory or file of wolo's own making, there only while commands run. What was made is written down first,
under a lock that all wolos at the same directories share, so that the last one to leave, or the next one to come after a
crash, takes it away again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path


class Placeholders:
    """Of one writable directory. `hold` and `take_away` may be called by several commands at once, from one thread."""

    def __init__(self, state: Path, root: str) -> None:
        self._record = state / "placeholders" / sha256(os.fsencode(root)).hexdigest()[:24]
        self._fd = -1
        self._users = 0

    def hold(self) -> None:
        """From now on nobody takes away what stands here. Raises OSError."""
        if self._fd < 0:
            self._record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(self._record, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_SH)
        self._users += 1

    def put(self, folders: Iterable[str], files: Iterable[str]) -> None:
        """Raises OSError where one cannot be made; what was made by then goes with `take_away`."""
        for path in folders:
            self._note(path)
            with suppress(FileExistsError):
                os.mkdir(path, 0o755)  # noqa: PTH102  # a string is what the kernel wants, and this is done for every command
        for path in files:
            self._note(path)
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))

    def take_away(self) -> None:
        """Call it once for every `hold`. Must not raise."""
        self._users -= 1
        if self._users > 0 or self._fd < 0:
            return
        with suppress(OSError):
            sweep(self._fd)
        os.close(self._fd)
        self._fd = -1

    def _note(self, path: str) -> None:
        os.write(self._fd, os.fsencode(path) + b"\0")


def sweep(record: int) -> None:
    """Removes what the record names and is still empty, unless another wolo has commands there: then that one will.

    Raises OSError then.
    """
    fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for path in os.pread(record, os.fstat(record).st_size, 0).split(b"\0")[:-1]:
        with suppress(OSError):
            if not os.path.isdir(path) or os.path.islink(path):  # noqa: PTH112, PTH114  # names are bytes here
                _remove_empty_file(path)
            else:
                os.rmdir(path)  # noqa: PTH106
    os.ftruncate(record, 0)


def _remove_empty_file(path: bytes) -> None:
    status = os.lstat(path)
    if status.st_size == 0 and status.st_mode & 0o170000 == 0o100000:
        os.unlink(path)  # noqa: PTH108
