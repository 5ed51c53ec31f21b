"""/mode: how much is done without asking, from the next call on."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.conversation.conversation import Conversation
from wolo.guard.modes import MODES


async def run(desk: CommandContext, rest: str) -> Outcome:
    conversation = desk.conversation
    if rest:
        return ShowText(enter(conversation, rest))
    rows = [f"{'*' if mode.name == conversation.mode else ' '} {mode.name:<5} {mode.about}" for mode in MODES.values()]
    return ShowText("\n".join([*rows, "", "/mode NAME changes it, also while a turn runs."]))


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    return [(mode.name, mode.about) for mode in MODES.values()]


def enter(conversation: Conversation, name: str) -> str:
    """What a person reads of it."""
    notice = conversation.set_mode(name)
    held = f", commands in {conversation.facts.sandbox}" if conversation.facts.sandbox else ""
    return "\n".join(filter(None, (notice, f"Mode {conversation.mode}: {MODES[conversation.mode].about}{held}.")))
