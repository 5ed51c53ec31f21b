"""K1: wolo is killed at random, while it starts, edits, runs a command, or streams."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from tests.durability.scene import Scene, kill
from tests.durability.tally import Tally, rounds
from tests.fakes.provider_server import ProviderServer

LOOK_EVERY = 10

MOMENTS = (("", 0.5), ("ready", 0.08), ("ready", 0.3), ("edit", 0.02), ("tool", 0.02), ("tool", 0.12), ("stream", 0.09))
"""A stage, and how long after it the kill comes at the latest."""


@pytest.mark.parametrize("count", [7, pytest.param(2000, marks=[pytest.mark.soak, pytest.mark.timeout(7200)])])
def test_a_kill_at_any_moment_loses_nothing(provider: ProviderServer, isolated: Path, tally: Tally, count: int) -> None:
    chance = random.Random(count)
    scene = Scene(isolated / "scene", provider, tally)
    for number in range(rounds(count)):
        stage, most_s = MOMENTS[number % len(MOMENTS)]
        with scene.start() as process:
            if not stage or scene.reach(process, stage):
                try:
                    process.wait(chance.uniform(0, most_s))
                except subprocess.TimeoutExpired:
                    kill(process)
                    tally.kills += 1
            scene.finish(process)
        tally.rounds += 1
        if number % LOOK_EVERY == LOOK_EVERY - 1:
            scene.run_through()
            scene.begin_another_session()
    scene.run_through()
    assert tally.kills > tally.rounds / 2, "most runs were over before they were killed"
