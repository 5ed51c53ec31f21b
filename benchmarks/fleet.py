"""`python benchmarks/fleet.py`: many tasks on many workers that fail, in virtual time, against the real ledger.

Ends with an error if a result is lost or doubled. With `--speed` it measures leases and results a second instead.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from wolo.fleet.ledger.hosts import Host
from wolo.fleet.ledger.ledger import Ledger
from wolo.fleet.ledger.ledger_folder import create_ledger, open_ledger
from wolo.fleet.ledger.outcomes import AttemptOutcome, Failure, Lease, Owner, Spent
from wolo.fleet.ledger.run_rows import Meta
from wolo.fleet.tasks import BatchTask

LEASE_S, TASK_S, CONNECTIONS = 600.0, 600.0, 8


class Chances(Struct, frozen=True):
    """Of each attempt."""

    death: float = 0.02
    zombie: float = 0.02
    """Silent for longer than its lease, then it publishes."""
    silence: float = 0.05
    """Loses single heartbeats."""
    broken: float = 0.02
    """Infrastructure fails."""


class VirtualHost(Host):
    """Machines without names, whose processes and clock are those of the simulation."""

    def __init__(self) -> None:
        super().__init__()
        self.time, self.dead = 0.0, set[int]()

    def now(self) -> float:
        return self.time

    def is_dead(self, owner: Owner) -> bool:
        return owner.pid in self.dead


class Simulation:
    def __init__(self, folder: Path, *, tasks: int, workers: int, seed: int, store: str = "sqlite") -> None:
        self.random, self.host, self.chances = random.Random(seed), VirtualHost(), Chances()
        create_ledger(folder, Meta(version="0", lease_s=LEASE_S), store, self.host).close()
        self.folder, self.tasks = folder, tasks
        self.ledgers = [open_ledger(folder, self.host) for _ in range(CONNECTIONS)]
        self.ledgers[0].add((BatchTask(id=f"t{number}", prompt="go"), str(number)) for number in range(tasks))
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.pids = 0
        self.accepted: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.time = 0.0
        for _ in range(workers):
            self.after(self.random.random(), self.start)
        self.after(15, self.sweep)
        self.after(5000, self.jump)

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        self.counts["events"] += 1
        heapq.heappush(self.events, (self.time + delay_s, self.counts["events"], action))

    def run(self) -> None:
        while self.events:
            at, _, action = heapq.heappop(self.events)
            self.host.time += at - self.time
            self.time = at
            action()
            if self.counts["events"] % 50_000 == 0 and not self.is_unfinished():
                break
        for ledger in self.ledgers:
            ledger.complete_files()

    def is_unfinished(self) -> bool:
        return not self.ledgers[0].is_finished()

    def sweep(self) -> None:
        self.counts["expired"] += self.random.choice(self.ledgers).expire()
        if self.time % 900 >= 15 or self.is_unfinished():
            self.after(15, self.sweep)

    def jump(self) -> None:
        """Moves the clock of the ledger, forwards or back."""
        self.counts["jumps"] += 1
        self.host.time += self.random.choice((-3000.0, -LEASE_S, LEASE_S, 5000.0))
        if self.is_unfinished():
            self.after(20_000, self.jump)

    def start(self) -> None:
        """A new process of a worker."""
        self.pids += 1
        self.seek(self.random.choice(self.ledgers), Owner("sim", self.pids, f"{self.host.boot}//{self.pids}"))

    def seek(self, ledger: Ledger, owner: Owner) -> None:
        lease = ledger.lease(owner)
        if lease is None:
            if self.is_unfinished():
                self.after(60, lambda: self.seek(ledger, owner))
            return
        takes_s, chance, chances = self.random.expovariate(1 / TASK_S), self.random.random(), self.chances
        if chance < chances.death:
            self.counts["deaths"] += 1
            self.after(takes_s, lambda: self.die(owner))
            return
        if chance < chances.death + chances.zombie:
            self.counts["zombies"] += 1
            self.after(takes_s + LEASE_S * 2, lambda: self.finish(ledger, lease, owner))
            return
        self.after(min(takes_s, LEASE_S / 4), lambda: self.work(ledger, lease, owner, takes_s))

    def work(self, ledger: Ledger, lease: Lease, owner: Owner, left_s: float) -> None:
        if left_s <= LEASE_S / 4:
            self.finish(ledger, lease, owner)
            return
        if self.random.random() < self.chances.silence:
            self.counts["silences"] += 1
        elif ledger.heartbeat(lease, Spent(input_tokens=10)) != "held":
            self.counts["given up"] += 1
            self.seek(ledger, owner)
            return
        left_s -= LEASE_S / 4
        self.after(min(left_s, LEASE_S / 4), lambda: self.work(ledger, lease, owner, left_s))

    def die(self, owner: Owner) -> None:
        self.host.dead.add(owner.pid)
        self.after(30, self.start)

    def finish(self, ledger: Ledger, lease: Lease, owner: Owner) -> None:
        broken = self.random.random() < self.chances.broken
        outcome = AttemptOutcome(
            state="errored" if broken else self.random.choice(("passed", "failed")),
            session_id=f"{lease.task.id}/{lease.fence}",
            usage=Spent(input_tokens=10),
            started="",
            ended="",
            host="sim",
            engine="sim",
            error=Failure("unavailable", "no answer") if broken else None,
            retryable=broken,
        )
        if ledger.publish(lease, outcome):
            self.accepted.add(outcome.session_id)
        else:
            self.counts["refused"] += 1
        self.seek(ledger, owner)

    def close(self) -> None:
        for ledger in self.ledgers:
            ledger.close()

    def check(self) -> None:
        """Raises AssertionError unless each task has one result, of an attempt that was accepted or lost."""
        lines = [json.loads(line) for line in (self.folder / "results.jsonl").read_bytes().splitlines()]
        assert len({line["id"] for line in lines}) == len(lines) == self.tasks, "a result is lost or doubled"
        for line in lines:
            assert line["state"] == "lost" or line["session_id"] in self.accepted, f"{line['id']} has the result of a zombie"
        published = {line["id"]: line["state"] for line in lines}
        assert published == {row.task.id: row.state for row in self.ledgers[0].rows()}
        self.counts |= Counter(f"ended {state}" for state in published.values())


def measure(folder: Path, store: str, tasks: int, seconds: float) -> None:
    ledger, owner = create_ledger(folder, Meta(version="0"), store), Host().owner()
    began = time.perf_counter()
    ledger.add((BatchTask(id=f"t{number}", prompt="go" * 200), str(number)) for number in range(tasks))
    print(f"add: {tasks / (time.perf_counter() - began):,.0f} tasks/s")
    leases: list[Lease] = []
    outcome = AttemptOutcome(state="passed", started="", ended="", host="h", engine="local")

    def take() -> None:
        lease = ledger.lease(owner)
        assert lease
        leases.append(lease)

    steps: dict[str, Callable[[], object]] = {
        "lease": take,
        "heartbeat": lambda: ledger.heartbeat(leases[0]),
        "publish": lambda: ledger.publish(leases.pop(), outcome),
    }
    for name, step in steps.items():
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < seconds and (name != "publish" or leases):
            step()
            count += 1
        print(f"{name}: {count / (time.perf_counter() - began):,.0f}/s")
    ledger.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tasks", type=int, default=100_000)
    options.add_argument("--workers", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--store", default="sqlite", help="sqlite, or the address of a PostgreSQL database")
    options.add_argument("--folder", type=Path, help="where to put the run; its disk decides the speed")
    options.add_argument("--speed", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as made:
        if given.speed:
            measure(Path(made), given.store, given.tasks, 3.0)
            return
        began = time.perf_counter()
        simulation = Simulation(Path(made), tasks=given.tasks, workers=given.workers, seed=given.seed, store=given.store)
        simulation.run()
        simulation.check()
        simulation.close()
        took_s = time.perf_counter() - began
        print(f"{given.tasks} tasks, {given.workers} workers: {simulation.time / 3600:.1f} virtual hours in {took_s:.0f} s")
        print(", ".join(f"{name} {count}" for name, count in sorted(simulation.counts.items())))


if __name__ == "__main__":
    main()
