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

_GLM_VERSION = re.compile(r"glm-?(\d+)(?:\.(\d+))?", re.IGNORECASE)
_KIMI_ALWAYS_THINKS = re.compile(r"kimi-?k(?:[3-9]|\d\d)", re.IGNORECASE)


def always_thinks(style: str, model: str) -> bool:
    """Disabling thinking would be refused. `style` is `ChatDialect.thinking_param_style`."""
    return style == "kimi" and _KIMI_ALWAYS_THINKS.search(model) is not None


def glm_level(model: str, level: ThinkingLevel) -> ThinkingLevel:
    """The level a GLM model uses when this one is requested."""
    version = glm_version(model)
    if version is None or version < GLM_ALWAYS_THINKS:
        return level
    return GLM_EFFORTS[level]


def glm_version(model: str) -> tuple[int, int] | None:
    found = _GLM_VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else None
