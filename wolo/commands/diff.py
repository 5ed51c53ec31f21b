"""/diff: shows the files that this session has changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from wolo.commands.arguments import words
from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.conversation.history.changed_files import ChangedFile, find_changes, patch, paths_changed
from wolo.messages.terminal_text import quantity

MOST_LINES = 400


async def _run(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    wanted = [conversation.info.cwd / Path(name) for name in words(rest)]
    if not (changed := await asyncio.to_thread(find_changes, conversation.files.tracker, wanted)):
        return ShowText("This session has changed no files." if not rest else "This session has changed nothing there.")
    shown = await asyncio.to_thread(_as_markdown, changed, conversation.info.cwd)
    return ShowText(shown, is_answer=True)


def arguments(context: CommandContext) -> list[tuple[str, str]]:
    """The files that this session has changed."""
    cwd = context.conversation.info.cwd
    return [
        (str(Path(path).relative_to(cwd)) if Path(path).is_relative_to(cwd) else path, "")
        for path in paths_changed(context.conversation.files.tracker)
    ]


def _as_markdown(changed: list[ChangedFile], where: Path) -> str:
    """A Markdown code block, which front ends colour."""
    lines = [line for each in changed for line in patch(each, where)]
    more = len(lines) - MOST_LINES
    lines = lines[:MOST_LINES]
    fence = "`" * max(3, *(_run_of_ticks(line) + 1 for line in lines))
    rest = f"\n\n{quantity(more, 'more line')}; /diff PATH shows a part." if more > 0 else ""
    return f"{fence}diff\n" + "\n".join(lines) + f"\n{fence}\n\n{quantity(len(changed), 'file')} changed in this session.{rest}"


def _run_of_ticks(line: str) -> int:
    stripped = line.lstrip(" +-")
    return len(stripped) - len(stripped.lstrip("`"))


COMMANDS = (
    Command(
        "diff",
        "files changed in this session",
        _run,
        doing="comparing files",
        usage="[PATH …]",
        more="Changes by tools and commands, from before the first to after the last; works without git.",
        group="History",
        arguments=arguments,
        repeats=True,
        while_working=True,
    ),
)
