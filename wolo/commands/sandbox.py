"""/sandbox: shows the sandbox of commands and its gaps."""

from __future__ import annotations

import asyncio

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.conversation.resources.tool_environment import find_sandbox
from wolo.places import find_places


async def _run(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    facts, bench = conversation.info, conversation.permissions
    selection = await asyncio.to_thread(find_sandbox, bench.config, bench.workspace, find_places())
    held = f"Commands run in {facts.sandbox}." if facts.sandbox else f"Commands are not sandboxed in mode {facts.mode}."
    lines = [held, f"setting      sandbox.backend = {bench.config.settings.sandbox.backend}"]
    lines.append(f"available    {selection.backend}{'' if selection.is_whole else ' (partial)'}")
    if selection.covers:
        lines.append(f"covers       {', '.join(selection.covers)}")
    lines.append(f"not covered  {', '.join(selection.not_covered) or 'nothing'}")
    lines += [f"             {why}" for why in selection.tried]
    if not facts.sandbox and selection.make is not None:
        lines += ["", "/mode auto runs commands in the sandbox."]
    return ShowText("\n".join(lines))


COMMANDS = (
    Command(
        "sandbox",
        "the sandbox of commands, and its gaps",
        _run,
        doing="trying the sandbox",
        group="Permissions",
        while_working=True,
    ),
)
