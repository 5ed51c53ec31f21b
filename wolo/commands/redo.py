"""/redo: bring back what /undo took back last."""

from __future__ import annotations

import asyncio

from wolo.commands import undo
from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.conversation.history.undo import Undoing, lines
from wolo.errors import UsageError


async def run(desk: CommandContext, rest: str) -> Outcome:
    if rest not in ("", undo.PREVIEW, undo.ANYWAY):
        raise UsageError("/redo takes nothing.", hint=f"/redo [{undo.PREVIEW}] [{undo.ANYWAY}]")
    undoing = Undoing.of(desk.conversation)
    redo = await asyncio.to_thread(undoing.redo)
    if rest == undo.PREVIEW or (redo.report.conflicts and rest != undo.ANYWAY):
        return ShowText("\n".join([*lines(redo.report), "", f"Nothing was changed yet; /redo {undo.ANYWAY} does it."]))
    return await undo.carry_out(desk, undoing, redo)
