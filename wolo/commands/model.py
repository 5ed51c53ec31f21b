"""/model: show the model, or go on with another one."""

from __future__ import annotations

from wolo.commands.command import Desk, Opened, Outcome, Shown
from wolo.conversation.facts import Change
from wolo.conversation.model_facts import in_brief, models_here


async def run(desk: Desk, rest: str) -> Outcome:
    if not rest:
        return Shown(f"{desk.conversation.model}\n/model PROVIDER/MODEL changes it; `wolo models list` shows what there is.")
    return Opened(await desk.conversation.reopen(Change(model=rest)))


def arguments(desk: Desk) -> list[tuple[str, str]]:
    """Those that can be used now."""
    return [(each.label, in_brief(each)) for each in models_here(desk.conversation.bench.config) if each.has_key]
