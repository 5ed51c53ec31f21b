"""A command does not run if the kernel refuses any step of setting up its sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import unprivileged
from tests.end_to_end.test_sandbox import UNSHARE, WITHOUT
from tests.guard.sandbox_setup import Ground, any_python, land, put_up
from tests.guard.test_sandbox_contract import BACKENDS, USERS, need, reported
from wolo.guard.sandbox import selection

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="the numbers below are those of one machine"
)

STEPS = {
    "namespaces": {
        "unshare": 272,
        "openat2": 437,
        "open_tree": 428,
        "move_mount": 429,
        "mount": 165,
        "mount_setattr": 442,
        "fsopen": 430,
        "fsconfig": 431,
        "fsmount": 432,
        "pivot_root": 155,
        "umount2": 166,
        "capset": 126,
        "prctl": 157,
        "landlock_add_rule": 445,
        "landlock_restrict_self": 446,
        "chdir": 80,
        "setrlimit": 302,
        "ioctl": 16,
        "setsid": 112,
    },
    "bubblewrap": {"mount": 165, "pivot_root": 155, "prctl": 157, "landlock_restrict_self": 446, "setrlimit": 302},
    "compiled": {
        "unshare": 272,
        "openat2": 437,
        "open_tree": 428,
        "move_mount": 429,
        "mount": 165,
        "mount_setattr": 442,
        "fsopen": 430,
        "fsconfig": 431,
        "fsmount": 432,
        "pivot_root": 155,
        "umount2": 166,
        "capget": 125,
        "capset": 126,
        "prctl": 157,
        "landlock_add_rule": 445,
        "landlock_restrict_self": 446,
        "chdir": 80,
        "setrlimit": 302,
        "ioctl": 16,
        "setsid": 112,
    },
    "landlock": {"capset": 126, "prctl": 157, "landlock_restrict_self": 446, "setrlimit": 302},
}
"""System calls by which each is put up, with their numbers."""
TABLE = [(backend, step) for backend, steps in STEPS.items() for step in steps]


def run_refused(folder: Path, backend: str, step: str) -> tuple[bool, str, bool]:
    with Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        try:
            enclosed = walls.wrap(["sh", "-c", "touch ran"], ground.work)
            prelude = WITHOUT[: WITHOUT.index("os.execv")] + "os.execv(sys.argv[2], sys.argv[2:])"
            line = [any_python(), "-c", prelude, f"{STEPS[backend][step]} 1", *enclosed.argv]
            done = subprocess.run(
                line, pass_fds=enclosed.pass_fds, cwd=ground.work, capture_output=True, text=True, check=False, timeout=20
            )
            begun = enclosed.has_begun()
            enclosed.cleanup()
            return (ground.work / "ran").exists(), done.stderr, begun
        finally:
            walls.close()


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(("backend", "step"), TABLE, ids=[f"{backend}-{step}" for backend, step in TABLE])
@pytest.mark.parametrize("user", USERS)
def test_a_refused_step_lets_nothing_run(backend: str, step: str, user: str) -> None:
    need(backend)
    with land(user) as folder:
        has_run, said, _ = USERS[user](run_refused, folder, backend, step)  # type: ignore[misc]
    assert not has_run
    assert said


def without_namespaces(folder: Path) -> str:
    """What is found on a kernel that makes no namespaces, by a process of its own."""
    code = (
        "import sys; from pathlib import Path; from wolo.guard.sandbox.selection import find; f = find([Path(sys.argv[1])], "
        "Path(sys.argv[2]), None); print(f.backend, f.is_whole)"
    )
    prelude = WITHOUT[: WITHOUT.index("os.execv")] + "os.execv(sys.argv[2], sys.argv[2:])"
    own = [sys.executable, "-c", code, str(folder), str(folder / "state")]
    env = {**os.environ, "PATH": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", prelude, UNSHARE, *own], env=env, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr


def test_missing_namespaces_give_the_named_partial_sandbox() -> None:
    need("landlock")
    with land("root") as folder:
        assert without_namespaces(folder) == "landlock False"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("user", USERS)
def test_each_is_found_by_whom_it_serves(backend: str, user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need(backend)
    with land(user) as folder:
        assert USERS[user](found_alone, folder, backend) == reported(backend)


def found_alone(folder: Path, backend: str) -> str:
    (folder / "work").mkdir()
    tried: list[str] = []
    roots, state = [str(folder / "work")], folder / "state"
    match backend:
        case "bubblewrap":
            chosen = selection._bubblewrap(roots, tried, state, None)
        case "namespaces":
            chosen = selection._namespaces(roots, tried, state, None)
        case "compiled":  # the first that is asked
            chosen = selection.find((folder / "work",), state, None)
        case _:
            chosen = selection._landlock(tried, state, None)
    return chosen.backend if chosen.make else str(tried)


def test_unprivileged_tests_run_as_somebody_else() -> None:
    """Root passes over modes: what is tried for an ordinary user must be tried by one."""
    assert unprivileged.call(os.getuid) != 0
