"""The cost of an answer."""

from __future__ import annotations

import pytest

from wolo.messages.message import Usage
from wolo.models.provider import Price, cost_of, is_known

USAGE = Usage(input_tokens=1_000_000, output_tokens=500_000, cache_read_tokens=2_000_000, cache_write_tokens=100_000)


def test_every_kind_of_token_has_its_price() -> None:
    cost = cost_of(USAGE, Price(input=1.0, output=4.0, cache_read=0.1, cache_write=1.25))
    assert cost is not None
    assert (cost.input, cost.output) == (1.0, 2.0)
    assert cost.cache_read == pytest.approx(0.2)
    assert cost.total == pytest.approx(1.0 + 2.0 + 0.2 + 0.125)


def test_cached_tokens_without_own_price_cost_full() -> None:
    cost = cost_of(USAGE, Price(input=1.0, output=4.0))
    assert cost is not None
    assert cost.cache_read == 2.0
    assert cost.cache_write == pytest.approx(0.1)


@pytest.mark.parametrize("price", [None, Price(), Price(input=1.0), Price(output=1.0)])
def test_unknown_price_gives_no_cost(price: Price | None) -> None:
    assert cost_of(USAGE, price) is None
    assert not is_known(price)


def test_free_models_cost_nothing_and_that_is_known() -> None:
    free = Price(input=0.0, output=0.0, cache_read=0.0)
    cost = cost_of(USAGE, free)
    assert is_known(free)
    assert cost is not None
    assert cost.total == 0
