"""/branch: go to where another branch of this session had come to."""

from __future__ import annotations

from wolo.commands import tree
from wolo.commands.command import CommandContext, Outcome, SwitchConversation, number
from wolo.conversation.history.branching import to_branch


async def run(desk: CommandContext, rest: str) -> Outcome:
    if not rest:
        return await tree.run(desk, rest)
    nodes, head = desk.conversation.tree()
    following = await desk.conversation.reopen(to_branch(nodes, head, number(rest)))
    return SwitchConversation(following, text="On the other branch now. Files were not changed.")
