"""/undo and /redo: revert turns with their file changes, and restore them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from wolo.commands import diff
from wolo.commands.arguments import words
from wolo.commands.command import Command, CommandContext, Outcome, ShowText, SwitchConversation
from wolo.conversation.history.turn_undo import PreparedUndo, Undoing, lines
from wolo.errors import UsageError

PREVIEW, ANYWAY = "--preview", "--anyway"


async def undo(context: CommandContext, rest: str) -> Outcome:
    """`/undo [N] [PATH …]`. With conflicts it only shows a preview, unless `--anyway`."""
    given = words(rest)
    options = {word for word in given if word.startswith("--")}
    if unknown := options - {PREVIEW, ANYWAY}:
        raise UsageError(f"/undo has no option {min(unknown)}.", hint=f"/undo [N] [PATH …] [{PREVIEW}] [{ANYWAY}]")
    named = [word for word in given if word not in options]
    count = int(named.pop(0)) if named and named[0].isdecimal() else 1
    undoing = Undoing.of(context.conversation)
    undo = await asyncio.to_thread(undoing.undo, count, [context.conversation.info.cwd / Path(name) for name in named])
    if PREVIEW in options or (undo.report.conflicts and ANYWAY not in options):
        return ShowText("\n".join([*lines(undo.report), "", _nothing_yet("/undo", rest, undo)]))
    return await carry_out(context, undoing, undo)


async def _redo(context: CommandContext, rest: str) -> Outcome:
    if rest not in ("", PREVIEW, ANYWAY):
        raise UsageError("/redo takes only options.", hint=f"/redo [{PREVIEW}] [{ANYWAY}]")
    undoing = Undoing.of(context.conversation)
    redo = await asyncio.to_thread(undoing.redo)
    if rest == PREVIEW or (redo.report.conflicts and rest != ANYWAY):
        return ShowText("\n".join([*lines(redo.report), "", _nothing_yet("/redo", rest, redo)]))
    return await carry_out(context, undoing, redo)


def _nothing_yet(name: str, rest: str, undo: PreparedUndo) -> str:
    """Names `--anyway` only where there are conflicts: it skips files."""
    again = f"{name} {rest.replace(PREVIEW, '').replace(ANYWAY, '')}"
    does = f"{' '.join(again.split())}{f' {ANYWAY}' if undo.report.conflicts else ''}"
    return f"Nothing was changed yet; {does} {'skips the files in conflict' if undo.report.conflicts else 'does it'}."


async def carry_out(context: CommandContext, undoing: Undoing, undo: PreparedUndo) -> Outcome:
    """Restores the files, then the conversation."""
    done = await asyncio.to_thread(undoing.carry_out, undo)
    following = await context.conversation.reopen(done.change)
    if (store := following.files.tracker.store) is not None:
        store.end_step(done.step)
    return SwitchConversation(following, draft=undo.draft, text="\n".join(lines(done.report)))


def _options(context: CommandContext) -> list[tuple[str, str]]:
    return [(PREVIEW, "only show what would happen"), (ANYWAY, "even with conflicts")]


COMMANDS = (
    Command(
        "undo",
        "revert the last turn, files too",
        undo,
        doing="reverting",
        usage="[N] [PATH …] [--preview] [--anyway]",
        more="N turns; with paths, only the changes to these. --preview shows what would happen, --anyway skips files that were "
        "changed since.",
        group="History",
        arguments=lambda context: [*_options(context), *diff.arguments(context)],
        repeats=True,
    ),
    Command(
        "redo",
        "restore what was undone last",
        _redo,
        doing="restoring",
        usage="[--preview] [--anyway]",
        group="History",
        arguments=_options,
    ),
)
