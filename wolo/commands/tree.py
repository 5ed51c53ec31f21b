"""/tree: the prompts of this session, with all branches."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.sessions.tree_outline import draw, outline


async def run(desk: CommandContext, rest: str) -> Outcome:
    lines = draw(outline(*desk.conversation.tree()))
    if not lines:
        return ShowText("Nothing of this conversation is kept yet.")
    ways = "/rewind N: to before a prompt · /branch N: to the end of its branch · /label N NAME"
    return ShowText("\n".join([*lines, "", ways]))


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    """The prompts that another branch goes through."""
    return [(str(place.number), place.text) for place in outline(*desk.conversation.tree()) if not place.is_on_way]
