"""/btw: asks a side question that does not become part of the conversation."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.errors import UsageError


async def _run(context: CommandContext, rest: str) -> Outcome:
    if not rest:
        raise UsageError("/btw needs a question.", hint="/btw QUESTION")
    return ShowText(await context.conversation.aside(rest), is_answer=True)


COMMANDS = (
    Command(
        "btw",
        "ask a side question; the answer is not saved",
        _run,
        doing="asking a side question",
        usage="QUESTION",
        more="The model sees the conversation and has no tools. Its cost counts.",
        group="Conversation",
        while_working=True,
    ),
)
