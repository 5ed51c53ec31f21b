"""The store as exports and imports see it: rows as they lie, and sessions that were made elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from wolo.errors import SessionError
from wolo.sessions import listing, raw_import, raw_rows
from wolo.sessions import session_rows as rows
from wolo.sessions.database import Database
from wolo.sessions.listing import SessionInfo
from wolo.sessions.locks import Held, SessionLock, take
from wolo.sessions.recovery.retrying import retrying
from wolo.sessions.storage_errors import Damaged

if TYPE_CHECKING:
    from wolo.sessions.read_only import ReadOnlyDatabase

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
        row_limit: int,
        lock: Callable[[str], SessionLock],
        is_live: Callable[[str], bool],
        mend: Callable[[Damaged], bool],
    ) -> None:
        self._database = database
        self._blobs_dir = blobs_dir
        self._row_limit = row_limit
        self._lock = lock
        self._is_live = is_live
        self.mend = mend

    def rows(self, session_id: str) -> Iterator[raw_rows.RawRow]:
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
            return tuple(self._blobs_dir / name for name in raw_rows.outputs(connection, session_id))

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

    def adopt(self, facts: raw_rows.Facts, origin: bytes, found: Iterable[raw_rows.RawRow]) -> SessionInfo:
        """A session made elsewhere, row by row, in as many commits as it takes; until the last one nothing of it shows.

        `origin` says where it came from: `adopted` finds the session by it, `origin` gives it back. Raises SessionError for
        an id that is taken; when it fails in the middle, nothing stays.
        """
        with self._lock(facts.id):
            taking = raw_import.Adoption(self._database, self._blobs_dir, facts, origin)
            return taking.run(found, row_limit=self._row_limit, is_live=self._is_live)

    def adopted(self, origin: bytes) -> SessionInfo | None:
        """The session that came from there already."""
        with self._database.reading() as connection:
            return raw_import.find(connection, origin)

    def origin(self, session_id: str) -> bytes:
        """Where an adopted session came from; empty for one that was made here."""
        with self._database.reading() as connection:
            return raw_import.origin(connection, self._blobs_dir, session_id)

    def touch(self, session_id: str) -> None:
        """Make it the session that was used last."""
        with self._database.writing() as connection:
            rows.touch(connection, session_id)

    def page(self, session_id: str, after: int, last: int) -> list[raw_rows.RawRow]:
        """The next few rows behind a place."""
        with self._database.reading() as connection:
            return raw_rows.read_page(connection, self._blobs_dir, session_id, after, last)

    def _pages(self, session_id: str, last: int) -> Iterator[raw_rows.RawRow]:
        after = 0
        while after < last:
            page = self.page(session_id, after, last)
            yield from page
            after = page[-1].seq if page else last
