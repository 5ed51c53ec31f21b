"""Opens SQLite files so that every sign of damage is an `sqlite3.DatabaseError` with a damage code."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_DAMAGES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOST = r"no such (table|column|index)|has no column named|has \d+ columns but|unsupported file format"


def open_sqlite(path: Path | str, *, wait_s: float = 5.0) -> sqlite3.Connection:
    """`path` may be a `file:` URI. For any thread, without implicit transactions; bytes that are not UTF-8 become U+FFFD."""
    is_uri = isinstance(path, str) and path.startswith("file:")
    connection = sqlite3.connect(
        path, uri=is_uri, timeout=wait_s, isolation_level=None, check_same_thread=False, factory=_SqliteConnection
    )
    connection.text_factory = _read_text
    return connection


def is_damage(error: sqlite3.Error) -> bool:
    """Also true where a table or column is gone. Not for statements in a user's words, such as a full-text query."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code in _DAMAGES or (code == sqlite3.SQLITE_ERROR and re.search(_LOST, str(error)) is not None)


@contextmanager
def _damage_named() -> Iterator[None]:
    """SQLite quotes the schema in its messages, and Python raises UnicodeDecodeError where a damaged one is not UTF-8."""
    try:
        yield
    except UnicodeDecodeError as error:
        damage = sqlite3.DatabaseError(_read_text(error.object))
        damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damage from error


class _Cursor(sqlite3.Cursor):
    def execute(self, *args: Any) -> _Cursor:
        with _damage_named():
            super().execute(*args)
        return self

    def executemany(self, *args: Any) -> _Cursor:
        with _damage_named():
            super().executemany(*args)
        return self

    def executescript(self, *args: Any) -> _Cursor:
        with _damage_named():
            super().executescript(*args)
        return self

    def fetchone(self) -> Any:
        with _damage_named():
            return super().fetchone()

    def fetchall(self) -> list[Any]:
        with _damage_named():
            return super().fetchall()

    def __next__(self) -> Any:
        try:  # called for every row
            return super().__next__()
        except UnicodeDecodeError:
            with _damage_named():
                raise


class _SqliteConnection(sqlite3.Connection):
    def execute(self, *args: Any) -> _Cursor:
        return self.cursor(_Cursor).execute(*args)

    def executemany(self, *args: Any) -> _Cursor:
        return self.cursor(_Cursor).executemany(*args)

    def executescript(self, *args: Any) -> _Cursor:
        return self.cursor(_Cursor).executescript(*args)

    def backup(self, *args: Any, **kwargs: Any) -> None:
        with _damage_named():
            super().backup(*args, **kwargs)


def _read_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
