"""Locks files with kernel locks, and records who has the database open."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wolo.errors import SessionError
from wolo.sessions.session_rows import check_id
from wolo.sessions.storage import explain

DATABASE_WAIT_S = 4.0
"""A commit takes milliseconds; who holds the database longer than this has been stopped."""
LONGEST_PAUSE_S = 0.001
"""Between two tries. Who sleeps longer than a commit takes loses to those who have just come, again and again."""
SESSION_WAIT_S = 0.1
"""Long enough for a listing that is just looking whether the session is live."""

_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class Held(Exception):
    """Somebody else has the lock; `holder` is what they wrote about themselves, for display only."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


def take(path: Path, wait_s: float) -> int:
    """Lock the file, creating it if need be, and return its descriptor; closing that frees the lock. Raises Held."""
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
        if time.monotonic() >= deadline:
            raise Held(holder)
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)


@contextmanager
def held(path: Path, wait_s: float = DATABASE_WAIT_S) -> Iterator[None]:
    """The lock that every write and every checkpoint of the database runs under."""
    try:
        descriptor = take(path, wait_s)
    except Held as other:
        raise SessionError(
            f"Another wolo has held the session database for {wait_s:.0f} seconds and does not answer.",
            hint="It may be stopped: continue it (fg) or end it, then try again.",
        ) from other
    try:
        yield
    finally:
        os.close(descriptor)


class SessionLock:
    """Says that one process, and no other, goes on with a session. Kept until `release` or the end of the process."""

    def __init__(self, path: Path, session_id: str) -> None:
        self._path = path
        try:
            self._descriptor = take(path, SESSION_WAIT_S)
        except Held as other:
            raise SessionError(
                f"Session {session_id} is in use by another wolo{_named(other.holder)}.",
                hint="End the other one first; --fork goes on in a copy.",
            ) from other
        with suppress(OSError):  # on a full disk the lock holds just as well; others are then not told who has it
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        if self._descriptor < 0:
            return
        if _is_still_at(self._descriptor, self._path):
            # Before the lock goes: whoever has opened this file and waits will notice and open the next one.
            with suppress(OSError):
                self._path.unlink()
        os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> SessionLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class SessionLocks:
    """The locks of all sessions: one file each in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def lock(self, session_id: str) -> SessionLock:
        """Locks a session for this process. Raises SessionError when another process has it open."""
        return SessionLock(self._path(session_id), session_id)

    def is_live(self, session_id: str) -> bool:
        return is_held(self._path(session_id))

    def live(self, session_ids: Iterable[str]) -> set[str]:
        """The sessions among these that a process has open."""
        present = {path.stem for path in self._folder.iterdir()} if self._folder.is_dir() else set()
        return {session_id for session_id in session_ids if session_id in present and self.is_live(session_id)}

    def clear_dead(self) -> None:
        """Removes the lock files of killed processes."""
        for name in os.listdir(self._folder):  # noqa: PTH208  # once at every start
            if name.endswith(".lock"):
                with suppress(Held, OSError, SessionError):
                    descriptor = take(self._folder / name, 0)
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
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def open_lock_file(path: Path) -> int:
    """Made for its owner alone if it is missing."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if os.fstat(descriptor).st_mode & 0o777 != 0o600:  # an unusual umask had its say
            os.fchmod(descriptor, 0o600)
    except OSError as error:
        raise explain(error, path) from error
    return descriptor


def try_lock(descriptor: int, path: Path) -> bool:
    """False when somebody else has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise explain(error, path) from error
        raise SessionError(
            f"The file system of {path.parent} has no locks, so sessions there could be damaged by a second wolo.",
            hint="Set WOLO_HOME to a directory on a local disk, or keep nothing with --no-session.",
        ) from error
    return True


def _is_still_at(descriptor: int, path: Path) -> bool:
    """False when the file was removed or replaced while we waited: its lock would guard nothing."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)


def _named(holder: str) -> str:
    return f" (process {holder})" if holder.isdecimal() else ""


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
