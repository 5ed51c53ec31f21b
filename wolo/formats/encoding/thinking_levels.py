"""Thinking levels: their order, the nearest supported one, and models that always think."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import get_args

from wolo.formats.format import ThinkingLevel

LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
"""Lowest to highest."""


def nearest_level(level: ThinkingLevel, known: Sequence[ThinkingLevel]) -> ThinkingLevel:
    """The level itself, the next higher one, or the highest. "off" becomes the lowest."""
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
"""Efforts supported by models that always think; other values are refused or silently mean full depth."""

_GLM_VERSION = r"(?i)glm-?(\d+)(?:\.(\d+))?"
_KIMI_ALWAYS_THINKS = r"(?i)kimi-?k(?:[3-9]|\d\d)"


def always_thinks(style: str, model: str) -> bool:
    """Disabling thinking would be refused. `style` is `ChatDialect.thinking_param_style`."""
    return style == "kimi" and re.search(_KIMI_ALWAYS_THINKS, model) is not None


def glm_level(model: str, level: ThinkingLevel) -> ThinkingLevel:
    """The level a GLM model uses when this one is requested."""
    version = glm_version(model)
    if version is None or version < GLM_ALWAYS_THINKS:
        return level
    return GLM_EFFORTS[level]


def glm_version(model: str) -> tuple[int, int] | None:
    found = re.search(_GLM_VERSION, model)
    return (int(found[1]), int(found[2] or 0)) if found else None
