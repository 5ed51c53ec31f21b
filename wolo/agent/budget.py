"""Limits of a turn, and the usage that counts against them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from wolo.messages.message import Usage, UsageCost
from wolo.messages.terminal_text import quantity

Spent = Literal["max_turns", "max_cost", "max_tokens", "max_seconds"]


class Limits(Struct, frozen=True, kw_only=True):
    """None: no limit."""

    max_turns: int | None = None
    """Model answers in one turn."""
    max_cost: float | None = None
    """US dollars, over all turns of a run."""
    max_tokens: int | None = None
    """Prompt and completion, over all turns of a run."""
    max_seconds: float | None = None
    """Wall time of one turn."""
    max_answer_bytes: Annotated[int, Meta(gt=0)] = 4_000_000
    """Bytes of text, thinking and arguments in one answer; a longer answer is stopped."""


def add(one: Usage, other: Usage) -> Usage:
    """Adds two usages. The cost is unknown if either cost is unknown, and estimated if either is estimated."""
    cost = None
    if one.cost is not None and other.cost is not None:
        cost = UsageCost(
            input=one.cost.input + other.cost.input,
            output=one.cost.output + other.cost.output,
            cache_read=one.cost.cache_read + other.cost.cache_read,
            cache_write=one.cost.cache_write + other.cost.cache_write,
            total=one.cost.total + other.cost.total,
        )
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cache_read_tokens=one.cache_read_tokens + other.cache_read_tokens,
        cache_write_tokens=one.cache_write_tokens + other.cache_write_tokens,
        reasoning_tokens=one.reasoning_tokens + other.reasoning_tokens,
        cost=cost,
        estimated=one.estimated or other.estimated,
    )


NOTHING = Usage(cost=UsageCost())
"""Start value of a sum."""


def limit_reached(limits: Limits, usage: Usage, num_answers: int) -> Spent | None:
    """Returns the limit that forbids another request. An unknown price counts as exceeding `max_cost`."""
    if limits.max_turns is not None and num_answers >= limits.max_turns:
        return "max_turns"
    if limits.max_cost is not None and (usage.cost is None or usage.cost.total >= limits.max_cost):
        return "max_cost"
    if limits.max_tokens is not None and usage.context_tokens >= limits.max_tokens:
        return "max_tokens"
    return None


class Account:
    """Usage of an agent and its subagents, which share one budget."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.used = NOTHING
        """Over all turns."""
        self.answers = 0
        """In this turn, including subagents."""
        self.lent = NOTHING
        """Usage of subagents that ended since the turn before."""

    def use(self, usage: Usage, *, num_answers: int = 0) -> None:
        self.used = add(self.used, usage)
        self.answers += num_answers

    def lend(self, usage: Usage) -> None:
        """Records the usage of a subagent that has finished; `use` has counted it already."""
        self.lent = add(self.lent, usage)

    def limit_reached(self) -> Spent | None:
        return limit_reached(self.limits, self.used, self.answers)


def describe(limits: Limits, cause: Spent) -> str:
    """Returns the sentence that the user sees."""
    seconds = limits.max_seconds or 0
    texts = {
        "max_turns": f"Stopped after {quantity(limits.max_turns or 0, 'answer')}",
        "max_cost": f"Stopped: ${limits.max_cost} spent, or the price of an answer is unknown",
        "max_tokens": f"Stopped: {quantity(limits.max_tokens or 0, 'token')} used",
        "max_seconds": f"Stopped after {seconds:g} second{'' if seconds == 1 else 's'}",
    }
    return f"{texts[cause]} (limit --{cause.replace('_', '-')})."
