"""Chooses the best of several attempts at one task."""

from __future__ import annotations

from collections.abc import Sequence

from wolo.fleet.exports.tables import seconds_of
from wolo.fleet.ledger.outcomes import AttemptOutcome
from wolo.fleet.ledger.run_rows import Row


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
