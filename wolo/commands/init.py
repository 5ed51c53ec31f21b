"""/init: have the model look around and write an AGENTS.md."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, SendPrompt
from wolo.commands.prompt_files import prompt


async def run(desk: CommandContext, rest: str) -> Outcome:
    return SendPrompt(prompt("init", rest))
