"""Limits of processor time, which hold in `make bench` alone: beside other work a clock says little."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class Clock:
    counts = False
    """`pytest --clock` sets it, and runs the tests with a limit alone."""


@contextmanager
def processor_time_below(limit_s: float) -> Iterator[None]:
    """In `make test` the work has to end, that is all."""
    began_at = time.process_time()
    yield
    took_s = time.process_time() - began_at
    assert not Clock.counts or took_s < limit_s, f"{took_s:.2f} s"


def clock_counts() -> bool:
    return Clock.counts


def has_a_limit(test: pytest.Function) -> bool:
    return bool({processor_time_below.__name__, clock_counts.__name__} & {*test.function.__code__.co_names})
