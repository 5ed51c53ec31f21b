"""Scores of runs: which tasks passed in how many tries, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from wolo.fleet.evaluation.statistics import Interval, ShareDifference, compare, pass_at
from wolo.fleet.ledger.results_file import provenance_of
from wolo.fleet.ledger.run_rows import Row

_NOT_GRADED = ("queued", "leased", "errored", "lost", "cancelled", "done")
"""Not tried to the end, or nothing judges them: they count in no share."""


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
