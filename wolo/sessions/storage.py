"""Creates private files, explains disk errors and retries after a repair."""

from __future__ import annotations

import errno
import functools
import inspect
import os
import sqlite3
import stat
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Protocol, TypeVar

from wolo.errors import SessionError
from wolo.places import make_private

_FULL_HINT = "Free some space and try again; everything up to here is kept. With --no-session nothing needs to be kept."
_READ_ONLY_HINT = "Make it writable, set WOLO_HOME to a directory that is, or keep nothing with --no-session."
_DAMAGED_HINT = "End every wolo that is running, then start one again: it sets the file aside and saves what can be read."
_FAILED_HINT = "Check the disk, its quota and the limit on file sizes (ulimit -f), or keep nothing with --no-session."
_FOREIGN_HINT = "The file was not touched. Move it aside, or set WOLO_HOME to another directory."


class Unwritable(SessionError):
    """The sessions, or the directory they are in, cannot be written; they may be readable all the same."""


class Newer(SessionError):
    """A newer wolo wrote the database: this one must not write there."""


class Damaged(SessionError):
    """What is said of the database cannot be trusted; whoever opens it alone saves what can be read."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"The session database {path} is damaged ({what}).", hint=_DAMAGED_HINT)
        self.what = what


def explain(error: sqlite3.Error | OSError, path: Path) -> SessionError:
    """The same failure as a SessionError; the caller raises it `from` the original."""
    if isinstance(error, OSError):
        return _explain_os(error, path)
    # The low byte is SQLite's primary result code; the rest only refines it.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return SessionError(f"The disk is full: {path} cannot take the newest entry.", hint=_FULL_HINT)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH):
        return Unwritable(f"Sessions cannot be written: {path} or its directory is read-only.", hint=_READ_ONLY_HINT)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Damaged(path, str(error))
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return SessionError(f"Another program holds {path} and does not let go.", hint="End that program, then try again.")
    if code == sqlite3.SQLITE_IOERR:
        return SessionError(f"The disk failed: {path} cannot be read or written ({error}).", hint=_FAILED_HINT)
    return SessionError(f"Sessions cannot be kept in {path}: {error}.", hint="Check the disk, or keep nothing with --no-session.")


def foreign(path: Path) -> SessionError:
    return SessionError(f"{path} is not a session database of wolo.", hint=_FOREIGN_HINT)


def _explain_os(error: OSError, path: Path) -> SessionError:
    where = Path(error.filename) if isinstance(error.filename, str) else path
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return SessionError(f"The disk is full: {where} cannot be written.", hint=_FULL_HINT)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Unwritable(f"Sessions cannot be written: no permission for {where}.", hint=_READ_ONLY_HINT)
    reason = (error.strerror or str(error)).lower()
    return SessionError(f"Sessions cannot be kept: {where}: {reason}.", hint=_READ_ONLY_HINT)


def make_directory(path: Path) -> list[str]:
    """Create it (and missing parents) for the owner alone, or check the one that is there. Returns warnings."""
    try:
        make_private(path)
        return _check_private(path, path.stat(), 0o700)
    except OSError as error:
        raise explain(error, path) from error


def check_file(path: Path) -> list[str]:
    """A file that is not there is fine. Returns warnings."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise explain(error, path) from error
    if not stat.S_ISREG(found.st_mode):
        raise SessionError(f"{path} is not a regular file.", hint="Move it aside; wolo keeps its sessions there.")
    return _check_private(path, found, 0o600)


def sync_directory(path: Path) -> None:
    """Make names that were added to it or taken from it last."""
    sync_file(path)


def sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_private(path: Path, found: os.stat_result, mode: int) -> list[str]:
    if found.st_uid != os.geteuid():
        raise SessionError(
            f"{path} belongs to another user, so sessions are not kept there.",
            hint="Run wolo as that user, or set WOLO_HOME to a directory of your own.",
        )
    if found.st_mode & 0o022:
        raise SessionError(
            f"{path} can be written by other users, so what it says cannot be trusted.",
            hint=f"If nobody has tampered with it: chmod go-rwx '{path}'",
        )
    if not found.st_mode & 0o077:
        return []
    try:
        path.chmod(mode)
    except OSError as error:
        raise explain(error, path) from error
    return [f"{path} could be read by other users; it is private again."]


C = TypeVar("C", bound=type)


class Mendable(Protocol):
    def mend(self, damage: Damaged) -> bool:
        """Whether it was mended. False: another process has the database open."""
        ...


def retrying(*, but: Collection[str]) -> Callable[[C], C]:
    """For a class whose public methods can run twice, all `but` these."""

    def wrap(kind: C) -> C:
        for name, method in list(vars(kind).items()):
            if not name.startswith("_") and name not in but and inspect.isfunction(method):
                setattr(kind, name, _again(method))
        return kind

    return wrap


def _again(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def run(self: Mendable, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Damaged as damage:
            if not self.mend(damage):
                raise
            return method(self, *args, **kwargs)

    return run
