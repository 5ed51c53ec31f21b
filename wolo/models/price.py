"""Usage × price: what an answer cost."""

from __future__ import annotations

from wolo.messages.message import Usage, UsageCost
from wolo.models.provider import Price

PER_TOKEN = 1e-6
"""Prices are per million tokens."""


def cost_of(usage: Usage, price: Price | None) -> UsageCost | None:
    """None when a price that this usage needs is not known.

    Without prices of their own, cache reads and writes cost what fresh tokens cost: that is how providers bill them.
    """
    if price is None or price.input is None or price.output is None:
        return None
    cache_read = price.input if price.cache_read is None else price.cache_read
    cache_write = price.input if price.cache_write is None else price.cache_write
    parts = (
        usage.input_tokens * price.input * PER_TOKEN,
        usage.output_tokens * price.output * PER_TOKEN,
        usage.cache_read_tokens * cache_read * PER_TOKEN,
        usage.cache_write_tokens * cache_write * PER_TOKEN,
    )
    return UsageCost(*parts, total=sum(parts))


def is_known(price: Price | None) -> bool:
    """Whether every usage can be priced: what a budget in money needs."""
    return price is not None and price.input is not None and price.output is not None
