"""/new: begin a new session; the old one stays as it is. Words behind it wait to be sent in the new one."""

from __future__ import annotations

from wolo.commands.command import Desk, Opened, Outcome
from wolo.conversation.resources.session_info import Change


async def run(desk: Desk, rest: str) -> Outcome:
    return Opened(await desk.conversation.reopen(Change(session=None)), draft=rest)
