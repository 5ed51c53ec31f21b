"""K4: wolo is killed while it brings an older database forward, and while it copies its log into the database."""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.components import find
from tests.durability import migrating
from tests.durability.tally import Tally, rounds
from tests.sessions.samples import environment
from wolo.sessions.store import Store

CALLS = ("pwrite64", "fdatasync", "fsync", "rename", "unlink", "ftruncate")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory of an older wolo that was killed: its log holds what the database does not."""
    data = tmp_path_factory.mktemp("old") / "data"
    subprocess.run([sys.executable, migrating.__file__, "fill", str(data)], env=environment(), check=True)
    return data


def killed(argv: list[str], chance: random.Random, number: int) -> bool:
    """Every other one at a system call, where that is possible; the rest when the time is up."""
    strace = find("strace")
    if number % 2 and strace:
        call = CALLS[number // 2 % len(CALLS)]
        inject = f"inject={call}:signal=KILL:when={chance.randrange(1, 30)}"
        argv = [strace, "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject, *argv]
    with subprocess.Popen(argv, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if number % 2 == 0:
            process.stdout.readline()  # it begins
            try:
                process.wait(chance.uniform(0, 0.06))
            except subprocess.TimeoutExpired:
                process.kill()
        process.stdout.read()
    assert process.returncode in (0, -signal.SIGKILL)
    return process.returncode != 0


@pytest.mark.parametrize("count", [4, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize("work", ["migrate", "checkpoint"])
def test_kill_midway_leaves_the_old_or_the_new(old: Path, tmp_path: Path, tally: Tally, work: str, count: int) -> None:
    chance = random.Random(count)
    versions = set()
    for number in range(rounds(count)):
        data = tmp_path / f"data-{number}"
        shutil.copytree(old, data)
        tally.kills += killed([sys.executable, migrating.__file__, work, str(data)], chance, number)
        tally.rounds += 1
        versions.add(version(data))
        with Store.open(data, steps=migrating.STEPS) as store:
            assert not any("damaged" in warning or "missing" in warning for warning in store.warnings)
            with store._database.reading() as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                assert connection.execute("SELECT count(mood) FROM sessions").fetchone() == (0,)
            lost = [migrating.ENTRIES - len(store.load(info.id).entries) for info in store.list()]
            tally.acknowledged += migrating.ENTRIES * migrating.SESSIONS
            tally.lost += sum(lost)
            assert lost == [0] * migrating.SESSIONS
        backups = [path.name for path in (data / "backups").iterdir()]
        assert 1 <= len(backups) <= 3
        assert not any(name.startswith("unfinished") for name in backups)
        assert not list(data.glob("*.new*"))
        shutil.rmtree(data)
    assert tally.kills
    assert versions <= {1 + len(migrating.BEFORE), 1 + len(migrating.STEPS)}


def version(data: Path) -> int:
    """Without leaving a trace that the next one could stumble over."""
    with sqlite3.connect(f"{(data / 'wolo.db').as_uri()}?mode=ro", uri=True) as connection:
        (found,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return int(found)
