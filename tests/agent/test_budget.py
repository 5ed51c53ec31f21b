"""Sums and limits."""

from __future__ import annotations

import pytest

from tests.agent.conftest import AgentHarness
from tests.fakes.replies import call, text
from wolo.agent.budget import NOTHING, Account, BudgetNotices, Limits, Spent, add, describe, limit_reached
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


def notice(notices: BudgetNotices, limits: Limits, *, cost: float = 0.0, answers: int = 0, seconds: float = 0.0) -> str:
    account = Account(limits)
    account.use(Usage(cost=UsageCost(total=cost)), num_answers=answers)
    return notices.notice(account, limits, NOTHING, answers, seconds)


def test_remainder_is_told_at_half_and_nine_tenths() -> None:
    notices, limits = BudgetNotices(), Limits(max_seconds=480, max_cost=0.6)
    assert notice(notices, limits, cost=0.29, seconds=230) == ""
    assert "about 4 minutes and 0.31 USD left" in notice(notices, limits, cost=0.29, seconds=240)
    assert notice(notices, limits, cost=0.29, seconds=300) == ""
    assert "about 2 minutes and 0.30 USD left" in notice(notices, limits, cost=0.3, seconds=350), "the other limit"
    last = notice(notices, limits, cost=0.35, seconds=440)
    assert "about 40 seconds and 0.25 USD left" in last
    assert "say what is missing" in last
    assert notice(notices, limits, cost=0.36, seconds=479) == ""


def test_limits_of_a_turn_are_told_in_each() -> None:
    notices, limits = BudgetNotices(), Limits(max_turns=4, max_cost=1.0)
    assert "0.40 USD and 2 answers left" in notice(notices, limits, cost=0.6, answers=2)
    notices.begin_turn()
    assert notice(notices, limits, cost=0.6) == "", "the cost is that of all turns"
    assert "2 answers" in notice(notices, limits, cost=0.6, answers=2)


def test_unknown_price_and_missing_limits_are_not_told() -> None:
    account = Account(Limits(max_cost=1.0))
    account.use(Usage(input_tokens=10))
    assert BudgetNotices().notice(account, Limits(max_cost=1.0), NOTHING, 1, 9.0) == ""
    assert notice(BudgetNotices(), Limits(), cost=99, answers=99, seconds=99) == ""


async def test_model_reads_remainder_behind_results(harness: AgentHarness) -> None:
    harness.limits = Limits(max_turns=4)
    harness.provider.script(call("say", {"text": "1"}), call("say", {"text": "2"}), call("say", {"text": "3"}), text("Done."))
    await harness.turn()
    last = [asked.messages[-1] for asked in harness.provider.requests]
    assert [message["role"] for message in last] == ["user", "tool", "user", "tool"]
    assert "2 answers left" in last[2]["content"]
