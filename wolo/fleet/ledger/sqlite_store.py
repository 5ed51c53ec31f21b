"""Keeps a ledger in an SQLite file, for the workers of one machine."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import RLock
from typing import TypeVar

from wolo.fleet.ledger.hosts import Host
from wolo.fleet.ledger.ledger_store import SCHEMA, Execute, LedgerError
from wolo.sessions.database_file import connect, journal_for
from wolo.sessions.storage import sync
from wolo.workspace.files.sqlite_connection import SQLITE_ERRORS, SqliteError, is_damage, open_sqlite, reason_of, transaction
from wolo.workspace.files.unfinished import unfinished_folder

T = TypeVar("T")
NAME = "ledger.db"
_APPLICATION_ID = 0x574F4C46
_VERSION = 2
_BUSY_MS = 60_000
_LOST = "results.jsonl and attempts/ still hold what was published. Run the task file with a new --out for the rest."


class SqliteStore:
    """Commits are durable (WAL, synchronous FULL); where a file system is remote, it uses a rollback journal."""

    skip_locked = lock_row = ""
    next_fence = "UPDATE run SET fence = fence + 1 RETURNING fence"
    one_host = True

    def __init__(self, path: Path, host: Host, *, reads: bool = False) -> None:
        """Opens an existing file. `reads`: one that cannot be written is copied into memory. Raises LedgerError."""
        self._path, self._host, self._mutex = path, host, RLock()
        self.say: Callable[[str], None] = lambda text: None
        if not path.is_file():
            raise LedgerError(
                f"There is no ledger in {path.parent}.", hint="Give the folder that was the --out of `wolo batch run`."
            )
        try:
            is_writable = os.access(path, os.W_OK) and os.access(
                path.parent, os.W_OK
            )  # SQLite needs the folder, too, for its log
            self._connection = _copy_in_memory(path) if reads and not is_writable else connect(path)
            self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            self._connection.execute("PRAGMA wal_autocheckpoint = 1000")
            (application,) = self._connection.execute("PRAGMA application_id").fetchone()
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        except SQLITE_ERRORS as error:
            raise _explain(error, path) from error
        if application != _APPLICATION_ID or version < 1:
            self.close()
            raise LedgerError(f"{path} is not a ledger of wolo, or its header is damaged.", hint=_LOST)
        if version != _VERSION:
            self.close()
            hint = "Upgrade wolo. The file was not changed." if version > _VERSION else _LOST
            raise LedgerError(f"{path} was written by {'a newer' if version > _VERSION else 'an older'} wolo.", hint=hint)

    @classmethod
    def create(cls, path: Path, host: Host, meta: str) -> SqliteStore:
        """Builds the file under another name and renames it, so that it is never incomplete."""
        fresh = path.with_name(f"{path.name}.new")
        try:
            for leftover in (fresh, *(fresh.with_name(fresh.name + end) for end in ("-wal", "-shm", "-journal"))):
                leftover.unlink(missing_ok=True)
            fresh.touch(0o600)
            connection = connect(fresh)
            try:
                connection.execute("BEGIN")
                for statement in SCHEMA:
                    connection.execute(statement)
                connection.execute("INSERT INTO run (one, meta) VALUES (1, ?)", (meta,))
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                connection.execute("COMMIT")
                connection.execute(f"PRAGMA journal_mode = {journal_for(path)}").fetchone()
            finally:
                connection.close()
            fresh.rename(path)
            sync(path.parent)
        except (*SQLITE_ERRORS, OSError) as error:
            raise _explain(error, path) from error
        return cls(path, host)

    def since_outage_s(self) -> float | None:
        return None

    def now(self, execute: Execute) -> float:
        return self._host.now()

    def transaction(self, work: Callable[[Execute], T]) -> T:
        with self._mutex:
            try:
                with transaction(self._connection):
                    return work(lambda statement, values: self._connection.execute(statement, values).fetchall())
            except SQLITE_ERRORS as error:
                raise _explain(error, self._path) from error

    def close(self) -> None:
        with self._mutex:
            self._connection.close()


def _copy_in_memory(path: Path) -> sqlite3.Connection:
    """Copies the file with its log first, as SQLite opens no log in a folder that it cannot write."""
    with unfinished_folder() as folder:
        copy = folder / path.name
        try:
            for end in ("", "-wal", "-journal"):
                if (part := path.with_name(path.name + end)).exists():
                    shutil.copyfile(part, copy.with_name(copy.name + end))
        except OSError as error:
            raise LedgerError(f"Cannot read {error.filename or path}: {(error.strerror or str(error)).lower()}.") from error
        with closing(connect(copy)) as source:
            memory = open_sqlite(":memory:")
            try:
                source.backup(memory)
            except BaseException:
                memory.close()
                raise
            return memory


def _explain(error: SqliteError | OSError, path: Path) -> LedgerError:
    if isinstance(error, OSError):
        return LedgerError(
            f"Cannot write {error.filename or path}: {(error.strerror or str(error)).lower()}.", hint="Check the disk."
        )
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        hint = f"Free some space, then: wolo batch resume {path.parent}"
        return LedgerError(f"The disk is full: {path} cannot be written. What was published is saved.", hint=hint)
    if is_damage(error):
        return LedgerError(f"The ledger {path} is damaged ({reason_of(error)}).", hint=_LOST)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return LedgerError(f"Cannot write {path}: it or its folder is read-only.", hint="Make the run's folder writable.")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LedgerError(f"Another program holds {path} and does not release it.", hint="Quit that program and try again.")
    if code == sqlite3.SQLITE_IOERR:
        hint = f"Check the disk, its quota and the limit on file sizes (ulimit -f), then: wolo batch resume {path.parent}"
        return LedgerError(f"The disk failed: {path} cannot be read or written ({error}).", hint=hint)
    return LedgerError(f"Cannot use the ledger {path}: {error}.", hint="Check the disk.")
