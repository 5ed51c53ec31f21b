"""/todo: the model's list of what is to be done."""

from __future__ import annotations

from wolo.commands.command import Desk, Outcome, Shown
from wolo.tools.todo import as_text


async def run(desk: Desk, rest: str) -> Outcome:
    return Shown(as_text(desk.conversation.todos()) or "There is no todo list.")
