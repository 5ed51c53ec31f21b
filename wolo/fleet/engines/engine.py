"""The interface of engines."""

from __future__ import annotations

from typing import Protocol

from wolo.fleet.agent_run import Allowance
from wolo.fleet.attempts import AttemptView
from wolo.fleet.ledger.outcomes import AttemptOutcome, Lease


class Engine(Protocol):
    @property
    def name(self) -> str: ...

    def limit_by(self, path: str) -> None:
        """Names the socket of the limits that all workers share, for agents on this machine."""
        ...

    async def place(self, lease: Lease, allowance: Allowance, view: AttemptView) -> AttemptOutcome:
        """Runs an attempt and puts its folder in place. A cancellation ends it and is passed on.

        A machine that was lost is an outcome `lost`. Raises WoloError or OSError when no attempt can be run any more.
        """
        ...

    async def close(self) -> None:
        """Ends everything that still runs."""
        ...
