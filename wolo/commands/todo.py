"""/todo: shows the task list of the model."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.tools.todo import as_text


async def _run(context: CommandContext, rest: str) -> Outcome:
    return ShowText(as_text(context.conversation.todos()) or "No tasks.")


COMMANDS = (Command("todo", "task list", _run, aliases=("todos",), group="Conversation", while_working=True),)
