"""Limits of processor time: exact in `make bench`, which runs alone; beside other work ten times as much is too much."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

MOST_BESIDE_OTHERS = 10
"""Times the limit: more than load explains, less than a quadratic step costs on the sizes of these tests."""


class Clock:
    counts = False
    """`pytest --clock` sets it, and runs the tests with a limit alone."""


@contextmanager
def processor_time_below(limit_s: float) -> Iterator[None]:
    began_at = time.process_time()
    yield
    took_s = time.process_time() - began_at
    assert took_s < limit_s * (1 if Clock.counts else MOST_BESIDE_OTHERS), f"{took_s:.2f} s"


def clock_counts() -> bool:
    return Clock.counts


def has_a_limit(test: pytest.Function) -> bool:
    return bool({processor_time_below.__name__, clock_counts.__name__} & {*test.function.__code__.co_names})
