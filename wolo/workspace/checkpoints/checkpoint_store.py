"""Stores file contents and changes for undo, in one SQLite file per workspace."""

from __future__ import annotations

import sqlite3
import sys
import time
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from wolo.errors import ToolError
from wolo.operating_system import os
from wolo.places import make_private
from wolo.workspace.checkpoints.path_state import PathChange, RecordedChange, State, digest
from wolo.workspace.files.sqlite_connection import SQLITE_ERRORS, SqliteError, is_damage, open_sqlite, reason_of

BUSY_MS = 20_000
"""Another wolo may be making its first scan."""
_VERSION = 1
_SCHEMA = """
CREATE TABLE objects (hash BLOB PRIMARY KEY, packed INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE folders (path BLOB PRIMARY KEY, listing BLOB NOT NULL);
CREATE TABLE changes (
    id INTEGER PRIMARY KEY, session TEXT NOT NULL, turn TEXT NOT NULL, call TEXT NOT NULL, source TEXT NOT NULL,
    step INTEGER NOT NULL, at REAL NOT NULL, path BLOB NOT NULL,
    before_kind TEXT NOT NULL, before_hash BLOB NOT NULL, before_mode INTEGER NOT NULL,
    after_kind TEXT NOT NULL, after_hash BLOB NOT NULL, after_mode INTEGER NOT NULL
);
CREATE INDEX changes_by_turn ON changes (turn);
CREATE INDEX changes_by_path ON changes (path);
CREATE TABLE running (
    id INTEGER PRIMARY KEY, session TEXT NOT NULL, turn TEXT NOT NULL, call TEXT NOT NULL, owner TEXT NOT NULL,
    changes INTEGER NOT NULL, runs_on INTEGER NOT NULL, breath TEXT NOT NULL
);
CREATE TABLE steps (id INTEGER PRIMARY KEY, session TEXT NOT NULL, turns TEXT NOT NULL, done INTEGER NOT NULL, at REAL NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
NOT_SAVED = "Cannot save the present state for undo: {reason}. Nothing was changed."
NOT_READ = "Cannot read the undo data: {reason}."


class Damaged(ToolError):
    """The file is unreadable and can be moved aside."""


def store_path(folder: Path, root: Path) -> Path:
    """Path of the file for a workspace, given by its real path."""
    name = "".join(letter if letter.isalnum() else "-" for letter in root.name)[:40] or "root"
    return folder / f"{name}-{sha256(os.fsencode(root)).hexdigest()[:16]}.db"


def connect(path: Path) -> sqlite3.Connection:
    # SQLite would use the umask, and gives its journal the database's mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    path.chmod(0o600)
    connection = open_sqlite(path)
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        # A rollback journal: nothing waits for a checkpoint, and no version of SQLite loses data in it.
        connection.execute("PRAGMA journal_mode = PERSIST").fetchone()
        connection.execute(f"PRAGMA journal_size_limit = {4 << 20}").fetchone()
        connection.execute("PRAGMA synchronous = FULL")
        if sys.platform == "darwin":
            connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            connection.execute("BEGIN IMMEDIATE")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in _SCHEMA.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute("COMMIT")
        elif version != _VERSION:
            raise sqlite3.OperationalError(f"{path.name} was written by another version of wolo")
    except BaseException:
        connection.close()
        raise
    return connection


def set_aside(path: Path) -> None:
    """Moves a damaged file aside, so that undo works for later changes."""
    path.replace(path.with_name(f"{path.name}.damaged"))
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)


def store_error(error: SqliteError, text: str) -> ToolError:
    reason = reason_of(error)
    if "full" in reason:
        reason = "the disk is full"
    elif "locked" in reason or "busy" in reason:
        reason = "another wolo is using it"
    return (Damaged if is_damage(error) else ToolError)(text.format(reason=reason))


_LEAST_PACKED_BYTES = 200
_COLUMNS = (
    "id, session, turn, call, source, step, path, before_kind, before_hash, before_mode, after_kind, after_hash, after_mode"
)


class RunningCommand(NamedTuple):
    """A command that has not ended as far as is known."""

    id: int
    session: str
    turn: str
    call: str
    owner: str
    last_change: int
    """Id of the last change before it began."""
    runs_on: int
    """It left processes running."""
    kill_marker: str
    """File name of the kill marker; empty without one."""


class CheckpointStore:
    """May be used from any thread. A `writing` block is durable when it ends, or rolled back."""

    def __init__(self, path: Path) -> None:
        """Raises OSError or SQLITE_ERRORS."""
        self.path = path
        self._lock = RLock()
        self.replaces_damaged = False
        """A damaged file was moved aside for this one."""
        make_private(path.parent)
        path.parent.chmod(0o700)
        try:
            self._connection = connect(path)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise
            set_aside(path)
            self.replaces_damaged = True
            self._connection = connect(path)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raises ToolError when the disk refuses it."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException as error:
                with suppress(*SQLITE_ERRORS):
                    self._connection.execute("ROLLBACK")
                if isinstance(error, SQLITE_ERRORS):
                    raise store_error(error, NOT_SAVED) from error
                raise

    def set_aside(self) -> None:
        """Closes the store and moves its file aside."""
        self.close()
        set_aside(self.path)

    def _fetch(self, query: str, values: Sequence[str | int | float | bytes] = ()) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except SQLITE_ERRORS as error:
                raise store_error(error, NOT_READ) from error

    def save(self, data: bytes) -> bytes:
        """Stores content; returns its hash."""
        key = digest(data)
        with self._lock:
            if self._connection.execute("SELECT 1 FROM objects WHERE hash = ?", (key,)).fetchone() is None:
                packed = zlib.compress(data, 1) if len(data) >= _LEAST_PACKED_BYTES else data
                is_packed = len(packed) < len(data)
                row = (key, is_packed, packed if is_packed else data)
                self._connection.execute("INSERT INTO objects (hash, packed, data) VALUES (?, ?, ?)", row)
        return key

    def content(self, key: bytes) -> bytes | None:
        """None when it is missing or damaged."""
        if not (found := self._fetch("SELECT packed, data FROM objects WHERE hash = ?", (key,))):
            return None
        (row,) = found
        try:
            data = zlib.decompress(row[1]) if row[0] else bytes(row[1])
        except zlib.error:
            return None
        return data if digest(data) == key else None

    def add(self, noted: Iterable[RecordedChange]) -> None:
        rows: list[tuple[str | int | float | bytes, ...]] = []
        for each in noted:
            whose = (each.session, each.turn, each.call, each.source, each.step, time.time())
            rows.append((*whose, os.fsencode(each.change.path), *each.change.before, *each.change.after))
        with self._lock:
            self._connection.executemany(
                "INSERT INTO changes (session, turn, call, source, step, at, path, before_kind, before_hash, before_mode, "
                "after_kind, after_hash, after_mode) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def of_turns(self, turns: Sequence[str]) -> list[RecordedChange]:
        """In order."""
        return [noted for _, noted in self._changes(f"turn IN ({', '.join('?' * len(turns))})", turns)]

    def of_session(self, session: str) -> list[RecordedChange]:
        return [noted for _, noted in self._changes("session = ?", (session,))]

    def of_step(self, step: int) -> list[RecordedChange]:
        return [noted for _, noted in self._changes("step = ?", (step,))]

    def of_path(self, path: str, after: int) -> list[RecordedChange]:
        """After that change."""
        return [noted for _, noted in self._changes("path = ? AND id > ?", (os.fsencode(path), after))]

    def _changes(self, where: str, values: Sequence[str | int | bytes]) -> list[tuple[int, RecordedChange]]:
        with self._lock:
            rows = self._connection.execute(f"SELECT {_COLUMNS} FROM changes WHERE {where} ORDER BY id", tuple(values)).fetchall()
        return [
            (
                id,
                RecordedChange(
                    PathChange(os.fsdecode(path), State(*states[:3]), State(*states[3:])), session, turn, call, source, step
                ),
            )
            for id, session, turn, call, source, step, path, *states in rows
        ]

    def forget_session(self, session: str) -> None:
        with self.writing():
            for table in ("changes", "running", "steps"):
                self._connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))

    def begin_step(self, session: str, turns: Sequence[str]) -> int:
        with self._lock:
            row = (session, "\n".join(turns), time.time())
            made = self._connection.execute("INSERT INTO steps (session, turns, done, at) VALUES (?, ?, 0, ?)", row)
            return int(made.lastrowid or 0)

    def end_step(self, step: int) -> None:
        with self.writing():
            self._connection.execute("UPDATE steps SET done = 1 WHERE id = ?", (step,))

    def unfinished_steps(self, session: str) -> list[int]:
        return [int(row[0]) for row in self._fetch("SELECT id FROM steps WHERE session = ? AND done = 0", (session,))]

    def unfinished_step(self, session: str, turns: Sequence[str]) -> int:
        """Id of an unfinished undo of the same turns; 0 for none."""
        query = "SELECT coalesce(max(id), 0) FROM steps WHERE session = ? AND turns = ? AND done = 0"
        return int(self._fetch(query, (session, "\n".join(turns)))[0][0])

    def of_unfinished_steps(self) -> list[RecordedChange]:
        return [noted for _, noted in self._changes("step IN (SELECT id FROM steps WHERE done = 0)", ())]

    def take_over(self, unfinished: int, step: int, planned: Container[str]) -> None:
        """Moves what a killed undo has done to the undo that completes it."""
        with self._lock:
            done = [number for number, noted in self._changes("step = ?", (unfinished,)) if noted.change.path not in planned]
            self._connection.executemany("UPDATE changes SET step = ? WHERE id = ?", [(step, number) for number in done])
            self._connection.execute("DELETE FROM changes WHERE step = ?", (unfinished,))
            self._connection.execute("DELETE FROM steps WHERE id = ?", (unfinished,))

    def begin_running(self, session: str, turn: str, call: str, owner: str, kill_marker: str) -> int:
        with self._lock:
            last_change = int(self._fetch("SELECT coalesce(max(id), 0) FROM changes")[0][0])
            row = (session, turn, call, owner, last_change, kill_marker)
            query = "INSERT INTO running (session, turn, call, owner, changes, runs_on, breath) VALUES (?, ?, ?, ?, ?, 0, ?)"
            return int(self._connection.execute(query, row).lastrowid or 0)

    def running(self) -> list[RunningCommand]:
        return [RunningCommand(*row) for row in self._fetch("SELECT * FROM running ORDER BY id")]

    def leave_running(self, id: int) -> None:
        with self._lock:
            self._connection.execute("UPDATE running SET runs_on = 1 WHERE id = ?", (id,))

    def end_running(self, id: int) -> None:
        with self._lock:
            self._connection.execute("DELETE FROM running WHERE id = ?", (id,))

    def listings(self) -> list[tuple[str, bytes]]:
        return [(os.fsdecode(path), listing) for path, listing in self._fetch("SELECT path, listing FROM folders")]

    def put_listings(self, listings: Iterable[tuple[str, bytes | None]]) -> None:
        """None removes the listing of a folder."""
        with self._lock:
            for path, listing in listings:
                if listing is None:
                    self._connection.execute("DELETE FROM folders WHERE path = ?", (os.fsencode(path),))
                else:
                    query = "INSERT OR REPLACE INTO folders (path, listing) VALUES (?, ?)"
                    self._connection.execute(query, (os.fsencode(path), listing))

    def fact(self, name: str) -> str:
        found = self._fetch("SELECT value FROM facts WHERE name = ?", (name,))
        return str(found[0][0]) if found else ""

    def put_fact(self, name: str, value: str) -> None:
        with self._lock:
            self._connection.execute("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", (name, value))

    def size_bytes(self) -> int:
        with self._lock:
            (pages,), (page_bytes,) = (
                self._connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
            )
            return int(pages) * int(page_bytes)

    def drop_changes_before(self, at: float) -> None:
        with self.writing():
            self._connection.execute("DELETE FROM changes WHERE at < ?", (at,))
            self._connection.execute("DELETE FROM steps WHERE at < ?", (at,))

    def oldest_change(self) -> float:
        """Time of the oldest change; 0.0 for none."""
        return float(self._fetch("SELECT coalesce(min(at), 0) FROM changes")[0][0])

    def drop_contents(self, listed: Iterable[bytes]) -> None:
        """Removes contents needed neither by a change nor by the last scan, whose hashes are `listed`."""
        with self.writing():
            self._connection.execute("CREATE TEMP TABLE listed (hash BLOB PRIMARY KEY)")
            self._connection.executemany("INSERT OR IGNORE INTO listed VALUES (?)", ((each,) for each in listed))
            self._connection.execute(
                "DELETE FROM objects WHERE hash NOT IN (SELECT hash FROM listed UNION ALL "
                "SELECT before_hash FROM changes UNION ALL SELECT after_hash FROM changes)"
            )
            self._connection.execute("DROP TABLE listed")
        with self._lock, suppress(*SQLITE_ERRORS):
            self._connection.executescript("PRAGMA incremental_vacuum")  # `execute` would stop after the first page
