"""Reads and adds the raw rows of a session, for export and import."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from wolo.errors import SessionError
from wolo.messages.message import Usage
from wolo.messages.unicode import whole
from wolo.sessions import blobs, listing, session_rows
from wolo.sessions import session_rows as rows
from wolo.sessions.database import Database, ReadOnlyDatabase
from wolo.sessions.entries import (
    CompactionEntry,
    MessageEntry,
    ResultsEntry,
    SettingEntry,
    StoredRow,
    spent_on_tasks,
)
from wolo.sessions.listing import SessionInfo
from wolo.sessions.locks import Held, SessionLocks, take
from wolo.sessions.session_rows import check_id, check_name, title_of
from wolo.sessions.storage import Damaged, retrying

PAGE_ROWS = 64
"""So many are read, or committed, at a time: with the limit of a row some megabytes at most."""
NO_KIND = "unknown"
RECORD = ".import"
"""How the name of the file ends that says where an imported session came from."""

_PAGE = (
    "SELECT seq, parent, time_utc, prev_hash, hash, CAST(body AS BLOB), blob FROM entries "
    f"WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT {PAGE_ROWS}"
)


class _Kind(Struct):
    kind: str = NO_KIND


class Facts(Struct, frozen=True, kw_only=True):
    """What a session that is put in is called, and where it belongs; what is empty is found in its entries."""

    id: str
    cwd: str
    name: str | None = None
    title: str = ""
    model: str = ""
    mode: str = ""
    created: float = 0.0
    updated: float = 0.0
    parent: str | None = None
    head: int = 0
    """0: the last entry."""


class Tally:
    """What a listing shows of a session, counted from its entries as they pass."""

    def __init__(self) -> None:
        self.turns = 0
        self.tokens = 0
        self.cost: float | None = 0.0
        self.title = ""
        self.model = ""
        self.mode = ""
        self.last = 0

    def add(self, row: StoredRow) -> None:
        self.last = max(self.last, row.seq)
        entry = row.entry
        if isinstance(entry, MessageEntry):
            self._spend(entry.message.usage)
            if entry.message.is_prompt:
                self.turns += 1
                self.title = self.title or title_of(entry.message.text)
        elif isinstance(entry, CompactionEntry):
            self._spend(entry.usage)
        elif isinstance(entry, ResultsEntry):
            for usage in spent_on_tasks(entry):
                self._spend(usage)
        elif isinstance(entry, SettingEntry) and entry.name in ("model", "mode"):
            setattr(self, entry.name, whole(entry.value))

    def _spend(self, usage: Usage | None) -> None:
        if usage:
            self.tokens += usage.context_tokens
            self.cost = None if self.cost is None or usage.cost is None else self.cost + usage.cost.total


def read_page(connection: sqlite3.Connection, blobs_dir: Path, session_id: str, after: int, last: int) -> list[StoredRow]:
    return [_row(blobs_dir, *values) for values in connection.execute(_PAGE, (session_id, after, last))]


def output_names(connection: sqlite3.Connection, session_id: str) -> Iterator[str]:
    """Names of the files that belong to the session and hold no entry."""
    entries = {
        blob for (blob,) in connection.execute("SELECT blob FROM entries WHERE session = ? AND blob NOT NULL", (session_id,))
    }
    return (name for name in sorted(blobs.of(connection, session_id)) if name not in entries and not name.endswith(RECORD))


def kind_of(body: bytes | None) -> str:
    try:
        return msgspec.json.decode(body or b"{}", type=_Kind).kind
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return NO_KIND


def in_pages(rows: Iterable[StoredRow]) -> Iterator[list[StoredRow]]:
    page: list[StoredRow] = []
    for row in rows:
        page.append(row)
        if len(page) == PAGE_ROWS:
            yield page
            page = []
    if page:
        yield page


def _row(
    blobs_dir: Path, seq: int, parent: object, time_utc: object, prev_hash: object, digest: object, body: object, blob: object
) -> StoredRow:
    if isinstance(blob, str):
        try:
            body = (blobs_dir / check_id(blob)).read_bytes()
        except (OSError, SessionError):
            body = None
    return StoredRow(
        seq,
        0 if parent is None else parent if isinstance(parent, int) else -1,
        time_utc if isinstance(time_utc, float) else 0.0,
        prev_hash if isinstance(prev_hash, bytes) else b"",
        digest if isinstance(digest, bytes) else b"",
        body if isinstance(body, bytes) else None,
    )


_FROM = "SELECT blobs.session FROM blobs JOIN sessions ON sessions.id = blobs.session WHERE blobs.name = ? AND head {} 0"
_FACTS = "name = ?, title = ?, model = ?, mode = ?, turns = ?, tokens = ?, cost = ?, parent = ?, head = ?"


class Adoption:
    """Until the last commit the session has no head: it is empty for everybody, and a run that died is taken away by the next."""

    def __init__(self, database: Database | ReadOnlyDatabase, blobs_dir: Path, facts: Facts, origin: bytes) -> None:
        self._database = database
        self._blobs_dir = blobs_dir
        self._facts = facts
        self._origin = origin

    def run(self, found: Iterable[StoredRow], locks: SessionLocks) -> SessionInfo:
        """The session's lock must be held."""
        self._clear(locks)
        tally = Tally()
        self._begin()
        try:
            for page in in_pages(found):
                for row in page:
                    tally.add(row)
                with self._database.writing() as connection:
                    for row in page:
                        session_rows.insert(connection, self._blobs_dir, self._facts.id, kind_of(row.body), row)
            return self._finish(tally)
        except BaseException:
            self._forget(self._facts.id)
            raise

    def _clear(self, locks: SessionLocks) -> None:
        with self._database.reading() as connection:
            unfinished = connection.execute(_FROM.format("="), (blobs.name_of(self._origin, RECORD),)).fetchall()
        for (session_id,) in unfinished:
            if session_id == self._facts.id or not locks.is_live(session_id):
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
            blobs.keep(self._blobs_dir, connection, facts.id, self._origin, RECORD)

    def _forget(self, session_id: str) -> None:
        with self._database.writing() as connection:
            names = blobs.of(connection, session_id)
            for table, column in (("entries", "session"), ("blobs", "session"), ("sessions", "id")):
                connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (session_id,))
        with self._database.writing() as connection:
            blobs.drop_unneeded(self._blobs_dir, connection, names)

    def _finish(self, tally: Tally) -> SessionInfo:
        facts = self._facts
        said = (facts.title or tally.title, facts.model or tally.model, facts.mode or tally.mode)
        counted = (tally.turns, tally.tokens, tally.cost)
        with self._database.writing() as connection:
            known = (facts.name, *said, *counted, facts.parent, facts.head or tally.last)
            connection.execute(f"UPDATE sessions SET {_FACTS} WHERE id = ?", (*known, facts.id))
            session_rows.touch(connection, facts.id)
            return session_rows.require(connection, facts.id)


def find_by_origin(connection: sqlite3.Connection, origin: bytes) -> SessionInfo | None:
    """A fork has the same files: the one that was there first counts."""
    query = _FROM.format(">") + " ORDER BY sessions.parent NOT NULL, sessions.touched LIMIT 1"
    row = connection.execute(query, (blobs.name_of(origin, RECORD),)).fetchone()
    return listing.read(connection, row[0]) if row else None


def read_origin(connection: sqlite3.Connection, blobs_dir: Path, session_id: str) -> bytes:
    for name in blobs.of(connection, session_id):
        if name.endswith(RECORD):
            try:
                return (blobs_dir / name).read_bytes()
            except OSError:
                break
    return b""


ADOPTION_WAIT_S = 60.0
"""A session of hundreds of megabytes is taken in sooner."""


@retrying(but=("mend", "adopt", "alone"))
class Archive:
    """`Store.archive`; what holds for the methods of the store holds for these."""

    def __init__(
        self,
        database: Database | ReadOnlyDatabase,
        blobs_dir: Path,
        *,
        locks: SessionLocks,
        mend: Callable[[Damaged], bool],
    ) -> None:
        self._database = database
        self._blobs_dir = blobs_dir
        self._locks = locks
        self.mend = mend

    def rows(self, session_id: str) -> Iterator[StoredRow]:
        """All rows of all branches as they are when this is called, a few at a time, in the order in which they were added."""
        _, last = self.ends(session_id)
        return self._pages(session_id, last)

    def has(self, session_id: str) -> bool:
        with self._database.reading() as connection:
            return listing.read(connection, session_id) is not None

    def ends(self, session_id: str) -> tuple[int, int]:
        """The place of the entry that the next one follows, and of the one that was added last."""
        with self._database.reading() as connection:
            return rows.head_and_last(connection, session_id)

    def places(self, session_id: str) -> list[tuple[int, object]]:
        """Of every entry its place and that of the entry it follows, as they are written down."""
        with self._database.reading() as connection:
            return connection.execute("SELECT seq, parent FROM entries WHERE session = ?", (session_id,)).fetchall()

    def outputs(self, session_id: str) -> tuple[Path, ...]:
        """The files beside the database that `kept_blob` has made for it, by name."""
        with self._database.reading() as connection:
            return tuple(self._blobs_dir / name for name in output_names(connection, session_id))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else adopts meanwhile: what is looked up in here (an id, a name, an origin) still holds when it is adopted."""
        try:
            descriptor = take(self._blobs_dir.with_name("import.lock"), ADOPTION_WAIT_S)
        except Held as other:
            raise SessionError("Another wolo is importing a session.", hint="Try again when it is done.") from other
        try:
            yield
        finally:
            os.close(descriptor)

    def adopt(self, facts: Facts, origin: bytes, found: Iterable[StoredRow]) -> SessionInfo:
        """A session made elsewhere, row by row, in as many commits as it takes; until the last one nothing of it shows.

        `origin` says where it came from: `adopted` finds the session by it, `origin` gives it back. Raises SessionError for
        an id that is taken; when it fails in the middle, nothing stays.
        """
        with self._locks.lock(facts.id):
            taking = Adoption(self._database, self._blobs_dir, facts, origin)
            return taking.run(found, self._locks)

    def adopted(self, origin: bytes) -> SessionInfo | None:
        """The session that came from there already."""
        with self._database.reading() as connection:
            return find_by_origin(connection, origin)

    def origin(self, session_id: str) -> bytes:
        """Where an adopted session came from; empty for one that was made here."""
        with self._database.reading() as connection:
            return read_origin(connection, self._blobs_dir, session_id)

    def touch(self, session_id: str) -> None:
        """Make it the session that was used last."""
        with self._database.writing() as connection:
            rows.touch(connection, session_id)

    def page(self, session_id: str, after: int, last: int) -> list[StoredRow]:
        """The next few rows behind a place."""
        with self._database.reading() as connection:
            return read_page(connection, self._blobs_dir, session_id, after, last)

    def _pages(self, session_id: str, last: int) -> Iterator[StoredRow]:
        after = 0
        while after < last:
            page = self.page(session_id, after, last)
            yield from page
            after = page[-1].seq if page else last
