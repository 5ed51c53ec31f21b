"""/exit: leave; the session is kept."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Exit, Outcome


async def run(desk: CommandContext, rest: str) -> Outcome:
    return Exit()
