"""/thinking: show how much the model thinks, or change it from the next request on."""

from __future__ import annotations

from msgspec.structs import replace

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError
from wolo.formats.encoding.thinking_levels import LEVELS
from wolo.formats.format import ThinkingLevel

NAMES = ", ".join(LEVELS)


async def run(desk: CommandContext, rest: str) -> Outcome:
    conversation = desk.conversation
    if not rest:
        known = conversation.thinking
        now = f"{conversation.thinking_used}{_instead(conversation, known)}" if known else "as much as the provider lets it"
        return ShowText(f"{now}\n/thinking LEVEL changes it: {NAMES}.")
    level = next((each for each in LEVELS if each == rest.lower()), None)
    if level is None:
        raise UsageError(f"There is no thinking level {rest}.", hint=f"Levels are {NAMES}.")
    used = conversation.think(level)
    return ShowText(
        _no_effect(conversation, level) or f"Thinking is {used} from the next request on{_instead(conversation, level)}."
    )


def _instead(conversation: Conversation, level: ThinkingLevel) -> str:
    return "" if conversation.thinking_used == level else f"; {conversation.model} does not know {level}"


def _no_effect(conversation: Conversation, level: ThinkingLevel) -> str:
    from wolo.models.capabilities import no_effect_notice  # noqa: PLC0415  # only once a level is asked for

    return no_effect_notice(replace(conversation.choice, thinking=level))


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    now = desk.conversation.thinking
    return [(level, "as now" if level == now else "") for level in LEVELS]
