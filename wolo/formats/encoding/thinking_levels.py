"""Thinking levels: their order, the nearest supported one, and models that always think."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import get_args

from wolo.formats.format import ThinkingLevel

LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
"""From least to most."""


def nearest_level(level: ThinkingLevel, known: Sequence[ThinkingLevel]) -> ThinkingLevel:
    """The level itself, or the next one above it that is known, or the highest. "off" turns into the lowest."""
    ranks = sorted(LEVELS.index(each) for each in known)
    wanted = LEVELS.index(level)
    return LEVELS[next((rank for rank in ranks if rank >= wanted), ranks[-1])]


GLM_ALWAYS_THINKS = (5, 3)
GLM_EFFORTS: dict[ThinkingLevel, ThinkingLevel] = {
    "off": "low",
    "minimal": "low",
    "low": "low",
    "medium": "high",
    "high": "high",
    "xhigh": "max",
    "max": "max",
}
"""The three efforts of the models that always think; anything else they refuse, or think at full depth without saying so."""

_GLM_VERSION = re.compile(r"glm-?(\d+)(?:\.(\d+))?", re.IGNORECASE)
_KIMI_ALWAYS_THINKS = re.compile(r"kimi-?k(?:[3-9]|\d\d)", re.IGNORECASE)


def always_thinks(style: str, model: str) -> bool:
    """Asking it not to think would be refused. `style` is that of the Chat Completions dialect."""
    return style == "kimi" and _KIMI_ALWAYS_THINKS.search(model) is not None


def glm_level(model: str, level: ThinkingLevel) -> ThinkingLevel:
    """The level that counts with a GLM when this one is asked for."""
    version = glm_version(model)
    if version is None or version < GLM_ALWAYS_THINKS:
        return level
    return GLM_EFFORTS[level]


def glm_version(model: str) -> tuple[int, int] | None:
    found = _GLM_VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else None
