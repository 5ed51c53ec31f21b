"""/doctor: what works here and what does not."""

from __future__ import annotations

import asyncio

from wolo.commands.command import Desk, Outcome, Shown
from wolo.conversation.examining import examine, lines


async def run(desk: Desk, rest: str) -> Outcome:
    report = await asyncio.to_thread(examine)
    return Shown("\n".join(lines(report)))
