"""Thinking levels: their order, and the nearest one that a model knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from wolo.formats.format import ThinkingLevel

LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
"""From least to most."""


def nearest(level: ThinkingLevel, known: Sequence[ThinkingLevel]) -> ThinkingLevel:
    """The level itself, or the next one above it that is known, or the highest. "off" turns into the lowest."""
    ranks = sorted(LEVELS.index(each) for each in known)
    wanted = LEVELS.index(level)
    return LEVELS[next((rank for rank in ranks if rank >= wanted), ranks[-1])]
