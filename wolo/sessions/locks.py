"""Locks sessions and the database with kernel locks, and records who has the database open."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wolo.errors import SessionError
from wolo.operating_system import LOCK_EX, LOCK_NB, LOCK_SH, flock, os, release_lock
from wolo.sessions.session_rows import check_id
from wolo.sessions.storage import storage_error

LONGEST_PAUSE_S = 0.001
"""Between two tries. A longer sleep than a commit takes would lose to newcomers again and again."""
SESSION_WAIT_S = 0.1
"""Covers the moment in which a listing checks whether the session is live."""
CLEARING_S = 3.0
"""Another wolo that starts holds a new lock file for a moment, to see whether its owner is dead."""

_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class LockHeld(Exception):
    """Another process has the lock; `holder` is its note, for display only."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


class SessionInUse(SessionError):
    """`holder` is the process that has the session open; empty: unknown."""

    def __init__(self, session_id: str, holder: str) -> None:
        self.session_id, self.holder = session_id, holder
        is_here = holder == str(os.getpid())
        other = f"another wolo (process {holder})" if holder.isdecimal() else "another wolo"
        whose = f"this process ({holder})" if is_here else other
        first = "Close what has it open first" if is_here else "Quit the other one first"
        super().__init__(f"Session {session_id} is in use by {whose}.", hint=f"{first}; --fork continues in a copy.")


def acquire(path: Path, wait_s: float, nameless_s: float = 0) -> int:
    """Locks a file, creating it if needed. Returns the descriptor; closing it releases the lock. Raises LockHeld.

    `nameless_s`: further time to wait for a holder that left no process id.
    """
    deadline = time.monotonic() + wait_s
    pause_s = 0.0005
    while True:
        descriptor = open_lock_file(path)
        try:
            if try_lock(descriptor, path) and _is_still_at(descriptor, path):
                return descriptor
            holder = os.pread(descriptor, 64, 0).decode("ascii", "replace").strip()
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() >= deadline + (0 if holder else nameless_s):
            raise LockHeld(holder)
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)


@contextmanager
def hold(path: Path, wait_s: float, what: str, hint: str) -> Iterator[None]:
    """Holds the lock of a file. Raises SessionError with these texts where another process has it for longer than `wait_s`."""
    try:
        descriptor = acquire(path, wait_s)
    except LockHeld as other:
        raise SessionError(what, hint=hint) from other
    try:
        yield
    finally:
        release_lock(descriptor)


class SessionLock:
    """Reserves a session for this process until `release` or its end."""

    def __init__(self, path: Path, session_id: str) -> None:
        self._path = path
        try:
            self._descriptor = acquire(path, SESSION_WAIT_S, nameless_s=CLEARING_S)
        except LockHeld as other:
            raise SessionInUse(session_id, other.holder) from other
        with suppress(OSError):  # on a full disk the lock still holds; others cannot show the holder
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        if self._descriptor < 0:
            return
        if _is_still_at(self._descriptor, self._path):
            # Before the lock is released: a process waiting on this file notices and opens the new one.
            with suppress(OSError):
                self._path.unlink()
        release_lock(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> SessionLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class SessionLocks:
    """Locks of all sessions, one file each in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def lock(self, session_id: str) -> SessionLock:
        """Raises SessionError when another process has the session open."""
        return SessionLock(self._path(session_id), session_id)

    def is_live(self, session_id: str) -> bool:
        return is_held(self._path(session_id))

    def live(self, session_ids: Iterable[str]) -> set[str]:
        """Returns those of the sessions that a process has open."""
        present = {path.stem for path in self._folder.iterdir()} if self._folder.is_dir() else set()
        return {session_id for session_id in session_ids if session_id in present and self.is_live(session_id)}

    def clear_dead(self) -> None:
        for name in os.listdir(self._folder):  # once at every start
            if name.endswith(".lock"):
                with suppress(LockHeld, OSError, SessionError):
                    descriptor = acquire(self._folder / name, 0)
                    try:
                        (self._folder / name).unlink()
                    finally:
                        os.close(descriptor)

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{check_id(session_id)}.lock"


def is_held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        flock(descriptor, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no file locks here: no session can be open
    finally:
        os.close(descriptor)
    return False


def open_lock_file(path: Path) -> int:
    """Creates a missing file with mode 0600."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if os.fstat(descriptor).st_mode & 0o777 != 0o600:  # because of an unusual umask
            os.fchmod(descriptor, 0o600)
    except OSError as error:
        raise storage_error(error, path) from error
    return descriptor


def try_lock(descriptor: int, path: Path) -> bool:
    """False when another process has the lock."""
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise storage_error(error, path) from error
        raise SessionError(
            f"The file system of {path.parent} has no file locks, so a second wolo could damage sessions there.",
            hint="Set WOLO_HOME to a directory on a local disk, or run with --no-session.",
        ) from error
    return True


def _is_still_at(descriptor: int, path: Path) -> bool:
    """False when the file was replaced while waiting: its lock would protect nothing."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)


_OPEN, _DAMAGED = "open", "damaged"
_LIMIT_BYTES = 100


class OpenState:
    """A process's share in the open database. Create and release it under the database lock.

    All who have the database open share a kernel lock. Only a process that can acquire it exclusively checks the file, moves it
    aside or marks it as closed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        note = note_path(path)
        self._descriptor = open_lock_file(note)
        try:
            self.is_exclusive = try_lock(self._descriptor, note)
            note_text = self._read()
            log = path.with_name(f"{path.name}-wal")
            logged_bytes = log.stat().st_size if log.exists() else None
            self.needs_check = self.is_exclusive and (bool(logged_bytes) or note_text != _stamp(path))
            """The database was not closed properly, or changed since."""
            self.existed = bool(note_text)
            """A database existed before."""
            self.lost_log = self.is_exclusive and note_text == _OPEN and logged_bytes is None
            """Changes that were only in the write-ahead log are gone."""
            flock(self._descriptor, LOCK_SH)
        except BaseException:
            os.close(self._descriptor)
            raise

    def acquire_exclusive(self) -> bool:
        """True when no other process has the database open; none can open it until `share`. Needs the database lock."""
        if try_lock(self._descriptor, self._path):
            self.is_exclusive = True
            return True
        self.share()
        return False

    def share(self) -> None:
        flock(self._descriptor, LOCK_SH)

    def mark_open(self) -> None:
        """Marks the database as open, so that a crash makes the next process check it."""
        if self.is_exclusive:
            self._write(_OPEN)

    def mark_damaged(self) -> None:
        """Makes the next exclusive opener check the database."""
        self._write(_DAMAGED)

    def mark_closed(self) -> None:
        """Marks the database as closed, with its size and time."""
        if self._read() == _OPEN and try_lock(self._descriptor, self._path):
            self._write(_stamp(self._path))

    def release(self) -> None:
        release_lock(self._descriptor)

    def _read(self) -> str:
        return os.pread(self._descriptor, _LIMIT_BYTES, 0).decode("ascii", "replace").strip()

    def _write(self, note: str) -> None:
        with suppress(OSError):  # on a full disk the next process checks without need
            os.pwrite(self._descriptor, f"{note}\n".ljust(_LIMIT_BYTES).encode(), 0)


def note_path(path: Path) -> Path:
    return path.with_suffix(".use")


def _stamp(path: Path) -> str:
    try:
        found = path.stat()
    except FileNotFoundError:
        return "none"
    return f"closed {found.st_size} {found.st_mtime_ns}"
