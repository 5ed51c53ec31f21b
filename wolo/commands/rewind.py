"""/rewind: go back to before a prompt; what was said since stays on a branch of its own."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, ShowText, SwitchConversation, number
from wolo.conversation.history.branching import before_prompt
from wolo.sessions.tree_outline import draw, outline


async def run(desk: CommandContext, rest: str) -> Outcome:
    nodes, head = desk.conversation.tree()
    if not rest:
        here = [place for place in outline(nodes, head) if place.is_on_way]
        return ShowText(
            "\n".join([*draw(here), "", "/rewind N goes back to before one of them."]) if here else "Nothing was said yet."
        )
    change, text = before_prompt(nodes, head, number(rest))
    following = await desk.conversation.reopen(change)
    told = f"Back to before: {' '.join(text.split())[:60]}\nFiles were not changed back; /undo takes them along."
    return SwitchConversation(following, draft=text, text=told)


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    """The newest first."""
    return [(str(place.number), place.text) for place in reversed(outline(*desk.conversation.tree())) if place.is_on_way]
