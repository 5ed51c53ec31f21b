"""K5: the power fails. What the disk holds at that moment, and nothing the kernel still has in memory, is all there is.

The data directory lies on a file system in a file. While wolo is stopped the file is copied, without a sync: the copy is the
disk after a power cut. With `synchronous = NORMAL`, which is set from outside in one test, words must get lost: else these
tests would be blind.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.durability.scene import Scene, kill
from tests.durability.tally import Tally, rounds
from tests.fakes.provider_server import ProviderServer

SIZE_BYTES = 32 * 1024 * 1024

CARELESS = """
import sqlite3

_connect = sqlite3.connect

def connect(*args, factory=sqlite3.Connection, **options):
    class Careless(factory):
        def execute(self, sql, *values):
            return super().execute(sql.replace("synchronous = FULL", "synchronous = NORMAL"), *values)

    return _connect(*args, factory=Careless, **options)

sqlite3.connect = connect
"""
"""A `sitecustomize.py`: the product has no such switch."""


def run(*argv: str | Path, may_fail: bool = False) -> int:
    done = subprocess.run([*map(str, argv)], capture_output=True, check=False)
    assert may_fail or done.returncode == 0, (argv, done.stderr)
    return done.returncode


@contextmanager
def mounted(image: Path, place: Path) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    run("mount", "-o", "loop", image, place)
    try:
        yield place
    finally:
        run("umount", place)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """The image of an empty file system."""
    if os.geteuid() != 0:
        pytest.skip("a power cut needs root: it is a file system in a file, mounted and copied")
    if missing := [program for program in ("mkfs.ext4", "e2fsck", "mount") if not shutil.which(program)]:
        pytest.skip(f"a power cut needs {', '.join(missing)} (the packages `e2fsprogs` and `mount`)")
    image = tmp_path / "disk.img"
    with image.open("wb") as file:
        file.truncate(SIZE_BYTES)
    run("mkfs.ext4", "-q", "-F", image)
    (tmp_path / "probe").mkdir()
    if run("mount", "-o", "loop", image, tmp_path / "probe", may_fail=True):
        pytest.skip("a power cut needs loop devices: no file system in a file can be mounted here")
    run("umount", tmp_path / "probe")
    return image


def cut_power(scene: Scene, image: Path, chance: random.Random, tally: Tally, env: dict[str, str]) -> Path:
    """One run of wolo that is stopped somewhere; returns the disk as it was then."""
    copy = image.with_name("after.img")
    with scene.start(env=env) as process:
        scene.reach(process, chance.choice(("edit", "tool", "stream")))
        time.sleep(chance.uniform(0, 0.05))
        os.kill(process.pid, signal.SIGSTOP)
        shutil.copyfile(image, copy)
        tally.rounds += 1
        tally.kills += process.poll() is None
        kill(process)
        scene.finish(process)
    assert run("e2fsck", "-fy", copy, may_fail=True) < 4
    return copy


@pytest.mark.parametrize("count", [3, pytest.param(100, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_a_power_cut_loses_nothing(provider: ProviderServer, isolated: Path, disk: Path, tally: Tally, count: int) -> None:
    chance = random.Random(count)
    with mounted(disk, isolated / "mounted") as place:
        scene = Scene(isolated / "scene", provider, tally, home=place / "wolo")
        for number in range(rounds(count)):
            after = cut_power(scene, disk, chance, tally, {})
            with mounted(after, isolated / "after") as left:
                scene.check(left / "wolo" / "data")
            if number % 5 == 4:
                scene.begin_another_session()


def test_missing_sync_at_commits_loses_words(provider: ProviderServer, isolated: Path, disk: Path, tally: Tally) -> None:
    (isolated / "careless").mkdir()
    (isolated / "careless" / "sitecustomize.py").write_text(CARELESS)
    careless = {"PYTHONPATH": os.pathsep.join(filter(None, (str(isolated / "careless"), os.environ.get("PYTHONPATH"))))}
    aside = Tally("")
    lost = 0
    with mounted(disk, isolated / "mounted") as place:
        scene = Scene(isolated / "scene", provider, aside, home=place / "wolo")
        for _ in range(3):
            after = cut_power(scene, disk, random.Random(1), aside, careless)
            with mounted(after, isolated / "after") as left:
                try:
                    scene.check(left / "wolo" / "data")
                except AssertionError:
                    lost += 1
    assert lost, "a commit that was not synced survived: these tests see nothing"
    assert tally.lost == 0
