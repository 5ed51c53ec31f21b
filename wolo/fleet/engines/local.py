"""The engine of one machine: every attempt is a process of its own."""

from __future__ import annotations

from wolo.fleet.agent_run import AgentSettings, Allowance
from wolo.fleet.attempts import AttemptRunner, AttemptView
from wolo.fleet.ledger.outcomes import AttemptOutcome, Lease
from wolo.fleet.run_folder import RunFolder


class LocalEngine:
    name = "local"

    def __init__(self, folder: RunFolder, settings: AgentSettings) -> None:
        self._runner = AttemptRunner(folder, settings, self.name)

    def limit_by(self, path: str) -> None:
        self._runner.limiter = path

    async def place(self, lease: Lease, allowance: Allowance, view: AttemptView) -> AttemptOutcome:
        return await self._runner.run(lease, allowance, view)

    async def close(self) -> None:
        self._runner.close()
