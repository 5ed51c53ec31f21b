"""A kernel that makes no user namespaces (`user.max_user_namespaces=0`): root needs none, others fall back to Landlock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import unprivileged
from tests.guard.sandbox_setup import Ground, land, put_up
from tests.guard.test_sandbox_contract import USERS, need
from wolo.guard.sandbox_contract import MOST_TRIES

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="the numbers below are those of one machine"
)

NO_USER_NAMESPACES = """
import ctypes, os, struct, sys
line = lambda *words: struct.pack("=HBBI", *words)
text = line(0x20, 0, 0, 0) + line(0x15, 1, 0, 272) + line(0x15, 0, 3, 56)
text += line(0x20, 0, 0, 16) + line(0x45, 0, 1, 0x10000000) + line(0x06, 0, 0, 0x50000 | 28)
text += line(0x20, 0, 0, 0) + line(0x15, 0, 1, 435) + line(0x06, 0, 0, 0x50000 | 38) + line(0x06, 0, 0, 0x7FFF0000)
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))
system = ctypes.CDLL(None)
assert not system.prctl(38, *map(ctypes.c_ulong, (1, 0, 0, 0)))
program = Program(len(text) // 8, text)
assert not system.prctl(22, ctypes.c_ulong(2), ctypes.byref(program), ctypes.c_ulong(0), ctypes.c_ulong(0))
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Answers ENOSPC to whoever wants one, as that setting does."""
COMMAND = (
    "echo x > made; echo planted > $OUT/new; echo planted >> .git/config; cat $HOME/.ssh/id_rsa > loot; "
    "exec 7> /proc/sys/vm/swappiness"
)


def held(folder: Path, backend: str) -> tuple[bool, bool, bool, str, str]:
    """What a command could do: in the workspace, outside, to a protected name, to a secret; and what was said."""
    with Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        try:
            for _ in range(MOST_TRIES):
                enclosed = walls.wrap(("bash", "--noprofile", "--norc", "-c", ground.spelled(COMMAND)), ground.work)
                line = ["/usr/bin/python3", "-c", NO_USER_NAMESPACES, *enclosed.argv]
                done = subprocess.run(
                    line, pass_fds=enclosed.pass_fds, cwd=ground.work, capture_output=True, text=True, check=False, timeout=30
                )
                has_begun = enclosed.has_begun()
                enclosed.cleanup()
                if has_begun:  # otherwise a socket that it hides may just have gone
                    break
        finally:
            walls.close()
        changed = (bool(ground.text("outside/new")), "planted" in ground.text("work/.git/config"), ground.text("work/loot"))
        return (ground.work / "made").exists(), *changed, done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root does without")
@pytest.mark.parametrize("backend", ["namespaces", "compiled", "landlock"])
def test_root_is_held_without_one(backend: str) -> None:
    need(backend)
    with land("root") as folder:
        has_run, outside, protected, secret, said = held(folder, backend)
    assert (has_run, outside, protected, secret) == (True, False, False, ""), said


@pytest.mark.parametrize(
    ("backend", "user"),
    [("namespaces", "ordinary user"), ("compiled", "ordinary user"), *(("bubblewrap", user) for user in USERS)],
)
def test_missing_mounts_let_nothing_run(backend: str, user: str) -> None:
    need(backend)
    with land(user) as folder:
        has_run, *_, said = USERS[user](held, folder, backend)  # type: ignore[misc]  # what `held` returns
    assert not has_run
    assert said


def test_an_ordinary_user_is_held_by_landlock_then() -> None:
    need("landlock")
    assert "ordinary user" in USERS
    with land() as folder:
        has_run, outside, protected, secret, said = unprivileged.call(held, folder, "landlock")
    assert (has_run, outside, protected, secret) == (True, False, False, ""), said
