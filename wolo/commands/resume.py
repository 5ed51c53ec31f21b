"""/resume: go on with another session, by id, prefix, name or title words."""

from __future__ import annotations

from wolo.commands import sessions
from wolo.commands.command import CommandContext, Outcome, SwitchConversation
from wolo.conversation.resources.session_info import Change


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    here = desk.conversation.session_id
    return [(info.id, info.name or info.title) for info in desk.conversation.sessions() if info.id != here]


async def run(desk: CommandContext, rest: str) -> Outcome:
    if not rest:
        return await sessions.run(desk, rest)
    return SwitchConversation(await desk.conversation.reopen(Change(session=rest)))
