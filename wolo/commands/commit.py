"""/commit: have the work committed; git is run by the model, so it asks as every command does."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, SendPrompt
from wolo.commands.prompt_files import prompt


async def run(desk: CommandContext, rest: str) -> Outcome:
    return SendPrompt(prompt("commit", rest))
