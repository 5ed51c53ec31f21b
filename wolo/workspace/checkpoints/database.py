"""The SQLite file of a workspace: made for its owner alone, and what its faults mean."""

from __future__ import annotations

import os
import sqlite3
import sys
from hashlib import sha256
from pathlib import Path

from wolo.errors import ToolError

BUSY_MS = 20_000
"""Another wolo may be taking its first look."""
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
NOT_SAVED = "What is there now could not be saved for an undo ({reason}); nothing was changed."
NOT_READ = "What is kept for an undo cannot be read: {reason}."


class Damaged(ToolError):
    """The file holds nonsense; it can be set aside."""


def place(folder: Path, root: Path) -> Path:
    """The file for the workspace at this real path."""
    name = "".join(letter if letter.isalnum() else "-" for letter in root.name)[:40] or "root"
    return folder / f"{name}-{sha256(os.fsencode(root)).hexdigest()[:16]}.db"


def connect(path: Path) -> sqlite3.Connection:
    # Made here: SQLite would let the umask decide, and gives its journal the mode of the database.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    path.chmod(0o600)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        # A rollback journal, not a log: nothing waits to be moved over, and no version of SQLite loses what it holds.
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
    """A damaged file is no reason to work without undo from now on."""
    path.replace(path.with_name(f"{path.name}.damaged"))
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)


def as_told(error: sqlite3.Error, words: str) -> ToolError:
    is_damage = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
    return (Damaged if is_damage else ToolError)(words.format(reason=_reason(error)))


def _reason(error: sqlite3.Error) -> str:
    text = str(error)
    if "full" in text:
        return "the disk is full"
    return "another wolo is busy with it" if "locked" in text or "busy" in text else text
