"""/uncompact: what was shortened or left out is sent again, as far as it fits."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, RunEvents


async def run(desk: CommandContext, rest: str) -> Outcome:
    return RunEvents(desk.conversation.uncompact())
