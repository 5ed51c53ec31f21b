"""/exit: leave; the session is kept."""

from __future__ import annotations

from wolo.commands.command import Desk, Left, Outcome


async def run(desk: Desk, rest: str) -> Outcome:
    return Left()
