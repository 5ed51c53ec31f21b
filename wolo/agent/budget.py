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


SHARES = (0.9, 0.5)
"""Of a limit, at which the model is told what is left; the highest first."""
REMAINDER = "Budget: {left} left; then the turn is stopped. {advice}"
_ADVICE = {0.5: "Do the most important work first.", 0.9: "Bring the work to a state that holds now, and say what is missing."}


class BudgetNotices:
    """Notices about the limits of one agent: once for each limit and share."""

    def __init__(self) -> None:
        self._shares: dict[Spent, float] = {}
        """The share that was told last, by limit."""

    def begin_turn(self) -> None:
        """Two limits hold for each turn anew."""
        self._shares.pop("max_turns", None)
        self._shares.pop("max_seconds", None)

    def notice(self, account: Account, limits: Limits, used: Usage, num_answers: int, duration_s: float) -> str:
        """What is left of all limits, when one of them has come to another share; else empty.

        `account` is shared with the parent and its subagents; the rest is of this turn.
        """
        spent = _amounts(limits, used, num_answers, duration_s)
        for limit, amounts in _amounts(account.limits, account.used, account.answers, 0.0).items():
            spent[limit] = max(spent.get(limit, amounts), amounts, key=lambda each: each[0] / each[1])
        shares = {
            limit: next((share for share in SHARES if amount >= most * share), 0.0) for limit, (amount, most) in spent.items()
        }
        is_new = any(share > self._shares.get(limit, 0.0) for limit, share in shares.items())
        self._shares |= shares
        if not is_new:
            return ""
        rests = [_rest(limit, max(most - amount, 0)) for limit, (amount, most) in spent.items()]
        left = " and ".join(filter(None, (", ".join(rests[:-1]), rests[-1])))
        return REMAINDER.format(left=left, advice=_ADVICE[max(shares.values())])


def _amounts(limits: Limits, used: Usage, num_answers: int, duration_s: float) -> dict[Spent, tuple[float, float]]:
    """Amount and limit, of each limit that is set and known."""
    cost = None if used.cost is None else used.cost.total
    pairs: dict[Spent, tuple[float | None, float | None]] = {
        "max_seconds": (duration_s, limits.max_seconds),
        "max_cost": (cost, limits.max_cost),
        "max_turns": (num_answers, limits.max_turns),
        "max_tokens": (used.context_tokens, limits.max_tokens),
    }
    return {limit: (amount, most) for limit, (amount, most) in pairs.items() if amount is not None and most}


def _rest(limit: Spent, amount: float) -> str:
    match limit:
        case "max_seconds":
            return (
                f"about {quantity(round(amount / 60), 'minute')}"
                if amount >= 90
                else f"about {quantity(round(amount), 'second')}"
            )
        case "max_cost":
            return f"{amount:.2f} USD" if amount >= 0.1 else f"{amount:.4f} USD"
        case "max_turns":
            return quantity(round(amount), "answer")
    return quantity(round(amount), "token")


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
