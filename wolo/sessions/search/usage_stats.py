"""Counts what all sessions used, from the index alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from wolo.sessions.index import Index
from wolo.sessions.listing import SessionInfo

By = Literal["model", "tool", "project", "day"]

# What a fork shares with its original counts once, for the older session.
_ANSWERS = (
    "SELECT min(session), at, model, fresh, cache_read, cache_write, output, reasoning, cost "
    "FROM answers WHERE at >= ? GROUP BY message"
)
_PROMPTS = "SELECT min(session), at FROM prompts WHERE at >= ? GROUP BY message"
_CALLS = (
    "SELECT tool, count(*), sum(failed) FROM (SELECT tool, failed, min(session) FROM calls WHERE at >= ? GROUP BY part) "
    "GROUP BY tool ORDER BY count(*) DESC, tool"
)


class UsageTotals(Struct):
    name: str = ""
    """A model, a directory or a day; empty for the total."""
    turns: int = 0
    answers: int = 0
    input: int = 0
    """Uncached prompt tokens."""
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    """Included in `output`."""
    known_cost: float = 0.0
    """US dollars of the answers with a known price."""
    unpriced: int = 0
    """Number of answers without a known price."""

    @property
    def tokens(self) -> int:
        return self.input + self.cache_read + self.cache_write + self.output

    @property
    def cost(self) -> float | None:
        """None when the price of an answer is unknown."""
        return None if self.unpriced else self.known_cost

    @property
    def cache_share(self) -> float | None:
        """Share of prompt tokens read from a cache; None without any."""
        prompt = self.input + self.cache_read + self.cache_write
        return self.cache_read / prompt if prompt else None

    def add(self, counts: Sequence[int], cost: float | None) -> None:
        fresh, cache_read, cache_write, output, reasoning = counts
        self.answers += 1
        self.input += fresh
        self.cache_read += cache_read
        self.cache_write += cache_write
        self.output += output
        self.reasoning += reasoning
        if cost is None:
            self.unpriced += 1
        else:
            self.known_cost += cost


class ToolUsage(Struct, frozen=True):
    name: str
    calls: int
    failed: int


class Stats(Struct, frozen=True, kw_only=True):
    total: UsageTotals
    sessions: int
    models: tuple[UsageTotals, ...]
    """Most tokens first, like `projects`."""
    projects: tuple[UsageTotals, ...]
    days: tuple[UsageTotals, ...]
    """In order, in local time."""
    tools: tuple[ToolUsage, ...]


def count(index: Index, sessions: Sequence[SessionInfo], since_at: float = 0.0) -> Stats:
    """Counts everything since `since`. Raises SessionError."""
    directories = {info.id: info.cwd for info in sessions}
    counted: set[str] = set()
    total = UsageTotals()
    models: dict[str, UsageTotals] = {}
    projects: dict[str, UsageTotals] = {}
    days: dict[str, UsageTotals] = {}

    def where_and_when(session: str, at: float) -> tuple[UsageTotals, UsageTotals]:
        counted.add(session)
        day = datetime.fromtimestamp(at).astimezone().date().isoformat()
        return _totals_of(projects, directories.get(session, "?")), _totals_of(days, day)

    with index.reading() as connection:
        for session, at, model, *counts, cost in connection.execute(_ANSWERS, (since_at,)):
            for totals in (total, _totals_of(models, model or "unknown"), *where_and_when(session, at)):
                totals.add(counts, cost)
        for session, at in connection.execute(_PROMPTS, (since_at,)):
            for totals in (total, *where_and_when(session, at)):
                totals.turns += 1
        return Stats(
            total=total,
            sessions=len(counted),
            models=_largest_first(models),
            projects=_largest_first(projects),
            days=tuple(days[day] for day in sorted(days)),
            tools=tuple(ToolUsage(*row) for row in connection.execute(_CALLS, (since_at,))),
        )


def _totals_of(totals: dict[str, UsageTotals], name: str) -> UsageTotals:
    return totals.setdefault(name, UsageTotals(name=name))


def _largest_first(totals: Mapping[str, UsageTotals]) -> tuple[UsageTotals, ...]:
    return tuple(sorted(totals.values(), key=lambda each: (-each.tokens, -each.turns, each.name)))
