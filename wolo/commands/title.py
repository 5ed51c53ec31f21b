"""/title: what this session is called in lists."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.errors import UsageError


async def run(desk: CommandContext, rest: str) -> Outcome:
    if not rest:
        raise UsageError("What shall this session be called?", hint="/title NAME")
    desk.conversation.entitle(rest)
    return ShowText(f"This session is called: {rest}")
