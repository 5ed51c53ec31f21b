"""Where a conversation is kept: a session of the store, made with its first entry, or nowhere."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from wolo.errors import SessionError
from wolo.messages.message import Message, Usage
from wolo.places import make_private
from wolo.sessions import blobs
from wolo.sessions import replay_entries as tree
from wolo.sessions.entries import AnyEntry, BranchEntry, CompactionEntry, CustomEntry, SettingEntry
from wolo.sessions.index.index import Index, IndexDamaged
from wolo.sessions.listing import SessionInfo
from wolo.sessions.loading import LOAD_LIMIT_BYTES, Node, opening, too_large_notice
from wolo.sessions.locks import SessionLock
from wolo.sessions.search.index_update import after_turn
from wolo.sessions.session_rows import new_session_id
from wolo.sessions.store import Store

log = logging.getLogger(__name__)


class SessionSink(Protocol):
    session_id: str
    history: tuple[Message, ...]
    compaction: CompactionEntry | None
    """What of the history is not sent."""
    summary_usage: tuple[Usage, ...]
    """What summaries have cost so far."""
    side_question_usage: tuple[Usage, ...]
    """The same of questions aside."""
    notices: tuple[str, ...]
    started_in: str
    """The directory of a session that goes on; empty for a new one."""
    outputs: Path
    """The directory of what `keep` has kept; the model may read there."""

    @property
    def is_started(self) -> bool:
        """There is something in it that can be gone on with."""
        ...

    def append(self, session_id: str, entries: Sequence[AnyEntry]) -> None: ...

    def change(self, setting: SettingEntry) -> None: ...

    def tidy(self) -> None: ...

    def save_output(self, name: str, data: bytes) -> Path:
        """A large output as a file the model can page."""
        ...

    def recovery_notices(self) -> list[str]:
        """What came of damage to the store since, for people."""
        ...

    def unloaded(self) -> UnloadedHistory:
        """What of a huge session was not read; takes a while where there is such a thing."""
        ...

    def tree(self) -> tuple[list[Node], int]:
        """All entries, and where the conversation stands."""
        ...

    def close(self) -> None: ...


class Origin(Struct, frozen=True, kw_only=True):
    """What a new session is made with."""

    cwd: Path
    model: str
    mode: str
    name: str | None = None
    is_ad_hoc: bool = False
    """The address was given for this run: a session that was begun with another model goes back to that one."""
    parent: str | None = None
    """Where an agent works on a task of another session: `listing.task_of` that."""


class Branch(Struct, frozen=True, kw_only=True):
    """Where a session is gone on with, if not where it ended."""

    after_entry: int
    summary: Message | None = None
    record: CustomEntry | None = None
    """Kept with it."""


class UnloadedHistory(Struct, frozen=True):
    messages: tuple[Message, ...] = ()
    summary_usage: tuple[Usage, ...] = ()
    """What asking for summaries has cost."""
    side_question_usage: tuple[Usage, ...] = ()


class SavedSession:
    """Holds the session for this process. A new session leaves no trace until something was said."""

    def __init__(
        self, store: Store, session: SessionInfo | None, origin: Origin, now: float, branch: Branch | None = None
    ) -> None:
        """`branch` says where in the session to go on. Raises SessionError when another process has the session open."""
        self.session_id = session.id if session else new_session_id(now)
        self.history: tuple[Message, ...] = ()
        self.compaction: CompactionEntry | None = None
        self.summary_usage: tuple[Usage, ...] = ()
        self.side_question_usage: tuple[Usage, ...] = ()
        self.notices: tuple[str, ...] = store.warnings
        self.outputs = store.blobs_dir
        self.started_in = session.cwd if session else ""
        self._store = store
        self._origin = origin
        self._lock: SessionLock | None = None
        self._index: Index | None = None
        self._changes: tuple[AnyEntry, ...] = ()
        """What is different about the session from its next entry on."""
        self._unread_until = 0
        """The place of the last entry that was not read; 0: all were."""
        if session:
            if session.model != origin.model and not origin.is_ad_hoc:
                self._changes = (SettingEntry(name="model", value=origin.model),)
            self._lock = store.lock(session.id)
            if branch is not None:
                left = store.head(session.id)
                entries: list[AnyEntry] = [
                    BranchEntry(left=left, summary=branch.summary),
                    *([branch.record] if branch.record else []),
                ]
                store.append(session.id, entries, behind=branch.after_entry)
            loaded = store.load(session.id, most_bytes=LOAD_LIMIT_BYTES)
            self.history = tree.messages(loaded.entries)
            self.compaction = tree.compaction(loaded.entries)
            if loaded.unread:
                self._unread_until = loaded.unread
                if self.compaction is None:
                    self.compaction = opening(loaded.unread)
                    self._changes += (self.compaction,)
                    self.notices += (too_large_notice(loaded.unread),)
            self.summary_usage, self.side_question_usage = (
                tree.summary_usages(loaded.entries),
                tree.side_question_usages(loaded.entries),
            )
            self.notices += (loaded.warning,) if loaded.warning else ()
        self.notices += (*store.rescues(),)

    @property
    def is_started(self) -> bool:
        return self._lock is not None

    def append(self, session_id: str, entries: Sequence[AnyEntry]) -> None:
        self._begin()
        self._store.append(session_id, (*self._changes, *entries))
        self._changes = ()

    def change(self, setting: SettingEntry) -> None:
        others = (entry for entry in self._changes if not (isinstance(entry, SettingEntry) and entry.name == setting.name))
        self._changes = (*others, setting)

    def tidy(self) -> None:
        if self._lock is not None:
            with suppress(SessionError):  # what was kept is safe in the log; the next commit tells of a disk that is full
                self._store.checkpoint()
            self._make_findable()

    def save_output(self, name: str, data: bytes) -> Path:
        self._begin()
        return self._store.store_blob(self.session_id, name, data)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()
        if self._index is not None:
            self._index.close()
        self._store.close()

    def tree(self) -> tuple[list[Node], int]:
        return (self._store.nodes(self.session_id), self._store.head(self.session_id)) if self._lock is not None else ([], 0)

    def recovery_notices(self) -> list[str]:
        return self._store.rescues()

    def unloaded(self) -> UnloadedHistory:
        if not self._unread_until:
            return UnloadedHistory()
        loaded, read = self._store.load(self.session_id), {message.id for message in self.history}
        before = [entry for entry, seq in zip(loaded.entries, loaded.seqs, strict=True) if seq <= self._unread_until]
        unread = tuple(message for message in tree.messages(before) if message.id not in read)
        return UnloadedHistory(unread, tree.summary_usages(before), tree.side_question_usages(before))

    def _make_findable(self) -> None:
        try:
            self._index = self._index or Index.open(self._store.data_dir)
            after_turn(self._index, self._store, self.session_id)
        except IndexDamaged:
            self._index = None  # the next turn makes a new one
        except SessionError as error:
            log.info("%s", error)  # a search makes up for it

    def _begin(self) -> None:
        if self._lock is None:
            self._lock = self._store.lock(self.session_id)
            origin = self._origin
            self._store.create(
                origin.cwd, model=origin.model, mode=origin.mode, name=origin.name, id=self.session_id, parent=origin.parent
            )


class UnsavedSession:
    """`--no-session`: large outputs lie in a private directory until the end."""

    def __init__(self, state: Path, now: float, said: tuple[Message, ...] = (), id: str = "") -> None:
        """`id`: of the conversation that goes on."""
        self.session_id = id or new_session_id(now)
        self.started_in = ""
        self.history = said
        self.compaction: CompactionEntry | None = None
        self.summary_usage: tuple[Usage, ...] = ()
        self.side_question_usage: tuple[Usage, ...] = ()
        self.notices: tuple[str, ...] = ()
        self.outputs = state / f"unkept-{os.urandom(6).hex()}"

    @property
    def is_started(self) -> bool:
        return False

    def append(self, session_id: str, entries: Sequence[AnyEntry]) -> None:
        """Nothing is kept."""

    def change(self, setting: SettingEntry) -> None:
        """Nothing is kept."""

    def tidy(self) -> None:
        """There is nothing to tidy."""

    def save_output(self, name: str, data: bytes) -> Path:
        make_private(self.outputs)
        path = self.outputs / f"{os.urandom(6).hex()}{blobs.suffix(name)}"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        return path

    def recovery_notices(self) -> list[str]:
        return []

    def unloaded(self) -> UnloadedHistory:
        return UnloadedHistory()

    def tree(self) -> tuple[list[Node], int]:
        return [], 0

    def close(self) -> None:
        shutil.rmtree(self.outputs, ignore_errors=True)
