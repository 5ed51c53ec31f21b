"""The simulation of a large batch with failures, in the small."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fleet import Simulation


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize("seed", [1, 2])
def test_dying_and_late_workers_lose_and_double_nothing(run: Path, store: str, seed: int) -> None:
    simulation = Simulation(run, tasks=300, workers=20, seed=seed, store=store)
    simulation.run()
    simulation.check()
    simulation.close()
    assert simulation.counts["refused"]
    assert simulation.counts["deaths"]


@pytest.mark.soak
def test_the_same_in_every_database(run: Path, store: str) -> None:
    simulation = Simulation(run, tasks=1000, workers=50, seed=3, store=store)
    simulation.run()
    simulation.check()
    simulation.close()
