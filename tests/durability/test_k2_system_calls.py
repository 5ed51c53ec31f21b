"""K2: wolo is killed at the n-th fsync, rename, write, unlink or link, whatever it is for."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.components import miss, require
from tests.durability.scene import Scene
from tests.durability.tally import Tally
from tests.fakes.provider_server import ProviderServer

CALLS = ("fsync", "fdatasync", "rename", "renameat", "write", "pwrite64", "unlink", "linkat", "ftruncate")
LAST = 40


@pytest.fixture
def strace() -> list[str]:
    program = require("strace")
    if subprocess.run([program, "-qq", "true"], capture_output=True, check=False).returncode:
        miss("the permission to trace a process: kills at single system calls are not tested")
    return [program, "-f", "-qq", "-o", "/dev/null"]


def is_killed_at(scene: Scene, tally: Tally, strace: list[str], call: str, nth: int) -> bool:
    with scene.start(before=[*strace, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={nth}"]) as process:
        was_killed = scene.finish(process) == -signal.SIGKILL
    tally.rounds += 1
    tally.kills += was_killed
    return was_killed


def test_kill_at_a_few_system_calls_loses_nothing(
    provider: ProviderServer, isolated: Path, tally: Tally, strace: list[str]
) -> None:
    scene = Scene(isolated / "scene", provider, tally, lingers=False)  # strace would wait for it
    killed = [call for at, call in enumerate(CALLS) if is_killed_at(scene, tally, strace, call, 1 + at % 3)]
    scene.run_through()
    assert len(killed) > len(CALLS) / 2


@pytest.mark.parametrize("nth", [2, 3, 4])
def test_kill_saving_a_read_with_answer_loses_nothing(
    provider: ProviderServer, isolated: Path, tally: Tally, strace: list[str], nth: int
) -> None:
    """The first commits of a run: the session with its prompt, and the answer whose only call reads."""
    scene = Scene(isolated / "scene", provider, tally, lingers=False)
    assert is_killed_at(scene, tally, strace, "fdatasync", nth)
    scene.run_through()


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("call", CALLS)
def test_a_kill_at_any_system_call_loses_nothing(
    provider: ProviderServer, isolated: Path, tally: Tally, strace: list[str], call: str
) -> None:
    scene = Scene(isolated / "scene", provider, tally, lingers=False)
    unharmed = 0
    for nth in range(1, LAST + 1):
        unharmed = 0 if is_killed_at(scene, tally, strace, call, nth) else unharmed + 1
        if unharmed == 2:
            break  # so many of them are never made
        if nth % 8 == 0:
            scene.run_through()
            scene.begin_another_session()
    scene.run_through()
    assert tally.kills, f"{call} was never called"
