"""Stores a conversation: in a session that starts with its first entry, or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from wolo.errors import SessionError
from wolo.messages.message import Message, Usage, UsageCost
from wolo.places import make_private
from wolo.sessions import blobs, session_rows
from wolo.sessions.entries import AnyEntry, BranchEntry, CompactionEntry, CustomEntry, SettingEntry
from wolo.sessions.listing import SessionInfo
from wolo.sessions.loading import LOAD_LIMIT_BYTES, EntryNode, opening
from wolo.sessions.locks import SessionLock
from wolo.sessions.store import Store


class SessionProperties(Struct, frozen=True, kw_only=True):
    """Properties of a new session."""

    cwd: Path
    model: str
    mode: str
    name: str | None = None
    is_ad_hoc: bool = False
    """A base URL was given for this run, so the session keeps its own model."""
    parent: str | None = None
    """For a subagent session: `listing.task_of` the parent."""


class Branch(Struct, frozen=True, kw_only=True):
    """Continues a session after an earlier entry."""

    after_entry: int
    summary: Message | None = None
    record: CustomEntry | None = None


class UnloadedHistory(Struct, frozen=True):
    messages: tuple[Message, ...] = ()
    summary_usage: tuple[Usage, ...] = ()
    side_question_usage: tuple[Usage, ...] = ()


NOTHING_UNREAD = Usage(cost=UsageCost())


class SavedSession:
    """Locks the session for this process. A new session is created with its first entry."""

    def __init__(
        self,
        store: Store,
        session: SessionInfo | None,
        origin: SessionProperties,
        now: float,
        branch: Branch | None = None,
        new_id: str = "",
        *,
        updates_index: bool = False,
    ) -> None:
        """`new_id`: of a new session; empty: one is made. `updates_index` after each turn; otherwise the next search does.

        Raises SessionError if another process has the session open.
        """
        self.session_id = session.id if session else new_id or session_rows.new_session_id(now)
        self.history: tuple[Message, ...] = ()
        self.compaction: CompactionEntry | None = None
        self.summary_usage: tuple[Usage, ...] = ()
        self.side_question_usage: tuple[Usage, ...] = ()
        self.num_before_turn = (0, 0)
        self.unread_usage = NOTHING_UNREAD
        self.goal: dict[str, Any] | None = None
        self.notices, store.warnings = store.warnings, ()
        self.outputs = store.blobs_dir
        self.started_in = session.cwd if session else ""
        self._store, self._origin = store, origin
        self._lock: SessionLock | None = None
        self._updates_index = updates_index
        self._changes: tuple[AnyEntry, ...] = ()
        """Saved with the next entry."""
        self._unread_until = 0
        """Sequence number of the last entry that was not loaded; 0: all were."""
        if session:
            if session.model != origin.model and not origin.is_ad_hoc:
                self._changes = (SettingEntry(name="model", value=origin.model),)
            self._lock = store.lock(session.id)
            try:
                self._load(session, branch)
            except BaseException:
                self._lock.release()
                raise
        self.notices += (*store.rescues(),)
        self.recovery_notices: list[str] = []
        self._on_rescue = self.recovery_notices.append
        store.rescue_listeners.append(self._on_rescue)

    def _load(self, session: SessionInfo, branch: Branch | None) -> None:
        if branch is not None:
            entries: list[AnyEntry] = [BranchEntry(left=self._store.head(session.id), summary=branch.summary)]
            entries += [branch.record] if branch.record else []
            self._store.append(session.id, entries, behind=branch.after_entry)
        from wolo.sessions import replay_entries as tree  # noqa: PLC0415  # a new session has none

        loaded = self._store.load(session.id, most_bytes=LOAD_LIMIT_BYTES)
        self.history = tree.messages(loaded.entries)
        self.compaction = tree.compaction(loaded.entries)
        self.goal = tree.goal(loaded.entries)
        if loaded.unread:
            self._unread_until = loaded.unread
            # The session's total cost without that of the entries read; its token counts are not kept apart
            cost = session_rows.total_cost(session_rows.usages_of(loaded.entries))
            is_known = session.cost_usd is not None and cost is not None
            rest = UsageCost(total=max((session.cost_usd or 0.0) - (cost or 0.0), 0.0)) if is_known else None
            self.unread_usage = Usage(cost=rest)
            if self.compaction is None:
                self.compaction = opening(loaded.unread, self.history[0].id if self.history else "")
                self._changes += (self.compaction,)
                unsent = f"its first {loaded.unread:,} entries are not sent. They remain saved."
                self.notices += (f"This session is larger than any model's window: {unsent}",)
        self.summary_usage = tree.summary_usages(loaded.entries)
        self.side_question_usage = tree.side_question_usages(loaded.entries)
        earlier = tree.before_newest_prompt(loaded.entries)
        self.num_before_turn = (len(tree.summary_usages(earlier)), len(tree.side_question_usages(earlier)))
        self.notices += (loaded.warning,) if loaded.warning else ()

    @property
    def is_started(self) -> bool:
        """The session exists in the store."""
        return self._lock is not None

    def append(self, session_id: str, entries: Sequence[AnyEntry]) -> None:
        """One durable commit. Raises SessionError."""
        if self._lock is None:
            self._begin((*self._changes, *entries))
        else:
            self._store.append(session_id, (*self._changes, *entries))
        self._changes = ()

    def change(self, setting: SettingEntry) -> None:
        """Saved with the next entry."""
        others = (entry for entry in self._changes if not (isinstance(entry, SettingEntry) and entry.name == setting.name))
        self._changes = (*others, setting)

    def cleanup(self) -> None:
        """Housekeeping between turns. Never raises: nothing is lost without it."""
        if self._lock is not None:
            with suppress(SessionError):  # saved entries are safe in the log; the next commit reports a full disk
                self._store.checkpoint()
            if self._updates_index:
                self._store.update_index(self.session_id)

    def save_output(self, name: str, data: bytes) -> Path:
        """Stores a large output as a file that the model can page."""
        if self._lock is None:
            self._begin()
        return self._store.store_blob(self.session_id, name, data)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()
        if self._on_rescue in self._store.rescue_listeners:  # otherwise it is closed
            self._store.rescue_listeners.remove(self._on_rescue)
            self._store.close()

    def tree(self) -> tuple[list[EntryNode], int]:
        """All entries, and the sequence number of the current one."""
        return (self._store.nodes(self.session_id), self._store.head(self.session_id)) if self._lock is not None else ([], 0)

    def read_unloaded(self) -> UnloadedHistory:
        """The part of a large session that was not loaded. May block."""
        if not self._unread_until:
            return UnloadedHistory()
        from wolo.sessions import replay_entries as tree  # noqa: PLC0415  # as above

        loaded, read = self._store.load(self.session_id), {message.id for message in self.history}
        before = [entry for entry, seq in zip(loaded.entries, loaded.seqs, strict=True) if seq <= self._unread_until]
        unread = tuple(message for message in tree.messages(before) if message.id not in read)
        return UnloadedHistory(unread, tree.summary_usages(before), tree.side_question_usages(before))

    def load_rest(self) -> tuple[Message, ...]:
        """Adds the messages that were not loaded to `history`, and returns them. May block."""
        rest = self.read_unloaded().messages
        self.history = (*rest, *self.history)
        self.unread_usage = NOTHING_UNREAD
        return rest

    def _begin(self, entries: Sequence[AnyEntry] = ()) -> None:
        origin, lock = self._origin, self._store.lock(self.session_id)
        try:
            self._store.create(
                origin.cwd,
                model=origin.model,
                mode=origin.mode,
                name=origin.name,
                id=self.session_id,
                parent=origin.parent,
                entries=entries,
            )
        except BaseException:
            lock.release()
            raise
        self._lock = lock


class UnsavedSession:
    """`--no-session`: large outputs are in a private directory until the end."""

    def __init__(self, state: Path, now: float, history: tuple[Message, ...] = (), id: str = "") -> None:
        """`id` of the conversation that continues."""
        self.session_id = id or session_rows.new_session_id(now)
        self.started_in = ""
        """Directory of a resumed session; empty for a new one."""
        self.history = history
        self.compaction: CompactionEntry | None = None
        self.summary_usage: tuple[Usage, ...] = ()
        self.side_question_usage: tuple[Usage, ...] = ()
        self.num_before_turn = (0, 0)
        """Numbers of summaries and of side questions before the newest turn."""
        self.unread_usage = NOTHING_UNREAD
        """Cost of the part of a large session that was not loaded."""
        self.goal: dict[str, Any] | None = None
        """The saved state of the session's goal; None: there is none."""
        self.notices: tuple[str, ...] = ()
        self.recovery_notices: list[str] = []
        """About repairs of a damaged store, oldest first; whoever shows one removes it."""
        self.outputs = state / f"unkept-{os.urandom(6).hex()}"
        """Directory of `save_output`; the model may read it."""

    @property
    def is_started(self) -> bool:
        return False

    def append(self, session_id: str, entries: Sequence[AnyEntry]) -> None:
        """Stores nothing."""

    def change(self, setting: SettingEntry) -> None:
        """Stores nothing."""

    def cleanup(self) -> None:
        """Does nothing."""

    def save_output(self, name: str, data: bytes) -> Path:
        make_private(self.outputs)
        path = self.outputs / f"{os.urandom(6).hex()}{blobs.suffix(name)}"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        return path

    def read_unloaded(self) -> UnloadedHistory:
        return UnloadedHistory()

    def load_rest(self) -> tuple[Message, ...]:
        return ()

    def tree(self) -> tuple[list[EntryNode], int]:
        return [], 0

    def close(self) -> None:
        if self.outputs.exists():
            import shutil  # noqa: PLC0415  # slow to load

            shutil.rmtree(self.outputs, ignore_errors=True)


SessionSink = SavedSession | UnsavedSession
"""Where the entries of a conversation go."""
