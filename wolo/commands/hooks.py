"""/hooks: the commands that run at events, where each is written, and whether it runs."""

from __future__ import annotations

import asyncio

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.conversation.resources.hooks import HookSet, find_problems
from wolo.extensions.hooks.definitions import TIMEOUT_S, Hook
from wolo.messages.terminal_text import spelled_line

NONE = "There are no hooks. [[hooks.PreToolUse]] in your config.toml is a place for one; docs/guide/hooks.md tells more."
_STANDINGS = {
    "yours": "yours",
    "allowed": "of the project; you have allowed them",
    "needs consent": "of the project; not run: as they are now they need your consent",
    "refused": "of the project; not run: you do not want to be asked",
}


async def run(desk: CommandContext, rest: str) -> Outcome:
    sets = desk.conversation.hooks
    if not sets:
        return ShowText(NONE)
    lines = [line for each in sets for line in lines_of(each)]
    problems = await asyncio.to_thread(find_problems, sets, desk.conversation.cwd)
    return ShowText("\n".join([*lines, *(["", *problems] if problems else [])]))


def lines_of(found: HookSet) -> list[str]:
    """The file, whether its hooks run, and each of them."""
    return [
        f"{spelled_line(found.source)}  ({_STANDINGS[found.standing]})",
        *(f"  {event:<18}  {_matcher(hook)}{spelled_line(hook.command)}{_more(hook)}" for event, hook in found.hooks),
    ]


def _matcher(hook: Hook) -> str:
    said = " ".join(filter(None, (hook.matcher, f"if {hook.condition}" if hook.condition else "")))
    return f"{spelled_line(said)}  → " if said else ""


def _more(hook: Hook) -> str:
    said = [*(["strict"] if hook.strict else []), *([f"{hook.timeout_s:g} s"] if hook.timeout_s != TIMEOUT_S else [])]
    return f"  ({', '.join(said)})" if said else ""
