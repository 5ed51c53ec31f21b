"""/undo, /redo, /retry, /diff: revert turns with their file changes, and show what this session has changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace

from wolo.commands.arguments import words
from wolo.commands.command import Command, CommandContext, Outcome, SendPrompt, ShowText, SwitchConversation
from wolo.conversation.history.changed_files import ChangedFile, find_changes, patch, paths_changed
from wolo.conversation.history.turn_undo import PreparedUndo, Undoing, lines
from wolo.errors import UsageError
from wolo.messages.terminal_text import quantity

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


MODEL = "--model"


async def _retry(context: CommandContext, rest: str) -> Outcome:
    parts, model = rest.split(), ""
    is_forced = ANYWAY in parts
    parts = [word for word in parts if word != ANYWAY]
    if MODEL in parts:
        at = parts.index(MODEL)
        if at + 1 == len(parts):
            raise UsageError(f"{MODEL} needs a model.", hint=f"/retry [WORDS] [{MODEL} PROVIDER/MODEL]")
        model = parts[at + 1]
        del parts[at : at + 2]
    undoing = Undoing.of(context.conversation)
    undo = await asyncio.to_thread(undoing.undo, 1)
    words = " ".join(parts) or undo.draft
    if not words:
        raise UsageError("The last turn has no words of yours to send again.", hint="/retry WORDS, or /undo.")
    if undo.report.conflicts and not is_forced:
        again = f"/retry {rest} {ANYWAY}".replace("  ", " ")
        return ShowText("\n".join([*lines(undo.report), "", f"Nothing was changed or sent; {again} does it."]))
    following = await carry_out(context, undoing, undo)
    assert isinstance(following, SwitchConversation)  # it reopens the conversation
    return replace(following, draft="", sends=SendPrompt(words, model=model))


MOST_DIFF_LINES = 400


async def _diff(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    wanted = [conversation.info.cwd / Path(name) for name in words(rest)]
    if not (changed := await asyncio.to_thread(find_changes, conversation.files.tracker, wanted)):
        return ShowText("This session has changed no files." if not rest else "This session has changed nothing there.")
    shown = await asyncio.to_thread(_as_markdown, changed, conversation.info.cwd)
    return ShowText(shown, is_answer=True)


def _changed_files(context: CommandContext) -> list[tuple[str, str]]:
    """The files that this session has changed."""
    cwd = context.conversation.info.cwd
    return [
        (str(Path(path).relative_to(cwd)) if Path(path).is_relative_to(cwd) else path, "")
        for path in paths_changed(context.conversation.files.tracker)
    ]


def _as_markdown(changed: list[ChangedFile], where: Path) -> str:
    """A Markdown code block, which front ends colour."""
    lines = [line for each in changed for line in patch(each, where)]
    more = len(lines) - MOST_DIFF_LINES
    lines = lines[:MOST_DIFF_LINES]
    bare = [line.lstrip(" +-") for line in lines]
    fence = "`" * max(3, *(len(each) - len(each.lstrip("`")) + 1 for each in bare))
    rest = f"\n\n{quantity(more, 'more line')}; /diff PATH shows a part." if more > 0 else ""
    return f"{fence}diff\n" + "\n".join(lines) + f"\n{fence}\n\n{quantity(len(changed), 'file')} changed in this session.{rest}"


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
        arguments=lambda context: [*_options(context), *_changed_files(context)],
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
    Command(
        "retry",
        "revert the last turn and ask again",
        _retry,
        doing="reverting",
        usage="[WORDS] [--model PROVIDER/MODEL]",
        more="Files are reverted as by /undo, then the last prompt is sent again, or WORDS instead of it. With --model that "
        "model answers this once. --anyway skips files that were changed since.",
        group="History",
    ),
    Command(
        "diff",
        "files changed in this session",
        _diff,
        doing="comparing files",
        usage="[PATH …]",
        more="Changes by tools and commands, from before the first to after the last; works without git.",
        group="History",
        arguments=_changed_files,
        repeats=True,
        while_working=True,
    ),
)
