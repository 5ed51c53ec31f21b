"""Values that the ledger hands out and takes: leases, outcomes, rows."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from wolo.errors import WoloError
from wolo.fleet.tasks import BatchTask

Ended = Literal["done", "passed", "failed", "errored", "timeout", "budget", "cancelled", "lost"]
"""`done`: it ended well, and its task has no verify."""
State = Literal["queued", "leased"] | Ended

ACCOUNT_FAULTS = ("auth", "quota")
"""Kinds of failures that every other request with the same key would meet, too."""


class Owner(Struct, frozen=True):
    """The process that holds a lease."""

    host: str
    pid: int
    started: str
    """Tells it from a later process with the same pid."""


class Lease(Struct, frozen=True):
    task: BatchTask
    key: str
    attempt: int
    """From 1."""
    fence: int
    """Grows with each lease of the run; an outcome with an older one than the task's is refused."""
    owner: Owner

    @property
    def folder(self) -> str:
        """The attempt's folder in that of the run."""
        return f"attempts/{self.task.id}/{self.attempt}-{self.fence}"


def place_in(run: Path, name: str) -> Path:
    """A file or folder of a run, which may come from others. Raises WoloError for a name or a link that leads out of it."""
    place = run / name
    if not place.resolve().is_relative_to(run.resolve()):
        raise WoloError(f"The run in {run} leads out of its folder: {name!r}.", hint="It was changed by hand.")
    return place


class Patch(Struct, frozen=True):
    path: str
    """Relative to the run's folder; read it with `file_in`."""
    sha256: str
    size_bytes: int
    files: int

    def file_in(self, run: Path) -> Path:
        """Raises WoloError for a path that leads out of the run."""
        return place_in(run, self.path)


class VerifyResult(Struct, frozen=True):
    """Result of the verify command."""

    exit_code: int | None
    """None: it took too long."""
    seconds: float
    tail: str
    """End of its output."""


class Spent(Struct, frozen=True):
    """Tokens and cost; cost None: the price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = 0.0

    @property
    def tokens(self) -> int:
        """Prompt and completion."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


class Failure(Struct, frozen=True):
    """The reason of a bad end, for the user."""

    kind: str
    message: str


class Provenance(Struct, frozen=True, omit_defaults=True):
    """What an attempt was made with."""

    model: str = ""
    """As it was chosen."""
    model_resolved: str | None = None
    """`PROVIDER/MODEL` that answered; None: none did."""
    thinking: str | None = None
    """None: the provider's default."""
    wolo_version: str = ""
    prefix_hash: str | None = None
    """Of the system prompt and the tools, without the folder's name."""
    image_digest: str | None = None
    verify_hash: str | None = None
    """Of everything that judges the task; None: nothing does."""
    sandbox: str | None = None
    """Of setup and verify: its backend, `docker`, `podman` or `none`; None: neither has run."""


class AttemptOutcome(Struct, frozen=True, kw_only=True):
    """The end of one attempt."""

    state: Ended
    exit_code: int | None = None
    """Of the agent; None: it was not started, or did not end by itself."""
    session_id: str = ""
    patch: Patch | None = None
    """None: nothing was changed."""
    verify: VerifyResult | None = None
    usage: Spent = Spent()
    started: str
    """ISO 8601, UTC."""
    ended: str
    host: str
    engine: str
    error: Failure | None = None
    provenance: Provenance = Provenance()
    retryable: bool = False
    """Infrastructure failed; another attempt may succeed."""

    @property
    def cost_usd(self) -> float | None:
        return self.usage.cost_usd
