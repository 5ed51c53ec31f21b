"""/add-dir: adds a directory to the workspace."""

from __future__ import annotations

import asyncio
from pathlib import Path

from wolo.commands.arguments import words
from wolo.commands.command import Command, CommandContext, Outcome, ShowText, SwitchConversation
from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError
from wolo.messages.terminal_text import clean_line


async def _run(context: CommandContext, rest: str) -> Outcome:
    workspace = context.conversation.permissions.workspace
    if not rest:
        listed = "\n".join(f"  {clean_line(str(path))}" for path in (workspace.root, *workspace.extra))
        return ShowText(f"Workspace:\n{listed}\n\n/add-dir DIR adds a directory until you quit.")
    named = words(rest)
    if len(named) != 1:
        raise UsageError("/add-dir takes one directory; quote a name with blanks.", hint="/add-dir ../library")
    path = await asyncio.to_thread(_directory, context.conversation.info.cwd, named[0])
    opened = await context.conversation.reopen(ConversationChange(directories=(str(path),)))
    return SwitchConversation(opened, text=f"Added {clean_line(str(path))} to the workspace until you quit.")


def _directory(cwd: Path, name: str) -> Path:
    path = cwd / Path(name).expanduser()
    if not path.is_dir():
        raise UsageError(f"No such directory: {clean_line(str(path))}.")
    return path


COMMANDS = (
    Command(
        "add-dir",
        "add a directory to the workspace",
        _run,
        doing="adding the directory",
        usage="[DIR]",
        more="Lasts until you quit; --add-dir does the same at start-up. Without DIR: list the directories of the workspace.",
        group="Permissions",
    ),
)
