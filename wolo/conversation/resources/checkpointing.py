"""Tells the watch over a conversation's files which turn it is, and people what the watch has to say."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path

from wolo.agent.events import CallEnded, Event, Noticed, TurnEnded, TurnStarted
from wolo.agent.tool_calls import Emit
from wolo.conversation.resources.persistence import SessionSink
from wolo.places import Places
from wolo.workspace.checkpoints.tracker import Watch
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace


def open_tracker(places: Places, workspace: Workspace, session_id: str, *, marks_kill: bool = False) -> Watch:
    own = places.own
    roots = (workspace.root, *workspace.extra)
    return Watch(checkpoints_folder(places), roots, session_id, leave_out=map(os.path.realpath, own), marks_kill=marks_kill)


def track_session(places: Places, workspace: Workspace, kept: SessionSink) -> Watch:
    """The tracker of a conversation. Changes by the last command of a killed process are recorded first."""
    watch = open_tracker(places, workspace, kept.session_id, marks_kill=True)
    if kept.is_begun:
        watch.make_up()
    return watch


def tracking_emit(emit: Emit, watch: Watch, processes: Processes) -> Emit:
    """`emit`, and the watch hears of it, too."""

    async def tell(event: Event) -> None:
        match event:
            case TurnStarted(prompt=prompt):
                watch.begin_turn(prompt.id)
            case CallEnded():
                for text in watch.take_notices():
                    await emit(Noticed(text=text, level="warning"))
            case TurnEnded():
                await asyncio.to_thread(partial(watch.end_turn, processes.is_anything_alive))
        await emit(event)

    return tell


def checkpoints_folder(places: Places) -> Path:
    """What is kept for undo, of all workspaces."""
    return places.data / "checkpoints"
