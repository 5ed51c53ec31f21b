"""Tracks what a conversation's tool calls do to files, so that it can be undone.

A tool records a change before making it: by then the old and the new content are on disk. Around a command the workspace is
scanned. After a kill of wolo, the next start scans for what its command did.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import RLock

import msgspec

from wolo.errors import ToolError
from wolo.workspace.checkpoints import attribution, path_state
from wolo.workspace.checkpoints.checkpoint_store import CheckpointStore, Damaged, store_path
from wolo.workspace.checkpoints.scan import DirectoryListing, LeftOut, Scan, decode
from wolo.workspace.files.atomic_write import PendingChange
from wolo.workspace.files.sqlite_connection import SQLITE_ERRORS
from wolo.workspace.processes.process_table import owner_name
from wolo.workspace.walk import WalkStopped

MAX_STORE_BYTES = 2 << 30
_PRUNED = "pruned"
_PRUNE_EVERY_S = 24 * 3600.0
_KEPT_S = 30 * 24 * 3600.0


def prune(store: CheckpointStore, listings: Mapping[str, DirectoryListing]) -> None:
    """Removes old changes and contents, once a day or when the store is large. Raises ToolError."""
    now, pruned = time.time(), store.fact(_PRUNED)
    if pruned and now - float(pruned) < _PRUNE_EVERY_S and store.size_bytes() < MAX_STORE_BYTES:
        return
    store.drop_changes_before(now - _KEPT_S)
    listed = [entry.hash for listing in listings.values() for entry in listing.entries.values() if entry.hash]
    store.drop_contents(listed)
    while store.size_bytes() > MAX_STORE_BYTES and (oldest := store.oldest_change()):
        store.drop_changes_before(oldest + (now - oldest) / 2 + 1)
        store.drop_contents(listed)
    with store.writing():
        store.put_fact(_PRUNED, str(now))
    for mark in store.path.parent.glob("killed-*"):
        with suppress(OSError):
            if now - mark.stat().st_mtime > _KEPT_S:
                mark.unlink()


GENERATION = "generation"
LEFT_OUT = "left out"
_SLOW_S = 2.0
_MOST_NAMED = 3
_MOVED_ASIDE = "{path} is damaged and was moved aside: earlier changes can no longer be undone."

log = logging.getLogger(__name__)


class FileTracker:
    """All methods block, take turns and may be called from any thread."""

    def __init__(
        self, folder: Path, roots: Sequence[Path], session: str, *, leave_out: Iterable[str] = (), marks_kill: bool = False
    ) -> None:
        """`folder` holds a file per workspace; the first of the `roots` selects it.

        `marks_kill`: records the time if this process is killed; `close` must then be called.
        """
        self.session = session
        self.turn = ""
        """Id of the current prompt."""
        self._folder = folder
        self._roots = tuple(roots)
        self._excluded = tuple(leave_out)
        self._lock = RLock()
        self._store: CheckpointStore | None = None
        self._is_closed = self._is_broken = False
        self._known: dict[str, DirectoryListing] | None = None
        self._generation = ""
        self._running: dict[str, int] = {}
        """Calls that have not ended or left processes running."""
        self._marks_kill = marks_kill
        self._marker: attribution.KillMarker | None = None
        self._too_much = ""
        self._notices: list[str] = []
        self._notified: set[str] = set()

    def note(self, call: str, change: PendingChange) -> None:
        """Records a change right before a tool makes it. Raises ToolError when it cannot be stored; the tool must then not make
        it.
        """

        def save_all(store: CheckpointStore) -> None:
            path = str(change.path)
            before, after = path_state.ABSENT, path_state.ABSENT
            if change.before is not None:
                before = path_state.State("file", store.save(change.before), change.before_mode)
            if change.after is not None:
                mode = change.before_mode if change.before is not None else path_state.UNKNOWN_MODE
                after = path_state.State("file", store.save(change.after), mode)
            source: path_state.Source = "in place" if change.in_place else "tool"
            folders = [
                path_state.PathChange(str(folder), path_state.ABSENT, path_state.State("folder", path_state.NOT_STORED))
                for folder in change.folders
            ]
            store.add(
                [
                    path_state.RecordedChange(each, self.session, self.turn, call, source)
                    for each in (*folders, path_state.PathChange(path, before, after))
                ]
            )

        with self._lock:
            self._write(save_all)

    def before_command(self, call: str) -> None:
        """Scans before a command. Raises ToolError when there is no room to store its effects."""

        def begin(store: CheckpointStore) -> None:
            self._scan(store)
            marker = self._kill_marker(store)
            self._running[call] = store.begin_running(self.session, self.turn, call, owner_name(), marker)

        with self._lock:
            self._write(begin)

    def after_command(self, call: str, *, runs_on: bool = False) -> path_state.ChangedPaths:
        """Scans after a command that ended or left processes running; returns its changes. Never raises."""
        with self._lock:
            store, number = self._store, self._running.get(call)
            if store is None or number is None or self._is_closed:
                return path_state.ChangedPaths()
            try:
                with store.writing():
                    changed = self._scan(store, call)
                    if runs_on:
                        store.leave_running(number)
                    else:
                        store.end_running(number)
            except ToolError as error:
                self._notify(f"The command's changes cannot be undone: {error.message}")
                self._known = None
                return path_state.ChangedPaths()
            if not runs_on:
                del self._running[call]
            return changed

    def begin_turn(self, turn: str) -> None:
        with self._lock:
            self.turn = turn

    def end_turn(self, still_runs: Callable[[], bool] = lambda: False) -> None:
        """Attributes to background processes what changed so far: between turns the user may change the same files."""
        with self._lock:
            if self._running and self._store is not None:
                ended = [] if still_runs() else list(self._running.values())
                self._catch_up(self._store, ended)
                self._running = {call: number for call, number in self._running.items() if number not in ended}
            self.turn = ""

    def is_as_before(self, path: str) -> bool:
        """Tells whether a file has the content that it had before the first change of this turn. `path` is real."""
        with self._lock:
            if self._store is None or not self.turn:
                return False
            try:
                changes = [noted.change for noted in self._store.of_turns([self.turn]) if noted.change.path == path]
                return bool(changes) and path_state.observe(path).is_like(changes[0].before)
            except (ToolError, OSError):
                return False

    def recover_killed(self) -> None:
        """Records what the commands of a killed wolo did in this session. The session must be locked; never raises."""
        with self._lock:
            if not store_path(self._folder, self._roots[0]).exists() or (store := self._open()) is None:
                return
            try:
                killed = [each.id for each in store.running() if each.session == self.session]
            except ToolError as error:
                self._notify(error.message)
                return
            if killed:
                self._catch_up(store, killed)

    def take_notices(self) -> list[str]:
        with self._lock:
            taken, self._notices = self._notices, []
            return taken

    @property
    def store(self) -> CheckpointStore | None:
        """None when nothing can be stored."""
        with self._lock:
            return self._open()

    def not_covered(self) -> LeftOut:
        """As of the last scan of this workspace."""
        with self._lock:
            store = self._open() if store_path(self._folder, self._roots[0]).exists() else None
            with suppress(msgspec.DecodeError, ToolError):
                return msgspec.json.decode(store.fact(LEFT_OUT) if store else "[]", type=LeftOut)
            return LeftOut()

    def close(self, *, forget: bool = False) -> None:
        """`forget` removes all records of this conversation."""
        with self._lock:
            store, self._is_closed = self._store, True
            if self._marker is not None:
                self._marker.close()
            if store is None:
                return
            try:
                if forget:
                    store.forget_session(self.session)
                elif self._running:
                    self._catch_up(store, list(self._running.values()))
                prune(store, self._listings(store))
            except (*SQLITE_ERRORS, ToolError) as error:
                log.warning("checkpoints: %s", error)
            store.close()
            self._store = None

    def _scan(self, store: CheckpointStore, call: str = "") -> path_state.ChangedPaths:
        """Scans and attributes the differences to `call` or to a running command. Needs a `writing` block."""
        if self._too_much:
            return path_state.ChangedPaths()
        began = time.monotonic()
        look = Scan(self._listings(store), self._excluded, store.save)
        is_first = not look.known
        try:
            for root in self._roots:
                look.at(str(root))
        except WalkStopped as stopped:
            self._too_much = f"The workspace is too large to scan around commands (stopped {stopped})"
            self._notify(f"{self._too_much}; only changes made by wolo's own tools can be undone.")
            store.put_listings((path, None) for path, _ in store.listings())
            self._known = None
            return path_state.ChangedPaths()
        except BaseException:
            self._known = None
            raise
        self._attribute(store, look.changes, call)
        if look.renewed:
            store.put_listings((path, listing.encode() if listing else None) for path, listing in look.renewed.items())
            self._generation = f"{owner_name()}/{time.monotonic_ns()}"
            store.put_fact(GENERATION, self._generation)
        if look.renewed or is_first:
            store.put_fact(LEFT_OUT, look.left_out.encode())
        took_s = time.monotonic() - began
        if is_first and took_s > _SLOW_S:
            self._notify(f"Saved the workspace for undo before the first command; this took {took_s:.0f} s, once.")
        if large := look.left_out.large:
            names = ", ".join(map(path_state.as_line, large[:_MOST_NAMED]))
            more = f" and {len(large) - _MOST_NAMED} more" if len(large) > _MOST_NAMED else ""
            self._notify(f"Too large to be saved for undo when a command changes it: {names}{more}.")
        if look.left_out.later:
            files = "1 file is" if look.left_out.later == 1 else f"{look.left_out.later:,} files are"
            self._notify(f"{files} not saved for undo yet; the next command continues.")
        return attribution.summed_changes(look.changes)

    def _listings(self, store: CheckpointStore) -> dict[str, DirectoryListing]:
        generation = store.fact(GENERATION)
        if self._known is None or generation != self._generation:
            try:
                self._known = {path: decode(listing) for path, listing in store.listings()}
            except msgspec.DecodeError:
                self._known = {}
            self._generation = generation
        return self._known

    def _attribute(self, store: CheckpointStore, changes: Sequence[path_state.PathChange], call: str) -> None:
        """Attributes changes to a running command. Changes recorded by tools are left out; those that no command can have made
        are the user's.
        """
        asking = attribution.ScanOwner(self.session, self.turn, self._running.get(call), self._running.values())
        whose, source = attribution.find_command(store.running(), asking) if changes else (None, "unclear")
        if whose is None:
            return
        told = {path: store.of_path(path, whose.last_change) for path in {change.path for change in changes}}
        unknown = [
            change for change in changes if not any(change.after.is_like(noted.change.after) for noted in told[change.path])
        ]
        end_ns = 0
        if whose.kill_marker and whose.id not in self._running.values():
            with suppress(OSError):
                end_ns = store.path.with_name(whose.kill_marker).stat().st_mtime_ns
        sources = [attribution.source_after_kill(change, end_ns) if end_ns else source for change in unknown]
        store.add(
            path_state.RecordedChange(change, whose.session, whose.turn, whose.call, source)
            for change, source in zip(unknown, sources, strict=True)
            if source is not None
        )

    def _catch_up(self, store: CheckpointStore, ended: Sequence[int]) -> None:
        """Scans on behalf of commands that were not waited for."""
        try:
            with store.writing():
                self._scan(store)
                markers = [
                    each.kill_marker for each in store.running() if each.id in ended and each.id not in self._running.values()
                ]
                for each in ended:
                    store.end_running(each)
            for marker in filter(None, markers):
                store.path.with_name(marker).unlink(missing_ok=True)
        except ToolError as error:
            self._known = None
            self._notify(f"Changes of an earlier command cannot be undone: {error.message}")

    def _kill_marker(self, store: CheckpointStore) -> str:
        if not self._marks_kill:
            return ""
        if self._marker is None:
            try:
                self._marker = attribution.KillMarker(store.path.parent)
            except OSError as error:
                log.info("cannot start the kill marker: %s", error)
                return ""
        return self._marker.path.name

    def _write(self, work: Callable[[CheckpointStore], None]) -> None:
        """Runs one transaction, in a new file if the present one is damaged. Raises ToolError."""
        if (store := self._open()) is None:
            return
        try:
            with store.writing():
                work(store)
        except Damaged as damage:
            log.warning("%s", damage.message)
            store.set_aside()
            self._store = self._known = None
            self._notify(_MOVED_ASIDE.format(path=store.path))
            if (store := self._open()) is not None:
                with store.writing():
                    work(store)

    def _open(self) -> CheckpointStore | None:
        if self._store is None and not self._is_closed and not self._is_broken:
            try:
                self._store = CheckpointStore(store_path(self._folder, self._roots[0]))
                if self._store.replaces_damaged:
                    self._notify(_MOVED_ASIDE.format(path=self._store.path))
            except (*SQLITE_ERRORS, OSError) as error:
                self._is_broken = True
                self._notify(f"Undo is not available: cannot save its data in {path_state.as_line(self._folder)} ({error}).")
        return self._store

    def _notify(self, text: str) -> None:
        if text not in self._notified:
            self._notified.add(text)
            self._notices.append(text)
