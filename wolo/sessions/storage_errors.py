"""What can go wrong on disk, in words a person can act on."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from wolo.errors import SessionError

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
