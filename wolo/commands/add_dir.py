"""/add-dir: add a directory to the workspace of this conversation."""

from __future__ import annotations

import asyncio
from pathlib import Path

from wolo.commands.arguments import words
from wolo.commands.command import CommandContext, Outcome, ShowText, SwitchConversation
from wolo.conversation.resources.session_info import Change
from wolo.errors import UsageError
from wolo.messages.terminal_text import clean_line


async def run(desk: CommandContext, rest: str) -> Outcome:
    workspace = desk.conversation.bench.workspace
    if not rest:
        listed = "\n".join(f"  {clean_line(str(path))}" for path in (workspace.root, *workspace.extra))
        return ShowText(f"The workspace:\n{listed}\n\n/add-dir DIR adds a directory, until wolo ends.")
    named = words(rest)
    if len(named) != 1:
        raise UsageError("Name one directory; quote a name with blanks.", hint="/add-dir ../library")
    path = await asyncio.to_thread(_directory, desk.conversation.cwd, named[0])
    opened = await desk.conversation.reopen(Change(directories=(str(path),)))
    return SwitchConversation(opened, text=f"{clean_line(str(path))} belongs to the workspace until wolo ends.")


def _directory(cwd: Path, name: str) -> Path:
    path = cwd / Path(name).expanduser()
    if not path.is_dir():
        raise UsageError(f"There is no directory {clean_line(str(path))}.")
    return path
