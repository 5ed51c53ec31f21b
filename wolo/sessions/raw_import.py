"""A session that was made elsewhere, taken in row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from wolo.sessions import blobs, listing, raw_rows, session_rows
from wolo.sessions.database import Database
from wolo.sessions.listing import SessionInfo
from wolo.sessions.names import check_id, check_name

if TYPE_CHECKING:
    from wolo.sessions.read_only import ReadOnlyDatabase

_FROM = "SELECT blobs.session FROM blobs JOIN sessions ON sessions.id = blobs.session WHERE blobs.name = ? AND head {} 0"
_FACTS = "name = ?, title = ?, model = ?, mode = ?, turns = ?, tokens = ?, cost = ?, parent = ?, head = ?"


class Adoption:
    """Until the last commit the session has no head: it is empty for everybody, and a run that died is taken away by the next."""

    def __init__(self, database: Database | ReadOnlyDatabase, blobs_dir: Path, facts: raw_rows.Facts, origin: bytes) -> None:
        self._database = database
        self._blobs_dir = blobs_dir
        self._facts = facts
        self._origin = origin

    def run(self, found: Iterable[raw_rows.RawRow], *, row_limit: int, is_live: Callable[[str], bool]) -> SessionInfo:
        """The session's lock must be held."""
        self._clear(is_live)
        tally = raw_rows.Tally()
        self._begin()
        try:
            for page in raw_rows.in_pages(found):
                for row in page:
                    tally.add(row)
                with self._database.writing() as connection:
                    raw_rows.insert(connection, self._blobs_dir, self._facts.id, page, row_limit)
            return self._finish(tally)
        except BaseException:
            self._forget(self._facts.id)
            raise

    def _clear(self, is_live: Callable[[str], bool]) -> None:
        with self._database.reading() as connection:
            unfinished = connection.execute(_FROM.format("="), (blobs.name_of(self._origin, raw_rows.RECORD),)).fetchall()
        for (session_id,) in unfinished:
            if session_id == self._facts.id or not is_live(session_id):
                self._forget(session_id)

    def _begin(self) -> None:
        facts = self._facts
        with self._database.writing() as connection:
            session_rows.require_free(connection, check_id(facts.id), check_name(facts.name) if facts.name else None)
            connection.execute(
                "INSERT INTO sessions (id, cwd, created, updated, touched) "
                "VALUES (?, ?, ?, ?, (SELECT coalesce(max(touched), 0) + 1 FROM sessions))",
                (facts.id, facts.cwd, facts.created, facts.updated),
            )
            blobs.keep(self._blobs_dir, connection, facts.id, self._origin, raw_rows.RECORD)

    def _forget(self, session_id: str) -> None:
        with self._database.writing() as connection:
            names = blobs.of(connection, session_id)
            for table, column in (("entries", "session"), ("blobs", "session"), ("sessions", "id")):
                connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (session_id,))
        with self._database.writing() as connection:
            blobs.drop_unneeded(self._blobs_dir, connection, names)

    def _finish(self, tally: raw_rows.Tally) -> SessionInfo:
        facts = self._facts
        said = (facts.title or tally.title, facts.model or tally.model, facts.mode or tally.mode)
        counted = (tally.turns, tally.tokens, tally.cost)
        with self._database.writing() as connection:
            known = (facts.name, *said, *counted, facts.parent, facts.head or tally.last)
            connection.execute(f"UPDATE sessions SET {_FACTS} WHERE id = ?", (*known, facts.id))
            session_rows.touch(connection, facts.id)
            return session_rows.require(connection, facts.id)


def find(connection: sqlite3.Connection, origin: bytes) -> SessionInfo | None:
    """A fork has the same files: the one that was there first counts."""
    query = _FROM.format(">") + " ORDER BY sessions.parent NOT NULL, sessions.touched LIMIT 1"
    row = connection.execute(query, (blobs.name_of(origin, raw_rows.RECORD),)).fetchone()
    return listing.read(connection, row[0]) if row else None


def origin(connection: sqlite3.Connection, blobs_dir: Path, session_id: str) -> bytes:
    for name in blobs.of(connection, session_id):
        if name.endswith(raw_rows.RECORD):
            try:
                return (blobs_dir / name).read_bytes()
            except OSError:
                break
    return b""
