"""Opens the session database and runs its transactions under one lock."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import RLock

from wolo.errors import SessionError
from wolo.sessions import migrations
from wolo.sessions.database_file import (
    BUSY_MS,
    check_ours,
    connect,
    create,
    inspect,
    journal_for,
    log_path,
    memory_path,
    only_reading,
)
from wolo.sessions.locks import Use, held, note_path
from wolo.sessions.recovery import salvage
from wolo.sessions.storage import Damaged, Unwritable, check_file, explain

WAL_LIMIT_BYTES = 8 * 1024 * 1024
"""A commit that leaves the write-ahead log longer than this copies it into the database."""

_READER_WAIT_MS = 50


class Database:
    """One connection. Any thread may use it, one at a time; the mutex sees to that.

    Do not carry it over a fork: a child that goes on without exec must not touch it.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, use: Use, steps: Sequence[migrations.Step]) -> None:
        self.path = path
        self._use = use
        self._steps = steps
        self._mutex = RLock()
        self._log = log_path(path)
        self._set(connection)

    def _set(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        # Also at the end of the interpreter: the last connection checkpoints as it closes, and that needs the lock.
        self._finish = weakref.finalize(self, _close, connection, _lock_path(self.path), self._use)

    @classmethod
    def open(cls, path: Path, steps: Sequence[migrations.Step] = migrations.STEPS) -> tuple[Database, list[str]]:
        """The database, and what a person should hear about it. Raises SessionError; the file is then as it was.

        One that is damaged is set aside, and what can be read of it is in the one that is returned.
        """
        files = (path, log_path(path), memory_path(path), _lock_path(path), note_path(path))
        warnings = [warning for file in files for warning in check_file(file)]
        try:
            with held(_lock_path(path)):
                use = Use(path)
                try:
                    connection, more = _open(path, steps, use)
                except BaseException:
                    use.release()
                    raise
        except (sqlite3.Error, OSError) as error:
            raise explain(error, path) from error
        return cls(path, connection, use, steps), [*warnings, *more]

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._mutex, self._explained():
            yield self._connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction; it is on the disk when the block has ended, or nothing of it is."""
        with self._mutex, self._explained(), held(_lock_path(self.path)):
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            if self._log_bytes() > WAL_LIMIT_BYTES:
                _checkpoint(connection)

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the database: at the end of a turn, when nobody waits."""
        if self._log_bytes():
            with self._mutex, self._explained(), held(_lock_path(self.path)):
                _checkpoint(self._connection)

    def rescue(self, why: str) -> str:
        """Sets the damaged database aside and saves what can be read of it, at once, when nobody else has it open.

        Returns what to tell a person; empty when somebody has, and nothing was done.
        """
        with self._mutex, self._explained(), held(_lock_path(self.path)):
            if not self._use.take_alone():
                return ""
            try:
                self._finish.detach()
                self._connection.close()
                told = salvage.rescue(self.path, len(self._steps) + 1, why)
                self._set(_attach(self.path, self._steps, self._use)[0])
                self._use.opened()
            finally:
                self._use.share()
        return told

    def close(self) -> None:
        with self._mutex:
            self._finish()

    def _log_bytes(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:
            return 0

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            explained = explain(error, self.path)
            if isinstance(explained, Damaged):
                self._use.doubt()
            raise explained from error


def _lock_path(path: Path) -> Path:
    return path.with_suffix(".lock")


def _checkpoint(connection: sqlite3.Connection) -> None:
    # Neither a full disk nor a reader in the way is any harm here: what was committed stays in the log.
    # TRUNCATE, so that the size of the log says how much of it is still to be copied.
    with suppress(sqlite3.OperationalError):
        connection.execute(f"PRAGMA busy_timeout = {_READER_WAIT_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")


def _close(connection: sqlite3.Connection, lock: Path, use: Use) -> None:
    try:
        with held(lock):
            _checkpoint(connection)
            use.closed()
            connection.close()
    except SessionError:
        # Whoever sits on the lock has the database open too, so this close is not the last and will not checkpoint.
        connection.close()
    finally:
        use.release()


def _open(path: Path, steps: Sequence[migrations.Step], use: Use) -> tuple[sqlite3.Connection, list[str]]:
    """Under the lock: made if it is missing, rescued if it is damaged."""
    version = len(steps) + 1
    told = [salvage.finish(path, version)] if use.is_alone else []
    if not path.exists():
        told += _begin(path, version, use)
    try:
        connection, more = _attach(path, steps, use)
    except (sqlite3.DatabaseError, Damaged) as error:
        reason = explain(error, path) if isinstance(error, sqlite3.DatabaseError) else error
        if not isinstance(reason, Damaged) or not use.is_alone:
            raise
        told.append(salvage.rescue(path, version, reason.what))
        connection, more = _attach(path, steps, use)
    use.opened()
    return connection, [*filter(None, told), *more]


def _begin(path: Path, version: int, use: Use) -> list[str]:
    log = log_path(path)
    if log.exists() and log.stat().st_size:
        raise SessionError(
            f"{path} is gone, but its log {log.name} is still there.",
            hint="Put the database back beside it; or move the log aside to start afresh.",
        )
    create(path, version)
    return [f"The session database {path} that was here is gone; a new one was begun."] if use.was_here else []


def _attach(path: Path, steps: Sequence[migrations.Step], use: Use) -> tuple[sqlite3.Connection, list[str]]:
    inspect(path, len(steps) + 1, thoroughly=use.is_doubtful)
    connection = connect(path)
    try:
        return connection, _prepare(connection, path, steps, use)
    except BaseException:
        connection.close()
        raise


def _prepare(connection: sqlite3.Connection, path: Path, steps: Sequence[migrations.Step], use: Use) -> list[str]:
    """What a connection needs to know about the file it has opened."""
    warnings = []
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    wanted = journal_for(path)
    if journal != wanted and use.is_alone:  # the directory has moved to another disk
        (journal,) = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()
    if journal != "wal":
        # With a rollback journal only EXTRA also makes the journal's removal last.
        connection.execute("PRAGMA synchronous = EXTRA")
    elif use.has_lost_its_log:
        warnings.append(
            f"{log_path(path).name} is gone, though nobody had closed the sessions: what was said last may be missing."
        )
    if "delete" in (journal, wanted):
        warnings.append(
            f"{path.parent} is not a local disk: sessions are kept there more slowly. WOLO_HOME can name another place."
        )
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version <= len(steps):
        warnings.append(migrations.migrate(connection, path, version, steps))
    return warnings


class ReadOnlyDatabase:
    """What a store asks of a database, as far as reading allows. Nothing is made, locked or changed."""

    def __init__(self, path: Path) -> None:
        """Raises SessionError for what is no database of wolo's, or cannot be read."""
        self.path = path
        self._mutex = RLock()
        self._stack = ExitStack()
        try:
            if not path.stat().st_size:
                raise SessionError(f"{path} is empty.", hint="There is no session in it.")
            self._connection = self._stack.enter_context(only_reading(path))
            check_ours(self._connection, path)
        except (sqlite3.Error, OSError) as error:
            self._stack.close()
            raise explain(error, path) from error
        except BaseException:
            self._stack.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._mutex:
                yield self._connection
        except sqlite3.OperationalError as error:
            raise SessionError(f"{self.path} cannot be read by this wolo: {error}.", hint="Upgrade wolo.") from error
        except (sqlite3.Error, OSError) as error:
            raise explain(error, self.path) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Raises Unwritable."""
        raise Unwritable(f"{self.path} can only be read here.", hint="Set WOLO_HOME to a directory that can be written.")
        yield self._connection

    def rescue(self, why: str) -> str:
        """Nothing can be done about damage."""
        return ""

    def checkpoint(self) -> None:
        """There is nothing to copy."""

    def close(self) -> None:
        self._stack.close()
