"""/btw: ask something aside; the answer is shown and does not become part of the conversation."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.errors import UsageError


async def run(desk: CommandContext, rest: str) -> Outcome:
    if not rest:
        raise UsageError("What do you want to know?", hint="/btw QUESTION")
    return ShowText(await desk.conversation.aside(rest), is_answer=True)
