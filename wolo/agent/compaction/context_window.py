"""How large a request is, and how large it may be: what people and providers said, and what was learnt from refusals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from wolo.formats.format import ToolSpec
from wolo.messages.message import Message, Usage
from wolo.models.tokens import TokenEstimate

Positive = Annotated[int, Meta(ge=1)]

RESERVE_SHARE = 0.1
RESERVE_TOKENS = 16_384
"""The answer's share of the window, and the most that is kept free for it, where no setting says so."""
COARSE_TOKENS = 1_000
"""Estimates of smaller requests are too coarse to be corrected by what the provider counted."""
MOST_SCALE = 4.0

_LIMITS = (
    r"(?:maximum|limit|context (?:length|window|size)|prompt length)\D{0,40}?(\d[\d,_]{2,9})(?!\d)",
    r">=?\s*(\d[\d,_]{2,9})(?!\d)",
    r"(\d[\d,_]{2,9}) (?:tokens? )?maximum",
)


class Context(Struct, frozen=True, forbid_unknown_fields=True):
    """`context.*` of the settings."""

    window: Positive | None = None
    """Tokens at most, where the model would take more; none: what is known of the model."""
    reserve: Positive | None = None
    """Tokens kept free for the answer; none: a tenth of the window, at most 16,384."""

    def window_of(self, known: int | None) -> int | None:
        """The smaller of what was declared and what is known; None: nobody knows."""
        return min(filter(None, (self.window, known)), default=None)


class Fixed(NamedTuple):
    """What every request carries beside the messages."""

    system: str
    tools: tuple[ToolSpec, ...]
    window: int | None
    """Of the model that answers now, as far as anybody knows."""


class Window:
    """Belongs to one conversation."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._estimate = TokenEstimate()
        self.scale = 1.0
        """How many tokens the provider counts for one of ours. Never fewer: some servers do not count all they read."""
        self._learned: float | None = None
        """A size that was too much once."""

    def most(self, fixed: Fixed) -> float | None:
        """How large a request may be; None: nobody knows."""
        window = self._context.window_of(fixed.window)
        known = None if window is None else window - min(self._reserve(window), window // 2)
        return min(filter(None, (known, self._learned)), default=None)

    def whole(self, fixed: Fixed) -> float | None:
        """The window, with the room for the answer; None: nobody knows."""
        return min(filter(None, (self._context.window_of(fixed.window), self._learned)), default=None)

    def size(self, shown: Sequence[Message], fixed: Fixed) -> float:
        return self._estimate.request(shown, system=fixed.system, tools=fixed.tools) * self.scale

    def refused(self, size: float) -> None:
        """A request of this size was too large."""
        self._learned = min(self._learned or size, size)

    def counted(self, shown: Sequence[Message], fixed: Fixed, usage: Usage) -> None:
        """What the provider counted corrects the estimates."""
        ours = self._estimate.request(shown, system=fixed.system, tools=fixed.tools)
        theirs = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        if ours >= COARSE_TOKENS and theirs:
            self.scale = min(max(theirs / ours, 1.0), MOST_SCALE)

    def _reserve(self, window: int) -> int:
        return self._context.reserve or min(int(window * RESERVE_SHARE), RESERVE_TOKENS)


def stated_limit(message: str) -> int | None:
    """The window in tokens, as far as a refusal names it: the smallest number that is called a limit."""
    found = [int(re.sub("[,_]", "", number)) for pattern in _LIMITS for number in re.findall(pattern, message, re.IGNORECASE)]
    return min(found, default=None)
