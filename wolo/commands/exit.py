"""/exit: quits wolo."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Exit, Outcome


async def _run(context: CommandContext, rest: str) -> Outcome:
    return Exit()


COMMANDS = (Command("exit", "quit; the session is saved", _run, aliases=("quit", "q")),)
