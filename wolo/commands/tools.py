"""/tools: what the model can do here."""

from __future__ import annotations

from wolo.commands.command import Desk, Outcome, Shown

MOST_CHARS = 66


async def run(desk: Desk, rest: str) -> Outcome:
    tools = desk.conversation.tools
    if not tools:
        return Shown("The model is offered no tools.")
    width = max(len(tool.name) for tool in tools)
    return Shown("\n".join(f"{tool.name:<{width}}  {_first_sentence(tool.description)}" for tool in tools))


def _first_sentence(text: str) -> str:
    sentence = " ".join(text.split()).split(". ")[0].rstrip(".")
    return sentence if len(sentence) <= MOST_CHARS else f"{sentence[: MOST_CHARS - 1].rstrip()}…"
