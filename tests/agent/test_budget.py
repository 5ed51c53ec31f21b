"""Sums and limits."""

from __future__ import annotations

import pytest

from wolo.agent.budget import NOTHING, Limits, Spent, add, describe, limit_reached
from wolo.messages.message import Usage, UsageCost


def test_sums_keep_the_four_counts_apart() -> None:
    one = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4, reasoning_tokens=1)
    total = add(one, one)
    assert (total.input_tokens, total.output_tokens, total.cache_read_tokens, total.cache_write_tokens) == (2, 4, 6, 8)
    assert total.context_tokens == 20


def test_cost_is_unknown_once_one_is_unknown() -> None:
    priced = Usage(cost=UsageCost(total=0.5))
    total = add(add(NOTHING, priced), priced)
    assert total.cost is not None
    assert total.cost.total == 1.0
    assert add(total, Usage()).cost is None


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        (Limits(), None),
        (Limits(max_turns=3), "max_turns"),
        (Limits(max_turns=4), None),
        (Limits(max_tokens=100), "max_tokens"),
        (Limits(max_tokens=101), None),
        (Limits(max_cost=0.5), "max_cost"),
        (Limits(max_cost=0.51), None),
    ],
)
def test_limit_is_reached_when_used_up(limits: Limits, reached: Spent | None) -> None:
    usage = Usage(input_tokens=60, output_tokens=40, cost=UsageCost(total=0.5))
    assert limit_reached(limits, usage, 3) == reached
    if reached:
        assert f"--{reached.replace('_', '-')}" in describe(limits, reached)


def test_unknown_price_cannot_stay_under_a_limit() -> None:
    assert limit_reached(Limits(max_cost=10.0), Usage(), 1) == "max_cost"
