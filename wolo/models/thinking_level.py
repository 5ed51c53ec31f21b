"""Which thinking level counts when another one is asked for: no model knows all of them."""

from __future__ import annotations

from typing import Any

import msgspec

from wolo.formats.encoding.thinking_levels import always_thinks, glm_level, nearest
from wolo.formats.format import ThinkingLevel
from wolo.models.provider import Choice


def level_used(choice: Choice, level: ThinkingLevel) -> ThinkingLevel:
    """The nearest one that this model knows. What a model answers to a level is told by the flags of its dialect."""
    flags: dict[str, Any] = {**choice.provider.dialect, **choice.model.dialect}
    if known := flags.get("thinking_levels"):
        level = nearest(level, msgspec.convert(known, tuple[ThinkingLevel, ...]))
    style = flags.get("thinking_param_style", "")
    if style == "glm":
        return glm_level(choice.model.id, level)
    if level == "off" and (always_thinks(style, choice.model.id) or flags.get("thinking_off") == "refused"):
        return "low"
    return level


def always_on_notice(choice: Choice) -> str:
    """A word to a person who turned thinking off where it cannot be; empty: there is nothing to say."""
    wanted = choice.thinking
    if wanted != "off" or (used := level_used(choice, wanted)) == "off":
        return ""
    return f"{choice.label} always thinks; level {used} is used instead of off."
