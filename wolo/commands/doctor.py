"""/doctor: checks this installation."""

from __future__ import annotations

import asyncio

from wolo.commands.command import Command, CommandContext, Outcome, ShowText


async def _run(context: CommandContext, rest: str) -> Outcome:
    from wolo.diagnostics.health_check import examine, lines  # noqa: PLC0415  # 15 ms, an HTTP client with it

    report = await asyncio.to_thread(examine, model=context.conversation.choice.label)
    return ShowText("\n".join(lines(report)))


COMMANDS = (Command("doctor", "check this installation", _run, doing="checking the installation", while_working=True),)
