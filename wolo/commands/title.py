"""/title: what this session is called in lists."""

from __future__ import annotations

from wolo.commands.command import Desk, Outcome, Shown
from wolo.errors import UsageError


async def run(desk: Desk, rest: str) -> Outcome:
    if not rest:
        raise UsageError("What shall this session be called?", hint="/title NAME")
    desk.conversation.entitle(rest)
    return Shown(f"This session is called: {rest}")
