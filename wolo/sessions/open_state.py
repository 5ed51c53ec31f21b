"""Who has the database open, and whether the last one closed it properly: a small file that says so, and a lock on it.

Everyone who has the database open shares the lock. Whoever gets it alone, while opening or closing, knows that nobody else
is there: only then the file is checked, set aside or called closed.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from wolo.sessions.locks import open_lock_file, try_lock

_OPEN, _DAMAGED = "open", "damaged"
_LIMIT_BYTES = 100


class Use:
    """One opener's share. Made and released under the database's own lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        note = note_path(path)
        self._descriptor = open_lock_file(note)
        try:
            self.is_alone = try_lock(self._descriptor, note)
            said = self._read()
            log = path.with_name(f"{path.name}-wal")
            logged_bytes = log.stat().st_size if log.exists() else None
            self.is_doubtful = self.is_alone and (bool(logged_bytes) or said != _stamp(path))
            """It was not closed properly, or changed since: it is to be checked."""
            self.was_here = bool(said)
            """There was a database before."""
            self.has_lost_its_log = self.is_alone and said == _OPEN and logged_bytes is None
            """What stood in the log, and was not copied from it yet, is gone."""
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
        except BaseException:
            os.close(self._descriptor)
            raise

    def take_alone(self) -> bool:
        """Whether nobody else has it open; then nobody can until `share`. Under the database's own lock."""
        if try_lock(self._descriptor, self._path):
            self.is_alone = True
            return True
        self.share()
        return False

    def share(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def opened(self) -> None:
        """Once the log is there: from now on a process that ends without a word leaves a database to be checked."""
        if self.is_alone:
            self._write(_OPEN)

    def doubt(self) -> None:
        """The next one to open it alone is to check it."""
        self._write(_DAMAGED)

    def closed(self) -> None:
        """Everything is in the database itself, whose file does not change any more."""
        if self._read() == _OPEN and try_lock(self._descriptor, self._path):
            self._write(_stamp(self._path))

    def release(self) -> None:
        os.close(self._descriptor)

    def _read(self) -> str:
        return os.pread(self._descriptor, _LIMIT_BYTES, 0).decode("ascii", "replace").strip()

    def _write(self, note: str) -> None:
        with suppress(OSError):  # on a full disk the next one checks without need
            os.pwrite(self._descriptor, f"{note}\n".ljust(_LIMIT_BYTES).encode(), 0)


def note_path(path: Path) -> Path:
    return path.with_suffix(".use")


def _stamp(path: Path) -> str:
    try:
        found = path.stat()
    except FileNotFoundError:
        return "none"
    return f"closed {found.st_size} {found.st_mtime_ns}"
