"""How much a Gemini model shall think: a budget of tokens, or a level."""

from __future__ import annotations

from typing import Any

from wolo.formats.encoding.thinking_levels import nearest
from wolo.formats.format import ThinkingLevel
from wolo.formats.gemini.dialect import GeminiDialect

BUDGETS: dict[ThinkingLevel, int] = {"off": 0, "minimal": 512, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_576}
"""Brought within what the model allows; `max` is the most of it."""


def thinking_config(dialect: GeminiDialect, level: ThinkingLevel | None) -> dict[str, Any]:
    """Thoughts are always asked for, except where there are none. Without a level the model's own default holds."""
    if dialect.thinking_style == "none":
        return {}
    if level is None:
        return {"includeThoughts": True}
    if dialect.thinking_style == "level":
        known = nearest(level, dialect.thinking_levels)
        return {"includeThoughts": level != "off", "thinkingLevel": known.upper()}
    fewest, most = dialect.thinking_budgets
    budget = min(max(BUDGETS.get(level, most), fewest), most)
    return {"includeThoughts": True, "thinkingBudget": budget} if budget and level != "off" else {"thinkingBudget": budget}
