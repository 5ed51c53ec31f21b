"""Stores large values as files, named by content and shared between sessions."""

from __future__ import annotations

import re
import sqlite3
from hashlib import blake2b
from pathlib import Path

from wolo.operating_system import os
from wolo.sessions.storage import sync

INCOMING = ".incoming"
"""A file is written under this name and then renamed. Writers hold the database lock, so one name is enough."""

_IS_USED = "session IN (SELECT id FROM sessions)"


def add(folder: Path, connection: sqlite3.Connection, session_id: str, data: bytes, suffix: str = "") -> Path:
    """Stores a file for a session, durable on return. Needs a write transaction."""
    name = name_of(data, suffix)
    path = folder / name
    if not path.exists():
        incoming = folder / INCOMING
        incoming.unlink(missing_ok=True)
        descriptor = os.open(incoming, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            try:
                os.fchmod(descriptor, 0o600)
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            incoming.rename(path)
        except BaseException:
            clear_unfinished(folder)
            raise
        sync(folder)
    connection.execute("INSERT OR IGNORE INTO blobs (session, name) VALUES (?, ?)", (session_id, name))
    return path


def name_of(data: bytes, suffix: str = "") -> str:
    return f"{blake2b(data, digest_size=16).hexdigest()}{suffix}"


def clear_unfinished(folder: Path) -> None:
    """Removes what a killed writer left. Needs a write transaction."""
    (folder / INCOMING).unlink(missing_ok=True)


def names_of(connection: sqlite3.Connection, session_id: str) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM blobs WHERE session = ?", (session_id,))]


def used_names(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute(f"SELECT DISTINCT name FROM blobs WHERE {_IS_USED}")}


def delete_unused(folder: Path, connection: sqlite3.Connection) -> None:
    """Removes files and rows of sessions that were deleted, as far as no other session needs them. Needs a write transaction."""
    used = used_names(connection)
    for (name,) in connection.execute(f"SELECT DISTINCT name FROM blobs WHERE NOT {_IS_USED}").fetchall():
        if name not in used:
            (folder / name).unlink(missing_ok=True)
    connection.execute(f"DELETE FROM blobs WHERE NOT {_IS_USED}")


def suffix(name: str) -> str:
    """Makes a safe end of a file name from a name given by the user or the model."""
    return "-" + re.sub(r"[^A-Za-z0-9._-]+", "_", name)[-60:].lstrip("._-")
