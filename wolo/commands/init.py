"""/init: have the model look around and write an AGENTS.md."""

from __future__ import annotations

from wolo.commands.command import Desk, Outcome, Prompted
from wolo.commands.prompt_files import prompt


async def run(desk: Desk, rest: str) -> Outcome:
    return Prompted(prompt("init", rest))
