"""The SQLite file: opened with care, written under one lock, durable when a write returns.

Every write transaction and every checkpoint runs under an exclusive flock on a file beside the database. That keeps
processes apart fairly, and no checkpoint can overlap a commit: the overlap is what corrupts files with the SQLite
versions before 3.51.3, which most systems still ship.
"""

from __future__ import annotations

import sqlite3
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import RLock

from wolo.errors import SessionError
from wolo.sessions import migrations
from wolo.sessions.faults import damaged, explain
from wolo.sessions.filesystem import is_remote
from wolo.sessions.locks import held
from wolo.sessions.private import check_file, sync_directory

APPLICATION_ID = 0x574F4C4F
"""Marks the file as wolo's."""
WAL_LIMIT_BYTES = 8 * 1024 * 1024
"""A commit that leaves the write-ahead log longer than this copies it into the database."""

_BUSY_MS = 5000
_READER_WAIT_MS = 50


class Database:
    """One connection. Any thread may use it, one at a time; the mutex sees to that.

    Do not carry it over a fork: a child that goes on without exec must not touch it.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._mutex = RLock()
        self._log = path.with_name(f"{path.name}-wal")
        # Also at the end of the interpreter: the last connection checkpoints as it closes, and that needs the lock.
        self._finish = weakref.finalize(self, _close, connection, _lock_path(path))

    @classmethod
    def open(cls, path: Path, steps: Sequence[migrations.Step] = migrations.STEPS) -> tuple[Database, list[str]]:
        """The database, and what a person should hear about it. Raises SessionError; the file is then as it was."""
        lock = _lock_path(path)
        files = (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm"), lock)
        warnings = [warning for file in files for warning in check_file(file)]
        try:
            with held(lock):
                if not path.exists():
                    _create(path, len(steps) + 1)
                _inspect(path, len(steps) + 1)
                connection = _connect(path)
                try:
                    warnings += _prepare(connection, path, steps)
                except BaseException:
                    connection.close()
                    raise
        except (sqlite3.Error, OSError) as error:
            raise explain(error, path) from error
        return cls(path, connection), warnings

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
            raise explain(error, self.path) from error


def _lock_path(path: Path) -> Path:
    return path.with_suffix(".lock")


def _checkpoint(connection: sqlite3.Connection) -> None:
    # Neither a full disk nor a reader in the way is any harm here: what was committed stays in the log.
    # TRUNCATE, so that the size of the log says how much of it is still to be copied.
    with suppress(sqlite3.OperationalError):
        connection.execute(f"PRAGMA busy_timeout = {_READER_WAIT_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")


def _close(connection: sqlite3.Connection, lock: Path) -> None:
    try:
        with held(lock):
            _checkpoint(connection)
            connection.close()
    except SessionError:
        # Whoever sits on the lock has the database open too, so this close is not the last and will not checkpoint.
        connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=64)
    try:
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        # FULL, not NORMAL: with a write-ahead log NORMAL forgets acknowledged commits when the power fails.
        connection.execute("PRAGMA synchronous = FULL")
        if sys.platform == "darwin":
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA checkpoint_fullfsync = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.text_factory = _read_text
    except BaseException:
        connection.close()
        raise
    return connection


def _read_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _create(path: Path, version: int) -> None:
    """Build it beside its place and move it there, so that a file under this name is always a whole database."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise SessionError(
            f"{path} is gone, but its log {log.name} is still there.",
            hint="Put the database back beside it; or move the log aside to start afresh.",
        )
    fresh = path.with_name(f"{path.name}.new")
    for leftover in (fresh, fresh.with_name(f"{fresh.name}-wal"), fresh.with_name(f"{fresh.name}-shm")):
        leftover.unlink(missing_ok=True)
    fresh.touch(0o600, exist_ok=False)
    fresh.chmod(0o600)  # SQLite gives the log and the shared memory the mode of the database
    connection = _connect(fresh)
    try:
        schema = Path(__file__).with_name("schema.sql").read_text("utf-8")
        mark = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version}"
        connection.executescript(f"BEGIN; {schema}; {mark}; COMMIT")
        if not is_remote(path.parent):
            # SQLite itself stays with the rollback journal where it cannot share memory.
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
    finally:
        connection.close()
    fresh.rename(path)
    sync_directory(path.parent)


def _inspect(path: Path, known: int) -> None:
    """Refuse what is no database, not ours or newer than this wolo, without changing a byte of it."""
    if path.stat().st_size == 0:
        raise damaged(path, "the file is empty")
    # Through SQLite and not with open(): closing any other descriptor of the file would drop this process's locks on it.
    # `immutable` leaves no trace, but does not see the log, and a checkpoint that was cut short leaves half the truth there.
    log = path.with_name(f"{path.name}-wal")
    how = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)) as connection:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID or version < 1:
        raise damaged(path, "it is not a session database of wolo")
    if version > known:
        raise SessionError(
            f"{path} was written by a newer wolo (its format is {version}, this one knows {known}).",
            hint="Upgrade wolo. The file was not touched.",
        )


def _prepare(connection: sqlite3.Connection, path: Path, steps: Sequence[migrations.Step]) -> list[str]:
    """What a connection needs to know about the file it has opened."""
    warnings = []
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    if journal != "wal":
        # With a rollback journal only EXTRA also makes the journal's removal last.
        connection.execute("PRAGMA synchronous = EXTRA")
        warnings.append(
            f"{path.parent} is not a local disk: sessions are kept there more slowly. WOLO_HOME can name another place."
        )
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version <= len(steps):
        warnings.append(migrations.migrate(connection, path, version, steps))
    return warnings
