"""Counts of tokens as servers write them: whatever cannot be one counts nothing."""

from __future__ import annotations

BEYOND_BELIEF = 10**12
"""No answer has so many tokens: such a number is a mistake, and sums of it would fit nowhere."""


def token_count(value: object) -> int:
    """0 for what is no count."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < BEYOND_BELIEF:
        return 0
    return int(value)
