"""/doctor: what works here and what does not."""

from __future__ import annotations

import asyncio

from wolo.commands.command import CommandContext, Outcome, ShowText


async def run(desk: CommandContext, rest: str) -> Outcome:
    from wolo.diagnostics.doctor import examine, lines  # noqa: PLC0415  # 15 ms, an HTTP client with it

    report = await asyncio.to_thread(examine)
    return ShowText("\n".join(lines(report)))
