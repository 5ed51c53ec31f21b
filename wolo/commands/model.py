"""/model: show the model, or go on with another one."""

from __future__ import annotations

from wolo.commands.command import Desk, Opened, Outcome, Shown
from wolo.conversation.build import reopen


async def run(desk: Desk, rest: str) -> Outcome:
    if not rest:
        return Shown(f"{desk.conversation.model}\n/model PROVIDER/MODEL changes it; `wolo models list` shows what there is.")
    return Opened(await reopen(desk.conversation, model=rest))
