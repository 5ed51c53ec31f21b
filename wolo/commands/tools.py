"""/tools: what the model can do here."""

from __future__ import annotations

from wolo.commands.command import Desk, Outcome, Shown
from wolo.commands.two_columns import rows


async def run(desk: Desk, rest: str) -> Outcome:
    tools = desk.conversation.tools
    if not tools:
        return Shown("The model is offered no tools.")
    return Shown("\n".join(rows([(tool.name, _first_sentence(tool.description)) for tool in tools], desk.columns)))


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).split(". ")[0].rstrip(".")
