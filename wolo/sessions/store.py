"""The store: sessions and their entries, on disk when a call returns.

All methods block and may be called from any thread (a worker thread of the event loop, as a rule); they take turns.
Every failure is a SessionError. An entry is never changed or taken out again, unless its session is deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from wolo.messages.message import custom
from wolo.messages.parts import AnyPart
from wolo.messages.unicode import whole
from wolo.sessions import blobs, listing, loading, migrations, session_rows
from wolo.sessions.database import Database, ReadOnlyDatabase
from wolo.sessions.entries import AnyEntry, MessageEntry, SettingEntry, encode_entry, link_row
from wolo.sessions.index.index import Mark, TimedEntry
from wolo.sessions.index.index import forget as forget_in_index
from wolo.sessions.listing import SessionInfo
from wolo.sessions.loading import Loaded, Node
from wolo.sessions.locks import SessionLock, SessionLocks
from wolo.sessions.raw_rows import Archive
from wolo.sessions.session_rows import check_id, check_name, new_session_id
from wolo.sessions.storage import Damaged, Newer, Unwritable, make_directory, retrying

_ENDS = (
    # CROSS: the other way round would look at every entry there is.
    "SELECT sessions.id, entries.seq, entries.hash FROM sessions CROSS JOIN entries ON entries.session = sessions.id "
    "AND entries.seq = (SELECT max(seq) FROM entries WHERE session = sessions.id)"
)


@retrying(but=("mend", "close", "checkpoint", "lock", "is_live", "check"))
class Store:
    """`warnings` says what was found and repaired when it was opened; show it once."""

    def __init__(
        self,
        database: Database | ReadOnlyDatabase,
        blobs_dir: Path,
        locks: SessionLocks,
        warnings: tuple[str, ...],
        clock: Callable[[], float],
        *,
        is_read_only: bool = False,
    ):
        self.warnings = warnings
        self.is_read_only = is_read_only
        self.blobs_dir = blobs_dir
        """Large entries and outputs, one file each."""
        self.data_dir = blobs_dir.parent
        self._database = database
        self.on_rescue: Callable[[str], None] = self._note_rescue
        """Told what came of damage that was met after the start."""
        self._rescues: list[str] = []
        self._locks = locks
        self._clock = clock
        self.archive = Archive(
            database,
            blobs_dir,
            locks=locks,
            mend=self.mend,
        )
        """What exports and imports use."""

    @classmethod
    def open(
        cls,
        data_dir: Path,
        *,
        clock: Callable[[], float] = time.time,
        steps: Sequence[migrations.Step] = migrations.STEPS,
    ) -> Store:
        """Creates what is missing. `steps` are the schema migrations this program knows."""
        # Live sessions are marked beside the data: whoever shares the sessions shares their locks, too.
        blobs_dir, locks_dir = data_dir / "blobs", data_dir / "locks"
        warnings = [warning for folder in (data_dir, blobs_dir, locks_dir) for warning in make_directory(folder)]
        database, more = Database.open(data_dir / "wolo.db", steps)
        locks = SessionLocks(locks_dir)
        locks.clear_dead()
        if blobs.has_unfinished(blobs_dir):
            with database.writing():
                blobs.clear_unfinished(blobs_dir)
        return cls(database, blobs_dir, locks, (*warnings, *more), clock)

    def mend(self, damage: Damaged) -> bool:
        """Saves what can be read of a damaged database at once; False when another process has it open."""
        told = self._database.rescue(damage.what)
        if told:
            self.on_rescue(told)
        return bool(told)

    def rescues(self) -> list[str]:
        """What was not told yet."""
        told, self._rescues = self._rescues, []
        return told

    def _note_rescue(self, told: str) -> None:
        self._rescues.append(told)

    @classmethod
    def open_to_read(cls, data_dir: Path) -> Store:
        """As `open`, and where the sessions cannot be written, or a newer wolo wrote them, for reading only."""
        try:
            return cls.open(data_dir)
        except (Unwritable, Newer) as error:
            path = data_dir / "wolo.db"
            if not path.exists():
                raise

            database = ReadOnlyDatabase(path)
            why = "A newer wolo wrote these sessions" if isinstance(error, Newer) else "These sessions cannot be written"
            warning = f"{why}: {path} is opened for reading only."
            return cls(database, data_dir / "blobs", SessionLocks(data_dir / "locks"), (warning,), time.time, is_read_only=True)

    def create(
        self,
        cwd: Path | str,
        *,
        model: str = "",
        mode: str = "",
        name: str | None = None,
        id: str | None = None,
        parent: str | None = None,
    ) -> SessionInfo:
        """A new session of this directory. `name` must be free; `id` is for an import that keeps its own, `parent` where an
        agent works on a task (`listing.task_of`)."""
        now = self._clock()
        session_id = check_id(id) if id else new_session_id(now)
        alias = check_name(name) if name else None
        with self._database.writing() as connection:
            session_rows.require_free(connection, session_id, alias)
            connection.execute(
                "INSERT INTO sessions (id, name, cwd, model, mode, created, updated, parent, touched) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(touched), 0) + 1 FROM sessions))",
                (session_id, alias, listing.directory(cwd), whole(model), whole(mode), now, now, parent),
            )
            return session_rows.require(connection, session_id)

    def append(self, session_id: str, entries: Sequence[AnyEntry], *, behind: int | None = None) -> None:
        """One transaction: when this returns all of them are on the disk; when it raises, none.

        `behind` is the place of the entry they follow, the head if not given: so a branch begins. 0 is before the first.
        """
        bodies = [encode_entry(entry) for entry in entries]
        now = self._clock()
        with self._database.writing() as connection:
            parent, seq = session_rows.head_and_last(connection, session_id)
            parent = parent if behind is None else behind
            prev_hash = session_rows.hash_of(connection, session_id, parent)
            for entry, body in zip(entries, bodies, strict=True):
                row = link_row(body, seq=seq + 1, parent=parent, time_utc=now, prev_hash=prev_hash)
                kind = str(entry.__struct_config__.tag)
                session_rows.insert(connection, self.blobs_dir, session_id, kind, row)
                parent = seq = row.seq
                prev_hash = row.hash
            session_rows.count(connection, session_id, entries, seq, now)

    def append_custom_message(self, session_id: str, custom_type: str, text: str, *more: AnyPart) -> None:
        """A message that stays in the session and is never sent. A session that a process has open is refused."""
        with self.lock(session_id):
            self.append(session_id, [MessageEntry(message=custom(custom_type, text, *more))])

    def load(self, session_id: str, *, most_bytes: int | None = None) -> Loaded:
        """Everything on the way to the head that can be read. What cannot is skipped and counted, never repaired in place.

        With `most_bytes` it ends, from the head back, where so much was read and a turn begins.
        """
        with self._database.reading() as connection:
            return loading.load(connection, self.blobs_dir, session_id, most_bytes=most_bytes)

    def nodes(self, session_id: str) -> list[Node]:
        """All entries that can be read, of all branches, in the order in which they were added."""
        with self._database.reading() as connection:
            return loading.load_nodes(connection, self.blobs_dir, session_id)

    def head(self, session_id: str) -> int:
        """The place of the entry that the next one follows; 0: there is none yet."""
        with self._database.reading() as connection:
            return session_rows.head_and_last(connection, session_id)[0]

    def ends(self) -> dict[str, Mark]:
        """How far each session goes; one without entries is not there."""
        with self._database.reading() as connection:
            found = connection.execute(_ENDS).fetchall()
        return {session_id: Mark(seq, digest) for session_id, seq, digest in found}

    def hash_at(self, session_id: str, seq: int) -> bytes:
        """Empty when there is no such entry."""
        with self._database.reading() as connection:
            return session_rows.hash_of(connection, session_id, seq)

    def read_on(self, session_id: str, after: int, most_bytes: int) -> tuple[list[TimedEntry], Mark | None]:
        """The entries of all branches that were added after this place, about so many bytes of them, and how far they go.

        Without a mark there were none.
        """
        entries: list[TimedEntry] = []
        mark, size = None, 0
        with self._database.reading() as connection:
            query = f"{loading.ROWS} WHERE session = ? AND seq > ? ORDER BY seq"
            for seq, _, *row in connection.execute(query, (session_id, after)):
                entry = loading.read_entry(self.blobs_dir, seq, row)
                if entry is not None:
                    entries.append((seq, row[0], entry))
                mark = Mark(seq, row[2])
                size += len(row[loading.BODY] or b"")
                if size >= most_bytes:
                    break
        return entries, mark

    def find(self, spec: str, cwd: Path | str | None = None) -> SessionInfo:
        """By id, name, beginning of an id or words of the title; raises SessionError when none or several match."""
        with self._database.reading() as connection:
            return listing.find(connection, spec, cwd)

    def named(self, name: str) -> SessionInfo | None:
        """The session with exactly this alias, or this id."""
        with self._database.reading() as connection:
            return listing.exactly(connection, name)

    def latest(self, cwd: Path | str) -> SessionInfo | None:
        with self._database.reading() as connection:
            return listing.latest(connection, cwd)

    def list(self, cwd: Path | str | None = None, *, with_tasks: bool = False) -> list[SessionInfo]:
        """Newest first, of one directory or of all; `with_tasks`: also those of agents that worked on tasks of others."""
        with self._database.reading() as connection:
            found = listing.newest_first(connection, cwd, with_tasks=with_tasks)
        live = self._locks.live(info.id for info in found)
        return [listing.marked_live(info, info.id in live) for info in found]

    def is_live(self, session_id: str) -> bool:
        """A process has it open."""
        return self._locks.is_live(session_id)

    def lock(self, session_id: str) -> SessionLock:
        """Take the session for this process, until `release`. Raises SessionError when another one has it."""
        return self._locks.lock(session_id)

    def rename(self, session_id: str, name: str | None = None, *, title: str = "") -> None:
        """Another name, another title, or both; it does not become the session that was used last."""
        settings = [SettingEntry(name="title", value=title)] if title else []
        settings += [SettingEntry(name="name", value=check_name(name))] if name is not None else []
        self.append(session_id, settings)

    def fork(self, session_id: str) -> SessionInfo:
        """A copy that goes its own way; the original may be live."""
        now = self._clock()
        fork_id = new_session_id(now)
        with self._database.writing() as connection:
            session_rows.require(connection, session_id)
            connection.execute(
                "INSERT INTO sessions (id, title, cwd, model, mode, created, updated, touched, turns, parent, head) "
                "SELECT ?, title, cwd, model, mode, ?, ?, (SELECT max(touched) + 1 FROM sessions), turns, id, head "
                "FROM sessions WHERE id = ?",
                (fork_id, now, now, session_id),
            )
            connection.execute(
                "INSERT INTO entries (session, seq, parent, kind, time_utc, prev_hash, hash, body, blob) "
                "SELECT ?, seq, parent, kind, time_utc, prev_hash, hash, body, blob FROM entries WHERE session = ? ORDER BY seq",
                (fork_id, session_id),
            )
            connection.execute(
                "INSERT INTO blobs (session, name) SELECT ?, name FROM blobs WHERE session = ?", (fork_id, session_id)
            )
            return session_rows.require(connection, fork_id)

    def delete(self, session_id: str) -> None:
        """The session, its entries and the files only it needs, with all that agents did for it. One that is live is refused."""
        with self.lock(session_id):
            with self._database.reading() as connection:
                tasks = listing.tasks_of(connection, session_id)
            for task in tasks:
                self.delete(task)
            with self._database.writing() as connection:
                session_rows.require(connection, session_id)
                names = blobs.of(connection, session_id)
                for table, column in (("entries", "session"), ("blobs", "session"), ("sessions", "id")):
                    connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (session_id,))
            # Files go after their rows are gone for good, and under the lock again: a crash between leaves a file too many.
            with self._database.writing() as connection:
                blobs.drop_unneeded(self.blobs_dir, connection, names)
            forget_in_index(self.data_dir, session_id)

    def kept_blob(self, session_id: str, name: str, data: bytes) -> Path:
        """Keep a large output as a file of its own that can be read in pages; it lives as long as a session needs it."""
        with self._database.writing() as connection:
            session_rows.require(connection, session_id)
            return blobs.keep(self.blobs_dir, connection, session_id, data, blobs.suffix(name))

    def check(self) -> str:
        """`ok`, or the first thing that SQLite finds wrong with the database."""
        with self._database.reading() as connection:
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            return str(verdict)

    def missing_files(self) -> int:
        """How many of the files beside the database, that its sessions need, are gone."""
        with self._database.reading() as connection:
            return blobs.count_missing(self.blobs_dir, connection)

    def checkpoint(self) -> None:
        """Housekeeping for the end of a turn; nothing is lost without it."""
        self._database.checkpoint()

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
