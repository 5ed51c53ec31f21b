"""Opens the session database, runs its transactions under one lock, and repeats what failed on damage."""

from __future__ import annotations

import functools
import os
import sqlite3
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from threading import RLock
from types import FunctionType
from typing import Any, TypeVar

from wolo.errors import SessionError
from wolo.sessions import database_file, migrations
from wolo.sessions.locks import OpenState, hold, note_path
from wolo.sessions.storage import DatabaseDamaged, StorageFailed, StorageReadOnly, check_file, storage_error
from wolo.workspace.files.sqlite_connection import SQLITE_ERRORS, transaction

DATABASE_WAIT_S = 4.0
"""A commit takes milliseconds; a process that holds the lock longer is stopped."""
WAL_LIMIT_BYTES = 8 * 1024 * 1024
"""A commit that makes the write-ahead log longer than this triggers a checkpoint."""

_READER_WAIT_MS = 50


class Database:
    """A connection for any thread; a mutex lets one use it at a time. Must not be used in a forked child."""

    def __init__(self, path: Path, connection: sqlite3.Connection, use: OpenState, steps: Sequence[migrations.Step]) -> None:
        self.path, self._use, self._steps = path, use, steps
        self._mutex = RLock()
        self._log = database_file.log_path(path)
        self._set(connection)

    def _set(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._file = self.path.stat()
        # Also at the end of the interpreter: the last connection checkpoints on close, which needs the lock.
        self._finish = weakref.finalize(self, _close, connection, self.path, self._use, os.getpid())

    @classmethod
    def open(cls, path: Path, steps: Sequence[migrations.Step] = migrations.STEPS) -> tuple[Database, list[str]]:
        """Opens or creates the database. Returns it with warnings for the user.

        A damaged one is moved aside, and what can be read of it is in the one returned. Raises SessionError and leaves the file
        unchanged.
        """
        files = (path, database_file.log_path(path), database_file.memory_path(path), path.with_suffix(".lock"), note_path(path))
        warnings = [warning for file in files for warning in check_file(file)]
        try:
            with _lock(path):
                use = OpenState(path)
                try:
                    connection, more = _open(path, steps, use)
                except BaseException:
                    use.release()
                    raise
        except (*SQLITE_ERRORS, OSError) as error:
            raise storage_error(error, path) from error
        return cls(path, connection, use, steps), [*warnings, *more]

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._mutex, self._translate_errors():
            yield self._connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Runs one transaction, durable when the block ends; rolled back on an exception."""
        with self._mutex, self._translate_errors(), _lock(self.path):
            connection = self._connection
            if not self.is_current():  # SQLite would write to a file that nobody can open any more
                raise StorageFailed(
                    f"The session database {self.path} was removed or replaced while it was open.",
                    hint="Nothing more is saved there. Start wolo again, or put the folder back.",
                )
            with transaction(connection):
                yield connection
            if self._log_bytes() > WAL_LIMIT_BYTES:
                _checkpoint(connection)

    def checkpoint(self) -> None:
        """Copies the write-ahead log into the database; called at the end of a turn, when the user does not wait."""
        if self._log_bytes():
            with self._mutex, self._translate_errors(), _lock(self.path):
                _checkpoint(self._connection)

    def is_current(self) -> bool:
        """False where it was closed, or its file is another one by now."""
        try:
            return self._finish.alive and os.path.samestat(self._file, self.path.stat())
        except OSError:
            return False

    def rescue(self, why: str) -> str:
        """Moves a damaged database aside and saves what can be read of it.

        Returns a message for the user; empty, and nothing done, when another process has it open.
        """
        with self._mutex, self._translate_errors(), _lock(self.path):
            if not self._use.acquire_exclusive():
                return ""
            try:
                self._finish.detach()
                self._connection.close()
                message = _rescue(self.path, len(self._steps) + 1, why)
                self._set(_attach(self.path, self._steps, self._use)[0])
                self._use.mark_open()
            finally:
                self._use.share()
        return message

    def close(self) -> None:
        with self._mutex:
            self._finish()

    def _log_bytes(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:
            return 0

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (*SQLITE_ERRORS, OSError) as error:
            explained = storage_error(error, self.path)
            if isinstance(explained, DatabaseDamaged):
                self._use.mark_damaged()
            raise explained from error


def _lock(path: Path) -> AbstractContextManager[None]:
    """For writes to this database, and its checkpoints."""
    what = f"Another wolo has locked the session database for {DATABASE_WAIT_S:.0f} seconds and does not answer."
    hint = "It may be stopped: resume it (fg) or quit it, then try again."
    return hold(path.with_suffix(".lock"), DATABASE_WAIT_S, what, hint)


def _checkpoint(connection: sqlite3.Connection) -> None:
    # Neither a full disk nor a concurrent reader does harm: what was committed stays in the log. TRUNCATE makes the log's size
    # tell how much is left to copy.
    with suppress(sqlite3.OperationalError):
        connection.execute(f"PRAGMA busy_timeout = {_READER_WAIT_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute(f"PRAGMA busy_timeout = {database_file.BUSY_MS}")


def _close(connection: sqlite3.Connection, path: Path, use: OpenState, process: int) -> None:
    if process != os.getpid():  # a forked child: all of them are its parent's
        return
    try:
        with _lock(path):
            _checkpoint(connection)
            use.mark_closed()
            connection.close()
    except SessionError:
        # The holder of the lock has the database open too, so this close is not the last and does not checkpoint.
        connection.close()
    finally:
        use.release()


def _open(path: Path, steps: Sequence[migrations.Step], use: OpenState) -> tuple[sqlite3.Connection, list[str]]:
    """Creates a missing database and rescues a damaged one. Needs the lock."""
    version = len(steps) + 1
    messages: list[str] = []
    if use.is_exclusive and database_file.unfinished_rescue(path).exists():
        from wolo.sessions import salvage  # noqa: PLC0415  # for damaged databases only

        messages.append(salvage.resume(path, version))
    if not path.exists():
        log = database_file.log_path(path)
        if log.exists() and log.stat().st_size:
            raise SessionError(
                f"{path} is gone, but its log {log.name} is still there.",
                hint="Restore the database, or move the log aside to start with a new one.",
            )
        database_file.create(path, version)
        messages += [f"The session database {path} is missing; a new one was created."] if use.existed else []
    try:
        connection, more = _attach(path, steps, use)
    except (sqlite3.DatabaseError, UnicodeDecodeError, DatabaseDamaged) as error:
        reason = error if isinstance(error, DatabaseDamaged) else storage_error(error, path)
        if not isinstance(reason, DatabaseDamaged) or not use.is_exclusive:
            raise
        messages.append(_rescue(path, version, reason.what))
        connection, more = _attach(path, steps, use)
    use.mark_open()
    return connection, [*filter(None, messages), *more]


def _rescue(path: Path, version: int, why: str) -> str:
    from wolo.sessions import salvage  # noqa: PLC0415  # for damaged databases only

    return salvage.rescue(path, version, why)


def _attach(path: Path, steps: Sequence[migrations.Step], use: OpenState) -> tuple[sqlite3.Connection, list[str]]:
    database_file.inspect(path, len(steps) + 1, thoroughly=use.needs_check)
    connection = database_file.connect(path)
    try:
        warnings = []
        (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
        needed = database_file.journal_for(path)
        if journal != needed and use.is_exclusive:  # the directory was moved to another disk
            (journal,) = connection.execute(f"PRAGMA journal_mode = {needed}").fetchone()
        if journal != "wal":
            # With a rollback journal, only EXTRA also makes the removal of the journal durable.
            connection.execute("PRAGMA synchronous = EXTRA")
        elif use.lost_log:
            log = database_file.log_path(path).name
            warnings.append(f"{log} is missing although the sessions were not closed: the last messages may be lost.")
        if "delete" in (journal, needed):
            warnings.append(
                f"{path.parent} is not a local disk: saving sessions there is slower. Set WOLO_HOME to another directory."
            )
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version <= len(steps):
            warnings.append(migrations.migrate(connection, path, version, steps))
        return connection, warnings
    except BaseException:
        connection.close()
        raise


C = TypeVar("C", bound=type)


def retry_after_repair(*, exclude: Collection[str]) -> Callable[[C], C]:
    """Decorates a class with a method `repair`: its public methods run again after that, all but `exclude`."""

    def again(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return method(self, *args, **kwargs)
            except DatabaseDamaged as damage:
                if not self.repair(damage):
                    raise
                return method(self, *args, **kwargs)

        return run

    def wrap(kind: C) -> C:
        for name, method in list(vars(kind).items()):
            if not name.startswith("_") and name not in exclude and isinstance(method, FunctionType):
                setattr(kind, name, again(method))
        return kind

    return wrap


class ReadOnlyDatabase:
    """The read-only counterpart of `Database`: nothing is created, locked or changed."""

    def __init__(self, path: Path) -> None:
        """Raises SessionError for a file that is not a database of wolo or cannot be read."""
        self.path = path
        self._mutex = RLock()
        self._stack = ExitStack()
        try:
            if not path.stat().st_size:
                raise SessionError(f"{path} is empty.", hint="It contains no session.")
            self._connection = self._stack.enter_context(database_file.only_reading(path))
            database_file.check_ours(self._connection, path)
        except BaseException as error:
            self._stack.close()
            if isinstance(error, (*SQLITE_ERRORS, OSError)):
                raise storage_error(error, path) from error
            raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._mutex:
                yield self._connection
        except sqlite3.OperationalError as error:
            raise SessionError(f"{self.path} cannot be read by this wolo: {error}.", hint="Upgrade wolo.") from error
        except (*SQLITE_ERRORS, OSError) as error:
            raise storage_error(error, self.path) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Raises StorageReadOnly."""
        raise StorageReadOnly(f"{self.path} is read-only here.", hint="Set WOLO_HOME to a directory that can be written.")
        yield self._connection

    def rescue(self, why: str) -> str:
        return ""

    def checkpoint(self) -> None:
        pass

    def close(self) -> None:
        self._stack.close()
