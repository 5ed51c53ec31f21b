"""/review: have changes looked at; nothing is changed."""

from __future__ import annotations

from wolo.commands.command import Desk, Outcome, Prompted
from wolo.commands.prompt_files import prompt

UNCOMMITTED = "what is not committed in this directory (`git status`, `git diff HEAD`, and the files git does not know yet)"


async def run(desk: Desk, rest: str) -> Outcome:
    return Prompted(prompt("review", what=rest or UNCOMMITTED))


def arguments(desk: Desk) -> list[tuple[str, str]]:
    return [("the last commit", ""), ("this branch against main", "")]
