"""/sandbox: what holds the commands of this conversation, and what it does not cover."""

from __future__ import annotations

import asyncio

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.conversation.resources.sandboxing import find_sandbox
from wolo.places import find_places


async def run(desk: CommandContext, rest: str) -> Outcome:
    conversation = desk.conversation
    facts, bench = conversation.facts, conversation.bench
    found = await asyncio.to_thread(find_sandbox, bench.config, bench.workspace, find_places())
    held = f"Commands run in {facts.sandbox}." if facts.sandbox else f"Nothing holds commands in mode {facts.mode}."
    lines = [held, f"setting      sandbox.backend = {bench.config.settings.sandbox.backend}"]
    lines.append(f"on offer     {found.backend}{'' if found.is_whole else ' (partial)'}")
    if found.covers:
        lines.append(f"covers       {', '.join(found.covers)}")
    lines.append(f"not covered  {', '.join(found.not_covered) or 'nothing'}")
    lines += [f"             {why}" for why in found.tried]
    if not facts.sandbox and found.make is not None:
        lines += ["", "/mode auto runs commands in it."]
    return ShowText("\n".join(lines))
