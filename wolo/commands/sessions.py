"""/sessions: the sessions of this directory, newest first."""

from __future__ import annotations

from wolo.commands.command import Desk, Outcome, Shown

MOST = 20


async def run(desk: Desk, rest: str) -> Outcome:
    found = desk.conversation.sessions()
    if not found:
        return Shown("No session of this directory is kept.")
    lines = [f"{info.id}  {info.name or info.title or '-'}" for info in found[:MOST]]
    return Shown("\n".join([*lines, "", "/resume ID goes on with one."]))
