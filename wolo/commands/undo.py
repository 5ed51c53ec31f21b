"""/undo: take back the last turns, what was said and what was done to files."""

from __future__ import annotations

import asyncio
from pathlib import Path

from wolo.commands import diff
from wolo.commands.arguments import words
from wolo.commands.command import CommandContext, Outcome, ShowText, SwitchConversation
from wolo.conversation.history.undo import Undo, Undoing, lines
from wolo.errors import UsageError

PREVIEW, ANYWAY = "--preview", "--anyway"


async def run(desk: CommandContext, rest: str) -> Outcome:
    """`/undo [N] [PATH …]`. With conflicts it shows first what would happen."""
    given = words(rest)
    options = {word for word in given if word.startswith("--")}
    if unknown := options - {PREVIEW, ANYWAY}:
        raise UsageError(f"/undo has no option {min(unknown)}.", hint=f"/undo [N] [PATH …] [{PREVIEW}] [{ANYWAY}]")
    named = [word for word in given if word not in options]
    count = int(named.pop(0)) if named and named[0].isdecimal() else 1
    undoing = Undoing.of(desk.conversation)
    undo = await asyncio.to_thread(undoing.undo, count, [desk.conversation.cwd / Path(name) for name in named])
    if PREVIEW in options or (undo.report.conflicts and ANYWAY not in options):
        again = f"/undo {rest.replace(PREVIEW, '').strip()} {ANYWAY}".replace("  ", " ")
        return ShowText("\n".join([*lines(undo.report), "", f"Nothing was changed yet; {again} does it."]))
    return await carry_out(desk, undoing, undo)


async def carry_out(desk: CommandContext, undoing: Undoing, undo: Undo) -> Outcome:
    """The files first, then the conversation."""
    done = await asyncio.to_thread(undoing.carry_out, undo)
    following = await desk.conversation.reopen(done.change)
    if following.watch is not None and (store := following.watch.store) is not None:
        store.end_step(done.step)
    return SwitchConversation(following, draft=undo.draft, text="\n".join(lines(done.report)))


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    return [*ways(desk), *diff.arguments(desk)]


def ways(desk: CommandContext) -> list[tuple[str, str]]:
    return [(PREVIEW, "only show what would happen"), (ANYWAY, "also where something cannot go back")]
