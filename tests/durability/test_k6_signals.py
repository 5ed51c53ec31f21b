"""K6: SIGTERM, SIGHUP and SIGINT come at random, alone or as a storm."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.durability.scene import STAGES, Scene
from tests.durability.tally import Tally, rounds
from tests.fakes.provider_server import ProviderServer

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
STATUSES = {0, 129, 130, 143}
SOON_S = 5.0
"""Two seconds are promised; tests run on busy machines."""


@pytest.mark.parametrize("count", [4, pytest.param(600, marks=[pytest.mark.soak, pytest.mark.timeout(7200)])])
def test_a_storm_of_signals_loses_nothing(provider: ProviderServer, isolated: Path, tally: Tally, count: int) -> None:
    chance = random.Random(count)
    scene = Scene(isolated / "scene", provider, tally)
    for number in range(rounds(count)):
        with scene.start() as process:
            if scene.reach(process, STAGES[number % len(STAGES)]):
                time.sleep(chance.uniform(0, 0.1))
            tally.kills += process.poll() is None
            for _ in range(chance.choice((1, 1, 2, 8))):
                if process.poll() is None:
                    os.kill(process.pid, chance.choice(SIGNALS))
                time.sleep(chance.uniform(0, 0.05))
            try:
                process.wait(SOON_S)
            except subprocess.TimeoutExpired:
                pytest.fail(f"wolo did not end within {SOON_S} s")
            status = scene.finish(process)
        assert status in STATUSES, f"status {status}"
        tally.rounds += 1
        if number % 10 == 9:
            scene.run_through()
            scene.begin_another_session()
    scene.run_through()
