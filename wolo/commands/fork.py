"""/fork: continue in a copy of this session; the session itself stays as it is."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, SwitchConversation
from wolo.conversation.resources.session_info import Change
from wolo.errors import UsageError


async def run(desk: CommandContext, rest: str) -> Outcome:
    conversation = desk.conversation
    if not conversation.facts.keeps_session or not conversation.history:
        raise UsageError("There is nothing to copy yet.", hint="Send a prompt first; --no-session saves nothing.")
    original = conversation.session_id
    opened = await conversation.reopen(Change(session=original, fork=True))
    if rest:
        opened.entitle(rest)
    return SwitchConversation(
        opened, text=f"Continuing in a copy, {opened.session_id}. /resume {original} goes back to the original."
    )
