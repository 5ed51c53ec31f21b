"""Tracks the files that a conversation changes. Nothing is loaded or opened before the first change or command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from wolo.agent.events import CallEnded, TurnEnded, TurnStarted
from wolo.conversation.resources.persistence import SessionSink
from wolo.places import Places
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace

if TYPE_CHECKING:
    from wolo.workspace.checkpoints.tracker import FileTracker
    from wolo.workspace.files.atomic_write import PendingChange


class FileTracking:
    """The tracker of one conversation, opened at its first use."""

    def __init__(self, places: Places, workspace: Workspace, session_id: str) -> None:
        self._places, self._workspace, self._session_id = places, workspace, session_id
        self._turn = ""
        self._tracker: FileTracker | None = None
        self._opening = Lock()

    @property
    def is_open(self) -> bool:
        return self._tracker is not None

    def tracker(self) -> FileTracker:
        """May be called from any thread."""
        with self._opening:
            if self._tracker is None:
                tracker = open_tracker(self._places, self._workspace, self._session_id, marks_kill=True)
                tracker.begin_turn(self._turn)
                self._tracker = tracker
            return self._tracker

    def note(self, call: str, change: PendingChange) -> None:
        """Records a change right before a tool makes it. Raises ToolError when it cannot be stored."""
        self.tracker().note(call, change)

    async def follow(self, event: TurnStarted | CallEnded | TurnEnded, processes: Processes) -> Sequence[str]:
        """Follows the turns of the main agent. Returns the tracker's notices."""
        match event:
            case TurnStarted(prompt=prompt):
                self._turn = prompt.id
                if self._tracker is not None:
                    self._tracker.begin_turn(prompt.id)
            case CallEnded() if self._tracker is not None:
                return self._tracker.take_notices()
            case TurnEnded():
                self._turn = ""
                if self._tracker is not None:
                    await asyncio.to_thread(self._tracker.end_turn, processes.is_anything_alive)
        return ()

    def close(self, *, forget: bool) -> None:
        """`forget` removes all records of this conversation. Blocks."""
        if self._tracker is not None:
            self._tracker.close(forget=forget)


def track_files(places: Places, workspace: Workspace, sink: SessionSink) -> FileTracking:
    """Changes by the last command of a killed process are recorded first."""
    tracking = FileTracking(places, workspace, sink.session_id)
    if sink.is_started and checkpoints_folder(places).exists():
        tracking.tracker().recover_killed()
    return tracking


def open_tracker(places: Places, workspace: Workspace, session_id: str, *, marks_kill: bool = False) -> FileTracker:
    from wolo.workspace.checkpoints.tracker import FileTracker  # noqa: PLC0415  # not needed before the first change

    roots = (workspace.root, *workspace.extra)
    excluded = map(os.path.realpath, places.own)
    return FileTracker(checkpoints_folder(places), roots, session_id, leave_out=excluded, marks_kill=marks_kill)


def checkpoints_folder(places: Places) -> Path:
    """Undo data of all workspaces."""
    return places.data / "checkpoints"
