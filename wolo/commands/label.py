"""/label: give a prompt a name of one's own."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.conversation.history.branching import prompt_of
from wolo.errors import UsageError


async def run(desk: CommandContext, rest: str) -> Outcome:
    first, _, others = rest.partition(" ")
    nodes, head = desk.conversation.tree()
    number = int(first) if first.isdecimal() else None
    label = (others if number is not None else rest).strip()
    if not rest:
        raise UsageError("What shall it be called?", hint="/label NAME names the last prompt, /label N NAME another.")
    message = prompt_of(nodes, head, number)
    desk.conversation.label(message.id, label)
    return ShowText(f"Named: {label}" if label else "It has no name any more.")
