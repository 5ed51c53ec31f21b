"""/hooks: lists the hooks, their files, and whether they run."""

from __future__ import annotations

import asyncio

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.conversation.resources.conversation_hooks import HookSet, find_problems
from wolo.extensions.hooks.definitions import Hook
from wolo.messages.terminal_text import escaped_line

NONE = "No hooks. Define one as [[hooks.PreToolUse]] in your config.toml; see docs/guide/hooks.md."
STANDINGS = {
    "yours": "yours",
    "allowed": "project, allowed",
    "needs consent": "project, not run: new or changed, so they need your consent",
    "refused": "project, not run: refused",
}


async def _run(context: CommandContext, rest: str) -> Outcome:
    sets = context.conversation.hooks
    if not sets:
        return ShowText(NONE)
    lines = [line for each in sets for line in lines_of(each)]
    problems = await asyncio.to_thread(find_problems, sets, context.conversation.info.cwd)
    return ShowText("\n".join([*lines, *(["", *problems] if problems else [])]))


def lines_of(found: HookSet) -> list[str]:
    shown = ", ".join((_standing(found), *(f"with the {each}" for each in found.active_with)))
    return [
        f"{escaped_line(found.source)}  ({escaped_line(shown)})",
        *(f"  {event:<18}  {_matcher(hook)}{escaped_line(hook.action)}{_more(hook)}" for event, hook in found.hooks),
    ]


def _standing(found: HookSet) -> str:
    if found.active_with and not found.folder and not found.runs:
        return "yours, not run: the file is in the workspace, where the model writes"
    return "allowed" if found.plugin else STANDINGS[found.standing]


def _matcher(hook: Hook) -> str:
    parts = " ".join(filter(None, (hook.matcher, f"if {hook.condition}" if hook.condition else "")))
    return f"{escaped_line(parts)}  → " if parts else ""


def _more(hook: Hook) -> str:
    marks = (("strict", hook.strict), ("async", hook.in_background), ("once", hook.once))
    parts = [*(name for name, is_set in marks if is_set), *([f"{hook.timeout_s:g} s"] if hook.timeout_s else [])]
    return f"  ({', '.join(parts)})" if parts else ""


COMMANDS = (Command("hooks", "your commands that run at events", _run, group="Permissions", while_working=True),)
