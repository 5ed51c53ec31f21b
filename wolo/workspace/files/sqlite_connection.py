"""Opens SQLite files, and recognises their damage."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""SQLite quotes the schema in its messages, and Python raises UnicodeDecodeError where a damaged one is not UTF-8."""
SqliteError = sqlite3.Error | UnicodeDecodeError

_DAMAGES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOST = r"no such (table|column|index)|has no column named|has \d+ columns but|unsupported file format"


def open_sqlite(path: Path | str, *, wait_s: float = 5.0) -> sqlite3.Connection:
    """`path` may be a `file:` URI. For any thread, without implicit transactions; bytes that are not UTF-8 become U+FFFD.

    Its statements and their rows raise SQLITE_ERRORS.
    """
    is_uri = isinstance(path, str) and path.startswith("file:")
    connection = sqlite3.connect(path, uri=is_uri, timeout=wait_s, isolation_level=None, check_same_thread=False)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that writes, committed when the block ends; rolled back on an exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def placeholders(values: Collection[object]) -> str:
    """A parameter for each value."""
    return ", ".join("?" * len(values))


def is_damage(error: SqliteError) -> bool:
    """Also true where a table or column is gone. Not for statements in a user's words, such as a full-text query."""
    if isinstance(error, UnicodeDecodeError):
        return True
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code in _DAMAGES or (code == sqlite3.SQLITE_ERROR and re.search(_LOST, str(error)) is not None)


def reason_of(error: SqliteError) -> str:
    """Returns SQLite's message."""
    return error.object.decode("utf-8", "replace") if isinstance(error, UnicodeDecodeError) else str(error)
