"""Scores of runs with their intervals: which tasks passed in how many tries, what it cost, and the best of several tries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from wolo.fleet.exports.tables import seconds_of
from wolo.fleet.ledger.outcomes import AttemptOutcome
from wolo.fleet.ledger.results_file import provenance_of
from wolo.fleet.ledger.run_rows import Row

_NOT_GRADED = ("queued", "leased", "errored", "lost", "cancelled", "done")
"""Not tried to the end, or nothing judges them: they count in no share."""
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


class TaskScore(Struct, frozen=True):
    num_passed: int
    num_tries: int
    """That were graded."""

    @property
    def share(self) -> float:
        return self.num_passed / self.num_tries


class Scores(Struct, frozen=True):
    """Of one run."""

    tasks: Mapping[str, TaskScore]
    """By id, without those that have no graded try."""
    num_tasks: int
    num_rows: int
    num_ungraded: int
    cost_usd: float | None
    """None: a price is unknown."""

    @property
    def num_tries(self) -> int:
        """The most of a task."""
        return max((each.num_tries for each in self.tasks.values()), default=0)

    def pass_at(self, k: int) -> Interval:
        return pass_at(k, [(each.num_passed, each.num_tries) for each in self.tasks.values()])


def scores_of(rows: Iterable[Row]) -> Scores:
    passed: dict[str, list[bool]] = {}
    names = set()
    num_rows, num_ungraded, cost, is_priced = 0, 0, 0.0, True
    for row in rows:
        num_rows += 1
        names.add(row.task.base_id)
        spent = row.outcome.usage.cost_usd if row.outcome else row.cost_usd
        is_priced, cost = is_priced and spent is not None, cost + (spent or 0.0)
        if row.state in _NOT_GRADED:
            num_ungraded += 1
        else:
            passed.setdefault(row.task.base_id, []).append(row.state == "passed")
    tasks = {name: TaskScore(sum(tries), len(tries)) for name, tries in passed.items()}
    return Scores(tasks, len(names), num_rows, num_ungraded, cost if is_priced else None)


def as_json(scores: Scores, k: int) -> dict[str, Any]:
    figures = {"pass@1": scores.pass_at(1), **({f"pass@{k}": scores.pass_at(k)} if k > 1 else {})}
    return {
        "tasks": len(scores.tasks),
        "rows": scores.num_rows,
        "ungraded": scores.num_ungraded,
        **{name: _plain(each) for name, each in figures.items()},
        "cost_usd": scores.cost_usd,
    }


def provenance_values(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Each value of the provenance that results have, once."""
    lines = [provenance_of(row.outcome) for row in rows]
    return {name: sorted({line[name] for line in lines if line[name]}) for name in lines[0]} if lines else {}


def _plain(figure: Interval) -> dict[str, float | None]:
    """Null, which JSON has, for what was not measured."""
    return {"value": None if math.isnan(figure.value) else figure.value, "low": figure.low, "high": figure.high}


def compare_scores(first: Scores, second: Scores) -> tuple[ShareDifference, list[tuple[str, TaskScore, TaskScore]]]:
    """Over the tasks that both have, and those of them that differ, in their order."""
    both = [(name, first.tasks[name], second.tasks[name]) for name in first.tasks if name in second.tasks]
    return compare([(a.share, b.share) for _, a, b in both]), [each for each in both if each[1].share != each[2].share]


def choose_winner(rows: Sequence[Row]) -> tuple[Row | None, str]:
    """The winner and the reason: it passed, then it changed something, then cost, patch size, time.

    Costs are compared only when all are known.
    """
    ended = [(row, row.outcome) for row in rows if row.outcome is not None and row.state in ("passed", "done")]
    if not ended:
        return None, "no try passed" if any(row.task.verify for row in rows) else "no try came to its end"
    changed = [each for each in ended if each[1].patch is not None]
    left = changed or ended
    verb = "passed" if any(row.task.verify for row in rows) else "finished"
    what = f"{verb} with a change" if changed else verb
    if len(left) == 1:
        return left[0][0], f"the only one that {what}"
    reason = f"the first of {len(left)} that {what}"
    costs = _costs([end for _, end in left])
    sizes = [end.patch.size_bytes if end.patch else 0 for _, end in left]
    scores = [*zip(costs, sizes, [seconds_of(end) for _, end in left], strict=True)]
    best = scores.index(min(scores))
    for name, values in zip(("cheapest", "smallest patch", "fastest"), zip(*scores, strict=True), strict=True):
        if len(set(values)) > 1:
            reason = f"{name} of {len(left)} that {what}"
            break
    return left[best][0], reason


def _costs(ends: Sequence[AttemptOutcome]) -> list[float]:
    costs = [end.usage.cost_usd for end in ends]
    known = [cost for cost in costs if cost is not None]
    return known if len(known) == len(costs) else [0.0] * len(costs)
