"""Engines run the attempts of a batch: their interface, and the one of this machine."""

from __future__ import annotations

from typing import Protocol

from wolo.fleet.agent_run import AgentSettings, Allowance
from wolo.fleet.attempts import AttemptRunner, AttemptView
from wolo.fleet.engines.warm_parent import WarmParent
from wolo.fleet.ledger.outcomes import AttemptOutcome, Lease
from wolo.fleet.run_folder import RunFolder


class Engine(Protocol):
    @property
    def name(self) -> str: ...

    def limit_by(self, path: str) -> None:
        """Names the socket of the limits that all workers share, for agents on this machine."""

    async def place(self, lease: Lease, allowance: Allowance, view: AttemptView) -> AttemptOutcome:
        """Runs an attempt and puts its folder in place. A cancellation ends it and is passed on.

        A machine that was lost is an outcome `lost`. Raises WoloError or OSError when no attempt can be run any more.
        """

    async def close(self) -> None:
        """Ends everything that still runs."""


class LocalEngine:
    """Every attempt is a process of its own on this machine."""

    name = "local"

    def __init__(self, folder: RunFolder, settings: AgentSettings) -> None:
        self.runner, self._warm_parent = AttemptRunner(folder, settings, self.name), WarmParent()
        self.runner.prepare_agent, self.runner.spawn = self._warm_parent.prepare, self._warm_parent.spawn

    def limit_by(self, path: str) -> None:
        self.runner.limiter = path

    async def place(self, lease: Lease, allowance: Allowance, view: AttemptView) -> AttemptOutcome:
        return await self.runner.run(lease, allowance, view)

    async def close(self) -> None:
        self.runner.close()
        self._warm_parent.close()
