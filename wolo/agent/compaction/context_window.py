"""Estimates the size of requests and their limit, from settings, model data and refusals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from wolo.formats.format import ToolSpec
from wolo.messages.message import Message, Usage
from wolo.models.tokens import TokenEstimate

Positive = Annotated[int, Meta(ge=1)]

RESERVE_SHARE = 0.1
RESERVE_TOKENS = 16_384
"""Room reserved for the answer without a setting: a share of the window, at most this many tokens."""
COARSE_TOKENS = 1_000
"""Smaller requests do not correct the estimates."""
MOST_SCALE = 4.0

_LIMITS = (
    r"(?:maximum|limit|context (?:length|window|size)|prompt length)\D{0,40}?(\d[\d,_]{2,9})(?!\d)",
    r">=?\s*(\d[\d,_]{2,9})(?!\d)",
    r"(\d[\d,_]{2,9}) (?:tokens? )?maximum",
)


class Context(Struct, frozen=True, forbid_unknown_fields=True):
    """`context.*` of the settings."""

    window: Positive | None = None
    """Maximum tokens, if the model would take more; none: the model's window."""
    reserve: Positive | None = None
    """Tokens reserved for the answer; none: a tenth of the window, at most 16,384."""

    def window_of(self, known: int | None) -> int | None:
        """Returns the smaller of the setting and the model's window; None: unknown."""
        return min(filter(None, (self.window, known)), default=None)


class Fixed(Struct, frozen=True):
    """The parts of every request besides the messages."""

    system: str
    tools: tuple[ToolSpec, ...]
    window: int | None
    """Window of the current model; None: unknown."""


class Window:
    """Belongs to one conversation."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._estimate = TokenEstimate()
        self.scale = 1.0
        """Provider's tokens per estimated token, at least 1: some servers do not count everything."""
        self._learned: float | None = None
        """Smallest size that was refused."""

    def most(self, fixed: Fixed) -> float | None:
        """Returns the maximum size of a request; None: unknown."""
        window = self._context.window_of(fixed.window)
        if window is not None:
            reserve = self._context.reserve or min(int(window * RESERVE_SHARE), RESERVE_TOKENS)
            window -= min(reserve, window // 2)
        return min(filter(None, (window, self._learned)), default=None)

    def whole(self, fixed: Fixed) -> float | None:
        """Returns the window including the room for the answer; None: unknown."""
        return min(filter(None, (self._context.window_of(fixed.window), self._learned)), default=None)

    def size(self, shown: Sequence[Message], fixed: Fixed) -> float:
        return self._estimate.request(shown, system=fixed.system, tools=fixed.tools) * self.scale

    def refused(self, size: float) -> None:
        """Records that a request of this size was too large."""
        self._learned = min(self._learned or size, size)

    def counted(self, shown: Sequence[Message], fixed: Fixed, usage: Usage) -> None:
        """Corrects the scale by the provider's count."""
        ours = self._estimate.request(shown, system=fixed.system, tools=fixed.tools)
        theirs = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        if ours >= COARSE_TOKENS and theirs:
            self.scale = min(max(theirs / ours, 1.0), MOST_SCALE)


def stated_limit(message: str) -> int | None:
    """Returns the smallest number that a refusal calls a limit."""
    found = [int(re.sub("[,_]", "", number)) for pattern in _LIMITS for number in re.findall(pattern, message, re.IGNORECASE)]
    return min(found, default=None)
