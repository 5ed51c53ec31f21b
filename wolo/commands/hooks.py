"""/hooks: lists the hooks, their files, and whether they run."""

from __future__ import annotations

import asyncio

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.conversation.resources.conversation_hooks import HookSet, find_problems
from wolo.messages.terminal_text import escaped_line

NONE = "No hooks. Define one as [[hooks.PreToolUse]] in your config.toml; see docs/guide/hooks.md."
STANDINGS = {
    "yours": "yours",
    "allowed": "project, allowed",
    "needs consent": "project, not run: new or changed, so they need your consent",
    "refused": "project, not run: refused",
}


async def _run(context: CommandContext, rest: str) -> Outcome:
    if not (sets := context.conversation.hooks):
        return ShowText(NONE)
    lines = [line for each in sets for line in lines_of(each)]
    problems = await asyncio.to_thread(find_problems, sets, context.conversation.info.cwd)
    return ShowText("\n".join([*lines, *(["", *problems] if problems else [])]))


def lines_of(hooks: HookSet) -> list[str]:
    status = "allowed" if hooks.plugin else STANDINGS[hooks.consent]
    if hooks.active_with and not hooks.folder and not hooks.runs:
        status = "yours, not run: the file is in the workspace, where the model writes"
    if not hooks.hooks:
        status = "nothing in it can run"
    notes = ", ".join((status, *(f"with the {each}" for each in hooks.active_with)))
    lines = [f"{escaped_line(hooks.source)}  ({escaped_line(notes)})"]
    for event, hook in hooks.hooks:
        matcher = " ".join(filter(None, (hook.matcher, f"if {hook.condition}" if hook.condition else "")))
        before = f"{escaped_line(matcher)}  → " if matcher else ""
        marks = (("strict", hook.strict), ("async", hook.in_background), ("once", hook.once))
        parts = [*(name for name, is_set in marks if is_set), *([f"{hook.timeout_s:g} s"] if hook.timeout_s else [])]
        after = f"  ({', '.join(parts)})" if parts else ""
        lines.append(f"  {event:<18}  {before}{escaped_line(hook.action)}{after}")
    return lines


COMMANDS = (Command("hooks", "your commands that run at events", _run, group="Extensions", while_working=True),)
