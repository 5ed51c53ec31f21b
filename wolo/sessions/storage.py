"""Creates private files and explains disk errors."""

from __future__ import annotations

import errno
import sqlite3
import stat
from pathlib import Path

from wolo.errors import SessionError
from wolo.operating_system import file_mode, os, user_id
from wolo.places import make_private
from wolo.workspace.files.safe_open import name_shortage
from wolo.workspace.files.sqlite_connection import SqliteError, is_damage, reason_of

_FULL_HINT = "Free some space and try again; everything so far is saved. Or run with --no-session."
_READ_ONLY_HINT = "Make it writable, set WOLO_HOME to a writable directory, or run with --no-session."
_DAMAGED_HINT = "Quit all running wolo processes and start one again: it moves the file aside and saves what can be read."
_FAILED_HINT = "Check the disk, its quota and the limit on file sizes (ulimit -f), or run with --no-session."
_FOREIGN_HINT = "The file was not changed. Move it aside, or set WOLO_HOME to another directory."


class StorageFailed(SessionError):
    """Sessions cannot be saved: the disk is full or fails, or the database cannot be used."""


class StorageReadOnly(StorageFailed):
    """The sessions or their directory cannot be written; reading may still work."""


class DatabaseTooNew(StorageFailed):
    """A newer wolo wrote the database, so this one must not write to it."""


class DatabaseDamaged(StorageFailed):
    """The database is damaged; the next process that opens it alone saves what can be read."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"The session database {path} is damaged ({what}).", hint=_DAMAGED_HINT)
        self.what = what


def storage_error(error: SqliteError | OSError, path: Path) -> SessionError:
    """Converts an error to a SessionError. The caller raises it `from` the original."""
    if isinstance(error, OSError):
        where = Path(error.filename) if isinstance(error.filename, str) else path
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return StorageFailed(f"{_sentence(name_shortage(where))}: {where} cannot be written.", hint=_FULL_HINT)
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return StorageReadOnly(f"Cannot save sessions: no permission for {where}.", hint=_READ_ONLY_HINT)
        if error.errno in (errno.EMFILE, errno.ENFILE):
            hint = "Close conversations, which keep a file open each, or raise the limit (`ulimit -n`)."
            return StorageFailed("Cannot save sessions: too many files are open.", hint=hint)
        reason = (error.strerror or str(error)).lower()
        return StorageFailed(f"Cannot save sessions: {where}: {reason}.", hint=_READ_ONLY_HINT)
    # The low byte is SQLite's primary result code.
    full_code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    code = full_code & 0xFF
    # SQLite writes no file whose header names a later format.
    is_by_header = full_code == sqlite3.SQLITE_READONLY and all(os.access(each, os.W_OK) for each in (path, path.parent))
    if is_damage(error) or is_by_header:
        return DatabaseDamaged(path, reason_of(error))
    if code == sqlite3.SQLITE_FULL:
        return StorageFailed(f"{_sentence(name_shortage(path))}: {path} has no room for the newest entry.", hint=_FULL_HINT)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH):
        return StorageReadOnly(f"Cannot save sessions: {path} or its directory is read-only.", hint=_READ_ONLY_HINT)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageFailed(f"Another program holds {path} and does not release it.", hint="Quit that program and try again.")
    if code == sqlite3.SQLITE_IOERR:
        return StorageFailed(f"The disk failed: {path} cannot be read or written ({error}).", hint=_FAILED_HINT)
    return StorageFailed(f"Cannot save sessions in {path}: {error}.", hint="Check the disk, or run with --no-session.")


def not_a_database(path: Path) -> SessionError:
    return StorageFailed(f"{path} is not a session database of wolo.", hint=_FOREIGN_HINT)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def make_directory(path: Path) -> list[str]:
    """Creates or checks a directory that only the owner can access. Returns warnings."""
    try:
        make_private(path)
        return _check_private(path, path.stat(), 0o700)
    except OSError as error:
        raise storage_error(error, path) from error


def check_file(path: Path) -> list[str]:
    """Checks an existing file. Returns warnings."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, path) from error
    if not stat.S_ISREG(status.st_mode):
        raise StorageFailed(f"{path} is not a regular file.", hint="Move it aside; wolo saves its sessions there.")
    return _check_private(path, status, 0o600)


def sync(path: Path) -> None:
    """Makes the content of a file durable, or the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_private(path: Path, status: os.stat_result, mode: int) -> list[str]:
    if status.st_uid != user_id():
        raise StorageFailed(
            f"{path} belongs to another user, so sessions are not saved there.",
            hint="Run wolo as that user, or set WOLO_HOME to a directory that you own.",
        )
    if file_mode(status) & 0o022:
        raise StorageFailed(
            f"{path} is writable by other users, so its content cannot be trusted.",
            hint=f"If no one has tampered with it: chmod go-rwx '{path}'",
        )
    if not file_mode(status) & 0o077:
        return []
    try:
        path.chmod(mode)
    except OSError as error:
        raise storage_error(error, path) from error
    return [f"{path} was readable by other users; it is private now."]
