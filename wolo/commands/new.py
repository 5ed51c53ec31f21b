"""/new: begin a new session; the old one stays as it is. Words behind it wait to be sent in the new one."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, SwitchConversation
from wolo.conversation.resources.session_info import Change


async def run(desk: CommandContext, rest: str) -> Outcome:
    return SwitchConversation(await desk.conversation.reopen(Change(session=None)), draft=rest)
