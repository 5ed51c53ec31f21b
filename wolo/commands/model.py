"""/model: show the model, or go on with another one."""

from __future__ import annotations

from wolo.commands.command import Desk, Opened, Outcome, Shown
from wolo.conversation.conversation import Change


async def run(desk: Desk, rest: str) -> Outcome:
    if not rest:
        return Shown(f"{desk.conversation.model}\n/model PROVIDER/MODEL changes it; `wolo models list` shows what there is.")
    return Opened(await desk.conversation.reopen(Change(model=rest)))
