"""/sessions: the sessions of this directory, newest first."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, ShowText

MOST = 20
TITLE_CHARS = 80


async def run(desk: CommandContext, rest: str) -> Outcome:
    found = desk.conversation.sessions()
    if not found:
        return ShowText("No session of this directory is kept yet.")
    here = desk.conversation.session_id
    lines = [
        f"{'*' if info.id == here else ' '} {info.id}  {(info.name or info.title or '-')[:TITLE_CHARS]}" for info in found[:MOST]
    ]
    if len(found) > MOST:
        lines.append(f"  and {len(found) - MOST} older ones: `wolo sessions list`")
    return ShowText("\n".join([*lines, "", "/resume ID goes on with one; the one marked * is open here."]))
