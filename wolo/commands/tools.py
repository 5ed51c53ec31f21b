"""/tools: what the model can do here."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.commands.two_columns import rows


async def run(desk: CommandContext, rest: str) -> Outcome:
    tools = desk.conversation.tools
    if not tools:
        return ShowText("The model is offered no tools.")
    return ShowText("\n".join(rows([(tool.name, _first_sentence(tool.description)) for tool in tools], desk.columns)))


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).split(". ")[0].rstrip(".")
