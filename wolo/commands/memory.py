"""/memory: lists the loaded AGENTS.md files."""

from __future__ import annotations

import asyncio

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.extensions.instructions import read_instructions
from wolo.places import find_places


async def _run(context: CommandContext, rest: str) -> Outcome:
    facts = context.conversation.info
    found = await asyncio.to_thread(read_instructions, facts.root, facts.cwd, find_places().config)
    if not found.files:
        return ShowText("No AGENTS.md applies here. /init lets the model write one for this directory.")
    read = [f"{path}  ({path.stat().st_size / 1000:.1f} kB)" for path in found.files if path.exists()]
    return ShowText("\n".join([*read, *found.notices, "", "Loaded when a conversation starts, and again after /compact."]))


COMMANDS = (Command("memory", "loaded AGENTS.md files", _run, group="Permissions", while_working=True),)
