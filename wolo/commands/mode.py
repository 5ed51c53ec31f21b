"""/mode and /plan: show and change the permission mode."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, SendPrompt, ShowText
from wolo.conversation.conversation import Conversation
from wolo.guard.modes import MODES, PLAN


async def _run(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    if rest:
        return ShowText(enter(conversation, rest))
    rows = [f"{'*' if name == conversation.info.mode else ' '} {name:<5} {about}" for name, about in _arguments(context)]
    return ShowText("\n".join([*rows, "", "/mode NAME changes it, even during a turn."]))


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    allowed = context.conversation.permissions.config.settings.managed.modes
    return [(mode.name, mode.about) for mode in MODES.values() if allowed.has(mode.name)]


def enter(conversation: Conversation, name: str) -> str:
    """Changes the mode. Returns a message for the user."""
    notice = conversation.set_mode(name)
    if conversation.mode_in_force != conversation.info.mode:
        return notice
    held = f", sandbox: {conversation.info.sandbox}" if conversation.info.sandbox else ""
    return "\n".join(filter(None, (notice, f"Mode {conversation.info.mode}: {MODES[conversation.info.mode].about}{held}.")))


async def _plan(context: CommandContext, rest: str) -> Outcome:
    entered = enter(context.conversation, PLAN)
    return SendPrompt(rest) if rest else ShowText(f"{entered}\n/mode NAME switches to another mode.")


COMMANDS = (
    Command(
        "plan",
        "plan mode: read only",
        _plan,
        usage="[TASK]",
        more="Enters mode plan; with TASK it also asks for a plan of it. /mode NAME switches to another mode.",
        group="Conversation",
    ),
    Command(
        "mode",
        "what runs without asking",
        _run,
        usage="[plan|ask|edit|auto|yolo]",
        more="Applies from the next call on; the sandbox follows. Resuming a session never restores yolo.",
        group="Permissions",
        arguments=_arguments,
        while_working=True,
    ),
)
