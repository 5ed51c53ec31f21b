"""/review: have changes looked at; nothing is changed."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, SendPrompt
from wolo.commands.prompt_files import prompt

UNCOMMITTED = "what is not committed in this directory (`git status`, `git diff HEAD`, and the files git does not know yet)"


async def run(desk: CommandContext, rest: str) -> Outcome:
    return SendPrompt(prompt("review", what=rest or UNCOMMITTED))


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    return [("the last commit", ""), ("this branch against main", "")]
