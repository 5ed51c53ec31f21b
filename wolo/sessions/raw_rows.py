"""Reads and adds the raw rows of a session, for export and import."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path

from msgspec import Struct

from wolo.errors import SessionError
from wolo.formats.tolerant_json import read_as
from wolo.messages import message, unicode
from wolo.sessions import blobs, listing, session_rows, storage
from wolo.sessions.database import Database, ReadOnlyDatabase, retry_after_repair
from wolo.sessions.entries import CompactionEntry, MessageEntry, ResultsEntry, SettingEntry
from wolo.sessions.listing import SessionInfo
from wolo.sessions.locks import SessionLocks, hold
from wolo.sessions.session_rows import StoredRow, check_id, check_name, subagent_usages, title_of

PAGE_ROWS = 64
"""Rows read or committed at a time: some megabytes at most, given the row limit."""
NO_KIND = "unknown"
RECORD = ".import"
"""Suffix of the file that says where an imported session came from."""

_PAGE = (
    "SELECT seq, parent, time_utc, prev_hash, hash, CAST(body AS BLOB), blob FROM entries "
    f"WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT {PAGE_ROWS}"
)


class _Kind(Struct):
    kind: str = NO_KIND


class SessionFields(Struct, frozen=True, kw_only=True):
    """Fields of a session to be imported. Empty ones are derived from its entries."""

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
    """0 for the last entry."""


class SessionTotals(Struct):
    """Figures for the listing, counted over the entries of a session."""

    turns: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    title: str = ""
    model: str = ""
    mode: str = ""
    last: int = 0

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
            for usage in subagent_usages(entry):
                self._spend(usage)
        elif isinstance(entry, SettingEntry) and entry.name in ("model", "mode"):
            setattr(self, entry.name, unicode.whole(entry.value))

    def _spend(self, usage: message.Usage | None) -> None:
        if usage:
            self.tokens += usage.context_tokens
            self.cost = None if self.cost is None or usage.cost is None else self.cost + usage.cost.total


def kind_of(body: bytes | None) -> str:
    entry = read_as(body or b"{}", _Kind)
    return entry.kind if entry else NO_KIND


_FROM = "SELECT blobs.session FROM blobs JOIN sessions ON sessions.id = blobs.session WHERE blobs.name = ? AND head {} 0"
_FACTS = "name = ?, title = ?, model = ?, mode = ?, turns = ?, tokens = ?, cost = ?, parent = ?, head = ?"


class SessionImport:
    """Imports one session. It has no head, and so looks empty, until the last commit; the next import removes an aborted one."""

    def __init__(self, database: Database | ReadOnlyDatabase, blobs_dir: Path, facts: SessionFields, origin: bytes) -> None:
        self._database, self._blobs_dir, self._facts, self._origin = database, blobs_dir, facts, origin

    def run(self, rows: Iterable[StoredRow], locks: SessionLocks) -> SessionInfo:
        """Needs the session's lock."""
        facts, tally = self._facts, SessionTotals()
        with self._database.reading() as connection:
            unfinished = connection.execute(_FROM.format("="), (blobs.name_of(self._origin, RECORD),)).fetchall()
        for (session_id,) in unfinished:
            if session_id == facts.id or not locks.is_live(session_id):
                self._delete(session_id)
        with self._database.writing() as connection:
            listing.require_free(connection, check_id(facts.id), check_name(facts.name) if facts.name else None)
            connection.execute(
                "INSERT INTO sessions (id, cwd, created, updated, touched) "
                "VALUES (?, ?, ?, ?, (SELECT coalesce(max(touched), 0) + 1 FROM sessions))",
                (facts.id, facts.cwd, facts.created, facts.updated),
            )
            blobs.add(self._blobs_dir, connection, facts.id, self._origin, RECORD)
        try:
            waiting = iter(rows)
            while page := [*islice(waiting, PAGE_ROWS)]:
                for row in page:
                    tally.add(row)
                with self._database.writing() as connection:
                    for row in page:
                        session_rows.insert(connection, self._blobs_dir, facts.id, kind_of(row.body), row)
            texts = (facts.title or tally.title, facts.model or tally.model, facts.mode or tally.mode)
            with self._database.writing() as connection:
                counted = (tally.turns, tally.tokens, tally.cost, facts.parent, facts.head or tally.last)
                connection.execute(f"UPDATE sessions SET {_FACTS} WHERE id = ?", (facts.name, *texts, *counted, facts.id))
                session_rows.touch(connection, facts.id)
                return listing.require(connection, facts.id)
        except BaseException:
            self._delete(facts.id)
            raise

    def _delete(self, session_id: str) -> None:
        with self._database.writing() as connection:
            for table, column in (("entries", "session"), ("sessions", "id")):
                connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (session_id,))
        with self._database.writing() as connection:
            blobs.delete_unused(self._blobs_dir, connection)


IMPORT_WAIT_S = 60.0
"""Longer than the import of a session of hundreds of megabytes takes."""


@retry_after_repair(exclude=("repair", "import_rows", "import_lock"))
class RawRows:
    """Row access for exports and imports, as `Store.raw`."""

    def __init__(
        self,
        database: Database | ReadOnlyDatabase,
        blobs_dir: Path,
        *,
        locks: SessionLocks,
        repair: Callable[[storage.DatabaseDamaged], bool],
    ) -> None:
        self._database, self._blobs_dir, self._locks, self.repair = database, blobs_dir, locks, repair

    def rows(self, session_id: str) -> Iterator[StoredRow]:
        """Yields the rows of all branches in the order they were added, as of now, in pages."""
        _, last = self.ends(session_id)
        return self._pages(session_id, last)

    def has(self, session_id: str) -> bool:
        with self._database.reading() as connection:
            return listing.read(connection, session_id) is not None

    def ends(self, session_id: str) -> tuple[int, int]:
        """Returns `seq` of the head and of the last entry."""
        with self._database.reading() as connection:
            return session_rows.head_and_last(connection, session_id)

    def places(self, session_id: str) -> list[tuple[int, object]]:
        """Returns `seq` and the stored parent of every entry."""
        with self._database.reading() as connection:
            return connection.execute("SELECT seq, parent FROM entries WHERE session = ?", (session_id,)).fetchall()

    def outputs(self, session_id: str) -> tuple[Path, ...]:
        """Paths of the output files made by `store_blob`, by name."""
        with self._database.reading() as connection:
            query = "SELECT blob FROM entries WHERE session = ? AND blob NOT NULL"
            entries = {blob for (blob,) in connection.execute(query, (session_id,))}
            names = sorted(blobs.names_of(connection, session_id))
        return tuple(self._blobs_dir / name for name in names if name not in entries and not name.endswith(RECORD))

    def import_lock(self) -> AbstractContextManager[None]:
        """Locks out other imports, so that an id, a name or an origin checked inside is still free on import."""
        path = self._blobs_dir.with_name("import.lock")
        return hold(path, IMPORT_WAIT_S, "Another wolo is importing a session.", "Try again when it is done.")

    def import_rows(self, facts: SessionFields, origin: bytes, rows: Iterable[StoredRow]) -> SessionInfo:
        """Imports a session in several commits; it is visible after the last one.

        `origin` identifies the source, see `find_imported` and `origin`. On failure nothing remains. Raises SessionError for an
        id that is taken.
        """
        with self._locks.lock(facts.id):
            return SessionImport(self._database, self._blobs_dir, facts, origin).run(rows, self._locks)

    def find_imported(self, origin: bytes) -> SessionInfo | None:
        """Finds the session imported from this origin; prefers an original to its forks, which share its files."""
        query = _FROM.format(">") + " ORDER BY sessions.parent NOT NULL, sessions.touched LIMIT 1"
        with self._database.reading() as connection:
            row = connection.execute(query, (blobs.name_of(origin, RECORD),)).fetchone()
            return listing.read(connection, row[0]) if row else None

    def origin(self, session_id: str) -> bytes:
        """Returns where a session was imported from; empty for other sessions."""
        with self._database.reading() as connection:
            name = next((name for name in blobs.names_of(connection, session_id) if name.endswith(RECORD)), "")
            try:
                return (self._blobs_dir / name).read_bytes() if name else b""
            except OSError:
                return b""

    def touch(self, session_id: str) -> None:
        """Makes it the most recently used session."""
        with self._database.writing() as connection:
            session_rows.touch(connection, session_id)

    def page(self, session_id: str, after: int, last: int) -> list[StoredRow]:
        page: list[StoredRow] = []
        with self._database.reading() as connection:
            for seq, parent, time_utc, prev_hash, digest, body, blob in connection.execute(_PAGE, (session_id, after, last)):
                if isinstance(blob, str):
                    try:
                        body = (self._blobs_dir / check_id(blob)).read_bytes()
                    except (OSError, SessionError):
                        body = None
                row = StoredRow(
                    seq,
                    0 if parent is None else parent if isinstance(parent, int) else -1,
                    time_utc if isinstance(time_utc, float) else 0.0,
                    prev_hash if isinstance(prev_hash, bytes) else b"",
                    digest if isinstance(digest, bytes) else b"",
                    body if isinstance(body, bytes) else None,
                )
                page.append(row)
        return page

    def _pages(self, session_id: str, last: int) -> Iterator[StoredRow]:
        after = 0
        while after < last:
            page = self.page(session_id, after, last)
            yield from page
            after = page[-1].seq if page else last
