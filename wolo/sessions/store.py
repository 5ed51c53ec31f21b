"""Stores sessions and their entries, durable when a call returns.

All methods block, take turns and may be called from any thread. Every failure is a SessionError. An entry is never changed or
removed unless its session is deleted.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING

from msgspec.structs import replace

from wolo.errors import SessionError
from wolo.messages.message import custom
from wolo.messages.parts import AnyPart
from wolo.messages.unicode import whole
from wolo.sessions import blobs, listing, loading, migrations, session_rows
from wolo.sessions.database import Database, ReadOnlyDatabase, retry_after_repair
from wolo.sessions.deletions import Deletion, End, Reason, keep_end, kept_end, record_deletion
from wolo.sessions.entries import AnyEntry, MessageEntry, SettingEntry
from wolo.sessions.index import Index, IndexDamaged, IndexPosition, TimedEntry, forget
from wolo.sessions.listing import SessionInfo
from wolo.sessions.loading import EntryNode, Loaded
from wolo.sessions.locks import SessionLock, SessionLocks
from wolo.sessions.session_rows import check_id, check_name, encode_entry, new_session_id
from wolo.sessions.storage import DatabaseDamaged, DatabaseTooNew, StorageReadOnly, make_directory

if TYPE_CHECKING:
    from wolo.sessions.raw_rows import RawRows

log = logging.getLogger(__name__)

_ENDS = (
    # CROSS prevents a scan of all entries.
    "SELECT sessions.id, entries.seq, entries.hash FROM sessions CROSS JOIN entries ON entries.session = sessions.id "
    "AND entries.seq = (SELECT max(seq) FROM entries WHERE session = sessions.id)"
)
_shared: dict[tuple[int, Path], Store] = {}
"""Stores that conversations share, by process and folder: a forked process must not use those of its parent."""
_sharing = RLock()
"""The collector of garbage may close a store while this thread has it."""


@retry_after_repair(exclude=("repair", "close", "checkpoint", "lock", "is_live", "check", "is_current", "update_index"))
class Store:
    """`warnings`, to be shown once, tells what was found and repaired on opening."""

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
        self.warnings, self.is_read_only = warnings, is_read_only
        self.blobs_dir = blobs_dir
        """Files of large entries and outputs."""
        self.data_dir = blobs_dir.parent
        self._database = database
        self._index: Index | None = None
        """Opened by the first `update_index`."""
        self._indexing = Lock()
        self._num_users = 1
        self.rescue_listeners: list[Callable[[str], None]] = []
        """Called with the result of a repair after opening; without one, `rescues` has it."""
        self._rescues: list[str] = []
        self._locks, self._clock = locks, clock

    @classmethod
    def open(
        cls, data_dir: Path, *, clock: Callable[[], float] = time.time, steps: Sequence[migrations.Step] = migrations.STEPS
    ) -> Store:
        """Creates what is missing. `steps` are the schema migrations."""
        # Locks are beside the data, so that everyone who shares the sessions shares them.
        blobs_dir, locks_dir = data_dir / "blobs", data_dir / "locks"
        warnings = [warning for folder in (data_dir, blobs_dir, locks_dir) for warning in make_directory(folder)]
        database, more = Database.open(data_dir / "wolo.db", steps)
        locks = SessionLocks(locks_dir)
        locks.clear_dead()
        if (blobs_dir / blobs.INCOMING).exists():
            with database.writing():
                blobs.clear_unfinished(blobs_dir)
        return cls(database, blobs_dir, locks, (*warnings, *more), clock)

    @classmethod
    def share(cls, data_dir: Path) -> Store:
        """Opens like `open`, once for all conversations of this process; the last `close` closes it."""
        key = (os.getpid(), data_dir)
        with _sharing:
            if (shared := _shared.get(key)) is not None:
                shared._num_users += 1  # the same class
        if shared is not None:
            if shared.is_current():
                return shared
            shared.close()
        store = cls.open(data_dir)  # may wait for another process
        with _sharing:
            _shared[key] = store  # another thread may have been as fast; then there are two
        return store

    @cached_property
    def raw(self) -> RawRows:
        from wolo.sessions.raw_rows import RawRows  # noqa: PLC0415  # for export and import only

        return RawRows(self._database, self.blobs_dir, locks=self._locks, repair=self.repair)

    def repair(self, damage: DatabaseDamaged) -> bool:
        """Repairs the database; False when another process has it open."""
        if told := self._database.rescue(damage.what):
            for listener in self.rescue_listeners or [self._rescues.append]:
                listener(told)
        return bool(told)

    def rescues(self) -> list[str]:
        """Returns and clears the messages about repairs."""
        messages, self._rescues = self._rescues, []
        return messages

    @classmethod
    def open_to_read(cls, data_dir: Path) -> Store:
        """Opens like `open`, or read-only where the files cannot be written or a newer wolo wrote them."""
        try:
            return cls.open(data_dir)
        except (StorageReadOnly, DatabaseTooNew) as error:
            if not (path := data_dir / "wolo.db").exists():
                raise
            why = "A newer wolo wrote these sessions" if isinstance(error, DatabaseTooNew) else "These sessions are read-only"
            return cls.open_unchanged(data_dir, f"{why}: {path} is opened for reading only.")

    @classmethod
    def open_unchanged(cls, data_dir: Path, *warnings: str) -> Store:
        """Changes no file there but SQLite's shared memory, not even to bring an older store forward. Raises SessionError."""
        database = ReadOnlyDatabase(data_dir / "wolo.db")
        return cls(database, data_dir / "blobs", SessionLocks(data_dir / "locks"), warnings, time.time, is_read_only=True)

    def create(
        self,
        cwd: Path | str,
        *,
        model: str = "",
        mode: str = "",
        name: str | None = None,
        id: str | None = None,
        parent: str | None = None,
        entries: Sequence[AnyEntry] = (),
    ) -> SessionInfo:
        """Creates a session, with its first entries in the same transaction.

        `name` must be free; `id` is for an import that keeps its id, `parent` for a subagent (`task_of`).
        """
        now = self._clock()
        session_id = check_id(id) if id else new_session_id(now)
        alias = check_name(name) if name else None
        bodies = [encode_entry(entry) for entry in entries]
        with self._database.writing() as connection:
            listing.require_free(connection, session_id, alias)
            connection.execute(
                "INSERT INTO sessions (id, name, cwd, model, mode, created, updated, parent, touched) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(touched), 0) + 1 FROM sessions))",
                (session_id, alias, listing.directory(cwd), whole(model), whole(mode), now, now, parent),
            )
            if entries:
                session_rows.add_entries(connection, self.blobs_dir, session_id, entries, bodies, now)
            return listing.require(connection, session_id)

    def append(self, session_id: str, entries: Sequence[AnyEntry], *, behind: int | None = None) -> None:
        """Adds entries in one transaction: on return all of them are durable, on an exception none.

        They follow the head, or entry `behind`, which starts a branch; 0 is before the first entry.
        """
        bodies = [encode_entry(entry) for entry in entries]  # before other processes have to wait
        now = self._clock()
        with self._database.writing() as connection:
            session_rows.add_entries(connection, self.blobs_dir, session_id, entries, bodies, now, behind)

    def append_custom_message(self, session_id: str, custom_type: str, text: str, *more: AnyPart) -> None:
        """Adds a message that is never sent. Raises SessionError for a session that a process has open."""
        with self.lock(session_id):
            self.append(session_id, [MessageEntry(message=custom(custom_type, text, *more))])

    def load(self, session_id: str, *, most_bytes: int | None = None) -> Loaded:
        """Loads the entries from the first to the head. Unreadable ones are skipped and counted.

        With `most_bytes`, reading stops at the first prompt beyond that size, counted from the head.
        """
        with self._database.reading() as connection:
            return loading.load(connection, self.blobs_dir, session_id, most_bytes=most_bytes)

    def nodes(self, session_id: str) -> list[EntryNode]:
        """Loads the entries of all branches in the order they were added."""
        with self._database.reading() as connection:
            return loading.load_nodes(connection, self.blobs_dir, session_id)

    def head(self, session_id: str) -> int:
        """`seq` of the entry that the next one follows; 0 for none."""
        with self._database.reading() as connection:
            return session_rows.head_and_last(connection, session_id)[0]

    def ends(self) -> dict[str, IndexPosition]:
        """The position of the last entry of each session that has entries."""
        with self._database.reading() as connection:
            found = connection.execute(_ENDS).fetchall()
        return {session_id: IndexPosition(seq, digest) for session_id, seq, digest in found}

    def hash_at(self, session_id: str, seq: int) -> bytes:
        """Empty when there is no such entry."""
        with self._database.reading() as connection:
            return session_rows.hash_of(connection, session_id, seq)

    def read_after(self, session_id: str, after: int, most_bytes: int) -> tuple[list[TimedEntry], IndexPosition | None]:
        """Reads about `most_bytes` of the entries added after `after`, of all branches, and the position reached.

        The position is None when there were none.
        """
        entries: list[TimedEntry] = []
        mark, size = None, 0
        with self._database.reading() as connection:
            query = f"{session_rows.ROWS} WHERE session = ? AND seq > ? ORDER BY seq"
            for seq, _, *row in connection.execute(query, (session_id, after)):
                if (entry := session_rows.read_entry(self.blobs_dir, seq, row)) is not None:
                    entries.append((seq, row[0], entry))
                mark = IndexPosition(seq, row[2])
                size += len(row[session_rows.BODY] or b"")
                if size >= most_bytes:
                    break
        return entries, mark

    def find(self, spec: str, cwd: Path | str | None = None) -> SessionInfo:
        """Finds by id, name, prefix of an id or words of the title. Raises SessionError unless exactly one matches."""
        with self._database.reading() as connection:
            return listing.find(connection, spec, cwd)

    def exactly(self, name: str) -> SessionInfo | None:
        """The session with this alias or id."""
        with self._database.reading() as connection:
            return listing.exactly(connection, name)

    def latest(self, cwd: Path | str) -> SessionInfo | None:
        with self._database.reading() as connection:
            return listing.latest(connection, cwd)

    def list(self, cwd: Path | str | None = None, *, with_tasks: bool = False) -> list[SessionInfo]:
        """Lists sessions newest first, of one directory or all; `with_tasks` includes those of subagents."""
        with self._database.reading() as connection:
            sessions = listing.newest_first(connection, cwd, with_tasks=with_tasks)
        live = self._locks.live(info.id for info in sessions)
        return [replace(info, live=True) if info.id in live else info for info in sessions]

    def is_live(self, session_id: str) -> bool:
        return self._locks.is_live(session_id)

    def lock(self, session_id: str) -> SessionLock:
        """Reserves the session for this process. Raises SessionError when another one has it open."""
        return self._locks.lock(session_id)

    def rename(self, session_id: str, name: str | None = None, *, title: str = "") -> None:
        """Sets the name or the title, without changing the order of last use."""
        settings = [SettingEntry(name="title", value=title)] if title else []
        settings += [SettingEntry(name="name", value=check_name(name))] if name is not None else []
        self.append(session_id, settings)

    def fork(self, session_id: str) -> SessionInfo:
        """Copies a session; the original may be live."""
        now = self._clock()
        fork_id = new_session_id(now)
        with self._database.writing() as connection:
            listing.require(connection, session_id)
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
            return listing.require(connection, fork_id)

    def delete(self, session_id: str, reason: Reason = "deleted") -> None:
        """Deletes a session with its entries, files and subagent sessions, and records it.

        Raises SessionError for a live one.
        """
        with self.lock(session_id):
            beginning = listing.task_of(session_id, "")
            query = "SELECT id FROM sessions WHERE substr(parent, 1, ?) = ? ORDER BY touched"
            with self._database.reading() as connection:
                tasks = connection.execute(query, (len(beginning), beginning)).fetchall()
            for (task,) in tasks:
                self.delete(task, reason)
            with self._database.reading() as connection:
                info = listing.require(connection, session_id)
                query = "SELECT count(*), (SELECT hash FROM entries WHERE session = ?1 ORDER BY seq DESC LIMIT 1) "
                query += "FROM entries WHERE session = ?1"
                num_entries, last_hash = connection.execute(query, (session_id,)).fetchone()
                before = kept_end(connection)
            about = {"session": session_id, "cwd": info.cwd, "created": info.created, "num_entries": num_entries}
            deletion = Deletion(at=time.time(), last_hash=(last_hash or b"").hex(), reason=reason, **about)
            end = record_deletion(self.data_dir, deletion, before)
            with self._database.writing() as connection:
                listing.require(connection, session_id)
                keep_end(connection, end)
                for table, column in (("entries", "session"), ("sessions", "id")):
                    connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (session_id,))
            # Files are removed after the session, again under the lock; after a crash the next deletion finds their rows.
            with self._database.writing() as connection:
                blobs.delete_unused(self.blobs_dir, connection)
            forget(self.data_dir, session_id)

    def end_of_deletions(self) -> End:
        """Where the record of deletions must at least reach."""
        with self._database.reading() as connection:
            return kept_end(connection)

    def store_blob(self, session_id: str, name: str, data: bytes) -> Path:
        """Stores a large output as a file. It is removed with the last session that needs it."""
        with self._database.writing() as connection:
            listing.require(connection, session_id)
            return blobs.add(self.blobs_dir, connection, session_id, data, blobs.suffix(name))

    def check(self) -> str:
        """Returns `ok` or the first problem that SQLite finds."""
        with self._database.reading() as connection:
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            return str(verdict)

    def missing_files(self) -> int:
        """Counts files that sessions need and that are missing."""
        with self._database.reading() as connection:
            used = blobs.used_names(connection)
            return len(used - {path.name for path in self.blobs_dir.iterdir()})

    def checkpoint(self) -> None:
        """Housekeeping after a turn; skipping it loses nothing."""
        self._database.checkpoint()

    def update_index(self, session_id: str) -> None:
        """Adds a turn to the search index. Never raises: a search makes up for it."""
        try:
            with self._indexing:
                self._index = self._index or Index.open(self.data_dir)
                self._index.add_turn(self, session_id)
        except IndexDamaged:
            self._index = None  # the next turn makes a new one
        except SessionError as error:
            log.info("%s", error)

    def is_current(self) -> bool:
        """False where it was closed, or its files are other ones by now."""
        return isinstance(self._database, Database) and self._database.is_current()

    def close(self) -> None:
        key = (os.getpid(), self.data_dir)
        with _sharing:
            self._num_users -= 1
            if self._num_users > 0:
                return
            if _shared.get(key) is self:
                del _shared[key]
        if self._index is not None:
            self._index.close()
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
