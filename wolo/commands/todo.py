"""/todo: the model's list of what is to be done."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.tools.todo import as_text


async def run(desk: CommandContext, rest: str) -> Outcome:
    return ShowText(as_text(desk.conversation.todos()) or "There is no todo list.")
