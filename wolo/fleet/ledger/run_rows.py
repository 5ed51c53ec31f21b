"""Values that describe a run and the state of its tasks."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from wolo.fleet.ledger.outcomes import AttemptOutcome, State
from wolo.fleet.tasks import BatchTask

Beat = Literal["held", "cancelled", "budget", "lost"]
"""`cancelled`, `budget`: stop, then publish with that state; `lost`: stop, another worker has the task."""


class Meta(Struct, frozen=True, kw_only=True):
    """Fixed when the run is created."""

    version: str
    """Version of the wolo that made the queue."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings that all attempts share: the model, the mode, and what the front end adds."""
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    lease_s: float = 60.0
    """Time after which an owner that does not answer has lost its task; it should answer in a quarter of it."""
    retries: int = 2
    """Repeated attempts when infrastructure failed."""
    max_errors: int | None = None
    """Errored tasks after which no more are handed out; None: any number."""


class Refusals(Struct, frozen=True, omit_defaults=True):
    """Reasons not to hand out tasks; a user's `resume` or `retry` forgets them."""

    providers: dict[str, str] = {}
    """What each said that refuses the key: none of its tasks can succeed."""
    errors: int = 0
    """Tasks that have errored since the last `resume` or `retry`."""
    too_many: str = ""
    """The last error before the limit was reached; empty: it was not."""

    @property
    def reasons(self) -> tuple[str, ...]:
        named = tuple(f"{name or 'the provider'} refuses: {said}" for name, said in self.providers.items())
        many = (f"{self.errors} tasks errored, the last with: {self.too_many}",) if self.too_many else ()
        return (*named, *many)


class Row(Struct, frozen=True, kw_only=True):
    """A task and its newest attempt."""

    task: BatchTask
    key: str
    state: State
    attempt: int
    """0: it was never started."""
    fence: int
    host: str
    began: str
    """ISO 8601, UTC; empty: never."""
    note: str
    """Last report of its worker."""
    tokens: int
    cost_usd: float
    outcome: AttemptOutcome | None
    """Outcome of the newest attempt, if that ended."""


class BatchTotals(Struct, frozen=True):
    """Used by all attempts so far, also those that run or were lost."""

    tokens: int
    cost_usd: float | None
    """None: a price is unknown, or no attempt has ended that would tell it."""
    counted_usd: float
    """Known part of the cost; limits count this."""


class Added(Struct, frozen=True):
    """Numbers of tasks: new ones, known ones, and those that changed and are queued again."""

    new: int
    known: int
    changed: int
