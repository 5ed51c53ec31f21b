"""A machine whose clock a test moves, and short forms of tasks and outcomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wolo.fleet.ledger.hosts import Host
from wolo.fleet.ledger.ledger import Ledger
from wolo.fleet.ledger.outcomes import AttemptOutcome, Lease, Owner
from wolo.fleet.tasks import BatchTask


class TestHost(Host):
    """Real processes, and the clock where the test puts it."""

    __test__ = False

    def __init__(self, name: str = "", boot: str = "") -> None:
        super().__init__()
        self.name, self.boot = name or self.name, boot or self.boot
        self.time = super().now()

    def now(self) -> float:
        return self.time


def tasks(*ids: str, prompt: str = "go") -> list[tuple[BatchTask, str]]:
    return [(BatchTask(id=each, prompt=prompt), f"{prompt}-{each}") for each in ids]


def outcome(state: Any = "passed", **more: Any) -> AttemptOutcome:
    return AttemptOutcome(
        state=state, started="2026-01-01T00:00:00Z", ended="2026-01-01T00:00:01Z", host="h", engine="local", **more
    )


def leased(ledger: Ledger, owner: Owner) -> Lease:
    lease = ledger.lease(owner)
    assert lease is not None
    return lease


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
