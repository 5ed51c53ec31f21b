"""/diff: what this session has changed in files, by tools and by commands, with or without git."""

from __future__ import annotations

import asyncio
from pathlib import Path

from wolo.commands.arguments import words
from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.conversation.history.changed_files import Changed, changed_by, patch, paths_changed
from wolo.errors import UsageError
from wolo.messages.terminal_text import counted

MOST_LINES = 400


async def run(desk: CommandContext, rest: str) -> Outcome:
    conversation = desk.conversation
    if conversation.watch is None:
        raise UsageError("Nothing is known here of what was changed.")
    wanted = [conversation.cwd / Path(name) for name in words(rest)]
    changed = await asyncio.to_thread(changed_by, conversation.watch, wanted)
    if not changed:
        return ShowText("This session has changed no file." if not rest else "This session has changed nothing there.")
    shown = await asyncio.to_thread(_shown, changed, conversation.cwd)
    return ShowText(shown, is_answer=True)


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    """The files that this session has changed."""
    cwd, watch = desk.conversation.cwd, desk.conversation.watch
    return [(_near(path, cwd), "") for path in (paths_changed(watch) if watch is not None else ())]


def _near(path: str, cwd: Path) -> str:
    return str(Path(path).relative_to(cwd)) if Path(path).is_relative_to(cwd) else path


def _shown(changed: list[Changed], where: Path) -> str:
    """As Markdown: whoever draws it knows the colours."""
    lines = [line for each in changed for line in patch(each, where)]
    more = len(lines) - MOST_LINES
    lines = lines[:MOST_LINES]
    fence = "`" * max(3, *(_run_of_ticks(line) + 1 for line in lines))
    told = f"\n\n{counted(more, 'more line')}; /diff PATH shows a part." if more > 0 else ""
    files = "1 file" if len(changed) == 1 else f"{len(changed)} files"
    return f"{fence}diff\n" + "\n".join(lines) + f"\n{fence}\n\n{files} changed in this session.{told}"


def _run_of_ticks(line: str) -> int:
    stripped = line.lstrip(" +-")
    return len(stripped) - len(stripped.lstrip("`"))
