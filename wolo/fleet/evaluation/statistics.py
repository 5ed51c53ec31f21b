"""Figures of evaluations with their intervals: shares, pass@k, and paired comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

_Z = 1.959964
"""Of a 95 % interval."""


class Interval(Struct, frozen=True):
    """A share and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def share(num_passed: float, num_all: int) -> Interval:
    """With the interval of Wilson, which also holds for few tasks and shares near 0 and 1."""
    if not num_all:
        return Interval(math.nan, 0.0, 1.0)
    p, square = num_passed / num_all, _Z * _Z
    middle = (p + square / (2 * num_all)) / (1 + square / num_all)
    reach = _Z * math.sqrt(p * (1 - p) / num_all + square / (4 * num_all**2)) / (1 + square / num_all)
    return Interval(p, max(middle - reach, 0.0), min(middle + reach, 1.0))


def pass_at(k: int, tasks: Sequence[tuple[int, int]]) -> Interval:
    """The chance that one of `k` tries passes, from (passed, tries) of each task; tasks with fewer tries do not count.

    Unbiased for each task (Chen et al. 2021, arXiv 2107.03374); the interval is that of the mean over tasks.
    """
    chances = [1 - math.comb(tries - passed, k) / math.comb(tries, k) for passed, tries in tasks if tries >= k]
    if not chances:
        return Interval(math.nan, 0.0, 1.0)
    if len({*chances}) == 1 or all(chance in (0, 1) for chance in chances):  # equal ones have no variance, and prove no more
        return share(sum(chances), len(chances))
    value, reach = _mean_and_reach(chances)
    return Interval(value, max(value - reach, 0.0), min(value + reach, 1.0))


class ShareDifference(Struct, frozen=True):
    """Of the same tasks in two runs: the second's mean share minus the first's."""

    value: float
    low: float
    high: float
    p: float
    """Two-sided sign test over the tasks that differ: the chance of such a split without any difference."""
    num_better: int
    num_worse: int

    @property
    def is_clear(self) -> bool:
        return self.p < 0.05


def compare(pairs: Sequence[tuple[float, float]]) -> ShareDifference:
    """`pairs` are shares of the same task in both runs."""
    gains = [after - before for before, after in pairs]
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    if not gains:
        return ShareDifference(math.nan, -1.0, 1.0, 1.0, 0, 0)
    value, reach = _mean_and_reach(gains)
    num_unequal = better + worse
    tail = sum(math.comb(num_unequal, each) for each in range(min(better, worse) + 1)) / 2**num_unequal
    return ShareDifference(value, max(value - reach, -1.0), min(value + reach, 1.0), min(2 * tail, 1.0), better, worse)


def _mean_and_reach(values: Sequence[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, 1.0
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, _Z * math.sqrt(variance / len(values))
