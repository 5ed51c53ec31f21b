"""The database for search and statistics over all sessions.

It is derived: a damaged, outdated or missing file is rebuilt from the sessions. Writers and checkpoints take turns under a lock
file; readers see the last commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from wolo.errors import SessionError
from wolo.operating_system import os
from wolo.sessions import indexed_text, locks, storage
from wolo.sessions.database_file import is_remote
from wolo.sessions.entries import AnyEntry
from wolo.workspace.files.sqlite_connection import SQLITE_ERRORS, SqliteError, is_damage, open_sqlite, reason_of, transaction

FILE = "index.db"
VERSION = 3
"""A file with another version is rebuilt. Raise it when the tables or their contents change."""

_SCHEMA = """
CREATE TABLE progress (session TEXT PRIMARY KEY, seq INTEGER NOT NULL, hash BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE passages (
    id INTEGER PRIMARY KEY, session TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
    role TEXT NOT NULL, tool TEXT NOT NULL, paths TEXT NOT NULL
);
CREATE INDEX passages_by_session ON passages (session);
CREATE VIRTUAL TABLE words USING fts5 (body, pieces, columnsize = 0, tokenize = 'unicode61 remove_diacritics 2');
CREATE TABLE prompts (
    session TEXT NOT NULL, message TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (session, message)
) WITHOUT ROWID;
CREATE TABLE answers (
    session TEXT NOT NULL, message TEXT NOT NULL, at REAL NOT NULL, model TEXT NOT NULL, fresh INTEGER NOT NULL,
    cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, output INTEGER NOT NULL, reasoning INTEGER NOT NULL, cost REAL,
    PRIMARY KEY (session, message)
) WITHOUT ROWID;
CREATE TABLE calls (
    session TEXT NOT NULL, part TEXT NOT NULL, at REAL NOT NULL, tool TEXT NOT NULL, failed INTEGER NOT NULL,
    passage INTEGER NOT NULL, PRIMARY KEY (session, part)
) WITHOUT ROWID;
"""
PER_TURN_BYTES = 2_000_000
"""Limit at the end of a turn; the next search does the rest."""
_BY_SESSION = ("passages", "prompts", "answers", "calls", "progress")

TimedEntry = tuple[int, float, AnyEntry]
"""`seq`, time and entry."""


class IndexPosition(NamedTuple):
    """Position up to which a session was read: `seq` and hash of an entry."""

    seq: int
    hash: bytes


class EntrySource(Protocol):
    """Sessions to index, as `Store` has them."""

    def hash_at(self, session_id: str, seq: int) -> bytes: ...

    def read_after(self, session_id: str, after: int, most_bytes: int) -> tuple[list[TimedEntry], IndexPosition | None]: ...


class IndexDamaged(SessionError):
    """The file was removed; opening the index again rebuilds it."""


class Index:
    """A connection for one thread at a time. Every failure is a SessionError."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection

    @classmethod
    def open(cls, data_dir: Path) -> Index:
        """Creates a missing index and replaces a damaged one."""
        path = data_dir / FILE
        try:
            return cls(path, _open(path))
        except (sqlite3.DatabaseError, UnicodeDecodeError, OSError) as error:
            if isinstance(error, sqlite3.OperationalError) and not is_damage(error):
                raise _translate(error, path) from error
            _remove(path)
        try:
            return cls(path, _open(path))
        except (*SQLITE_ERRORS, OSError) as error:
            raise _translate(error, path) from error

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Raises SessionError, or its subclass IndexDamaged."""
        try:
            yield self._connection
        except SQLITE_ERRORS as error:
            if not is_damage(error):
                raise _translate(error, self.path) from error
            self._connection.close()
            _remove(self.path)
            raise IndexDamaged(f"The search index {self.path} was damaged.", hint="Try again; wolo rebuilds it.") from error

    @contextmanager
    def writing(self, wait_s: float) -> Iterator[sqlite3.Connection]:
        """Runs one transaction. Raises SessionError, also when another process writes for longer than `wait_s`."""
        with self.reading() as connection, _lock(self.path, wait_s), transaction(connection):
            yield connection

    def marks(self) -> dict[str, IndexPosition]:
        with self.reading() as connection:
            rows = connection.execute("SELECT session, seq, hash FROM progress").fetchall()
        return {session: IndexPosition(seq, digest) for session, seq, digest in rows}

    def mark(self, session_id: str) -> IndexPosition | None:
        with self.reading() as connection:
            row = connection.execute("SELECT seq, hash FROM progress WHERE session = ?", (session_id,)).fetchone()
        return IndexPosition(*row) if row else None

    def add_turn(self, source: EntrySource, session_id: str) -> None:
        """Adds the entries of a turn unless another process is writing. Raises SessionError."""
        self.add_next(source, session_id, self.mark(session_id), most_bytes=PER_TURN_BYTES, wait_s=0.0)

    def add_next(
        self, source: EntrySource, session_id: str, mark: IndexPosition | None, *, most_bytes: int, wait_s: float
    ) -> bool:
        """Adds the next entries of a session; False when there were none."""
        if mark is not None and source.hash_at(session_id, mark.seq) != mark.hash:
            # Another session has this id now, or the database was restored from a backup.
            self.forget(session_id, wait_s=wait_s)
            mark = None
        entries, end = source.read_after(session_id, mark.seq if mark else 0, most_bytes)
        if end is None:
            return False
        self.add(session_id, entries, end, wait_s=wait_s)
        return True

    def add(self, session_id: str, entries: Sequence[TimedEntry], mark: IndexPosition, *, wait_s: float) -> None:
        extracted = indexed_text.extract(entries)
        with self.writing(wait_s) as connection:
            for passage in extracted.texts:
                _add_passage(connection, session_id, passage)
            for call in extracted.calls.values():
                # It replaces what an earlier entry said of the call.
                key, passage = (session_id, call.part_id), call.passage
                before = connection.execute("SELECT passage FROM calls WHERE session = ? AND part = ?", key).fetchone()
                if before is not None:
                    connection.execute("DELETE FROM words WHERE rowid = ?", before)
                    connection.execute("DELETE FROM passages WHERE id = ?", before)
                told = (*key, passage.at, passage.tool, call.failed, _add_passage(connection, session_id, passage))
                connection.execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?, ?)", told)
            prompts = ((session_id, message_id, at) for message_id, at in extracted.prompts)
            connection.executemany("INSERT OR REPLACE INTO prompts VALUES (?, ?, ?)", prompts)
            for answer in extracted.answers:
                usage = answer.usage
                cached = (usage.cache_read_tokens, usage.cache_write_tokens)
                counts = (usage.input_tokens, *cached, usage.output_tokens, usage.reasoning_tokens)
                row = (session_id, answer.message_id, answer.at, answer.model, *counts, usage.cost.total if usage.cost else None)
                connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            connection.execute("INSERT OR REPLACE INTO progress VALUES (?, ?, ?)", (session_id, *mark))

    def forget(self, session_id: str, *, wait_s: float) -> None:
        with self.writing(wait_s) as connection:
            connection.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE session = ?)", (session_id,))
            for table in _BY_SESSION:
                connection.execute(f"DELETE FROM {table} WHERE session = ?", (session_id,))

    def close(self) -> None:
        # The last connection checkpoints on close, which is a write.
        with suppress(SessionError), _lock(self.path, 0.5), suppress(*SQLITE_ERRORS):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._connection.close()
        with suppress(*SQLITE_ERRORS):
            self._connection.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def forget(data_dir: Path, session_id: str) -> None:
    """Removes a deleted session. What fails is made up for by the next search."""
    if (data_dir / FILE).exists():
        with suppress(SessionError), Index.open(data_dir) as index:
            index.forget(session_id, wait_s=1.0)


def _open(path: Path) -> sqlite3.Connection:
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = open_sqlite(path)
    try:
        connection.execute("PRAGMA busy_timeout = 2000")
        # NORMAL may lose the last commits on power failure; they are rebuilt from the sessions.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        if _version(connection) != VERSION:
            with _lock(path, 2.0):
                version = _version(connection)
                if version != VERSION:  # else another process was faster
                    if version:
                        raise sqlite3.DatabaseError("outdated")
                    if not is_remote(path.parent):
                        connection.execute("PRAGMA journal_mode = WAL").fetchone()
                    connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA}; PRAGMA user_version = {VERSION}; COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _add_passage(connection: sqlite3.Connection, session_id: str, passage: indexed_text.Passage) -> int:
    row = (session_id, passage.seq, passage.at, passage.role, passage.tool.casefold(), passage.paths)
    added = connection.execute("INSERT INTO passages (session, seq, at, role, tool, paths) VALUES (?, ?, ?, ?, ?, ?)", row)
    texts = (added.lastrowid, passage.body, passage.pieces)
    connection.execute("INSERT INTO words (rowid, body, pieces) VALUES (?, ?, ?)", texts)
    assert added.lastrowid is not None
    return added.lastrowid


def _lock(path: Path, wait_s: float) -> AbstractContextManager[None]:
    return locks.hold(path.with_suffix(".lock"), wait_s, "Another wolo is updating the search index.", "Try again in a moment.")


def _remove(path: Path) -> None:
    with suppress(SessionError, OSError), _lock(path, 2.0):
        for suffix in ("-wal", "-shm", ""):
            path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


def _translate(error: SqliteError | OSError, path: Path) -> SessionError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if isinstance(error, OSError) or code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY):
        return storage.storage_error(error, path)
    if "fts5" in str(error) and "module" in str(error):
        return SessionError("The SQLite of this Python has no full-text search (FTS5).", hint="Use another build of Python.")
    return SessionError(f"The search index {path} cannot be used: {reason_of(error)}.", hint="Delete it; wolo rebuilds it.")
