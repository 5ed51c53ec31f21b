"""/thinking: shows or sets the thinking level."""

from __future__ import annotations

from msgspec.structs import replace

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError
from wolo.formats.encoding.thinking_levels import LEVELS
from wolo.formats.format import ThinkingLevel

NAMES = ", ".join(LEVELS)


async def _run(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    if not rest:
        known = conversation.choice.thinking
        now = f"{conversation.thinking_used}{_instead(conversation, known)}" if known else "provider default"
        return ShowText(f"{now}\n/thinking LEVEL changes it: {NAMES}.")
    level = next((each for each in LEVELS if each == rest.lower()), None)
    if level is None:
        raise UsageError(f"Unknown thinking level: {rest}.", hint=f"Levels: {NAMES}.")
    used = conversation.think(level)
    from wolo.models.capabilities import no_effect_notice  # noqa: PLC0415  # only once a level is asked for

    return ShowText(
        no_effect_notice(replace(conversation.choice, thinking=level))
        or f"Thinking level {used} from the next request on{_instead(conversation, level)}."
    )


def _instead(conversation: Conversation, level: ThinkingLevel) -> str:
    return "" if conversation.thinking_used == level else f"; {conversation.info.model} does not support {level}"


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    now = context.conversation.choice.thinking
    return [(level, "current" if level == now else "") for level in LEVELS]


COMMANDS = (
    Command(
        "thinking",
        "show or set the thinking level",
        _run,
        usage="[LEVEL]",
        group="Model",
        arguments=_arguments,
        while_working=True,
    ),
)
