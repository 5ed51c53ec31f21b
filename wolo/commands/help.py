"""/help: what can be typed."""

from __future__ import annotations

from wolo.commands.command import Desk, Outcome, Shown


async def run(desk: Desk, rest: str) -> Outcome:
    width = max(len(command.name) for command in desk.commands)
    lines = [f"/{command.name:<{width}}  {command.help}" for command in desk.commands]
    return Shown("\n".join([*lines, "", "@path attaches a file. Ctrl-C stops a turn; twice on an empty line it leaves."]))
