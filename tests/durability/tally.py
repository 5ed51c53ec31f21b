"""Counts rounds, kills and checks of a durability test, for its summary line."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any

SHARE = float(os.environ.get("DURABILITY_SHARE", "1"))
"""The part of the long counts to run: `DURABILITY_SHARE=0.1 make soak`."""


@dataclass
class Tally:
    name: str
    rounds: int = 0
    kills: int = 0
    """Rounds in which the process was ended before it was through."""
    acknowledged: int = 0
    lost: int = 0
    starts_s: list[float] = field(default_factory=list)
    """From the start of a process to its first request."""
    starts_cpu_s: list[float] = field(default_factory=list)

    @property
    def as_property(self) -> dict[str, Any]:
        return asdict(self)


def rounds(count: int) -> int:
    """Of a long test; a short one passes its number as it is."""
    return max(1, round(count * SHARE)) if count >= 50 else count
