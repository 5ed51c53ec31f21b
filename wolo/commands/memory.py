"""/memory: the files whose instructions the model is given with every request."""

from __future__ import annotations

import asyncio

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.extensions.instructions import read_instructions
from wolo.places import find_places


async def run(desk: CommandContext, rest: str) -> Outcome:
    facts = desk.conversation.facts
    found = await asyncio.to_thread(read_instructions, facts.root, facts.cwd, find_places().config)
    if not found.files:
        return ShowText("No AGENTS.md is read here. /init has the model write one for this directory.")
    read = [f"{path}  ({path.stat().st_size / 1000:.1f} kB)" for path in found.files if path.exists()]
    return ShowText("\n".join([*read, *found.notices, "", "They are read when a conversation opens, and again after /compact."]))
