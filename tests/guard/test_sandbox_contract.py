"""Attacks that a sandboxed command cannot carry out for any user, and that succeed without the sandbox."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests import components, unprivileged
from tests.guard.sandbox_setup import ATTACKS, PATIENT_TRIES, SECRET, Attack, Ground, land, put_up
from wolo.errors import ToolError
from wolo.guard.sandbox.bubblewrap import Bubblewrap, Namespaces, find_binary, find_launcher
from wolo.guard.sandbox.landlock_sandbox import is_possible
from wolo.guard.sandbox.profile import profile_for
from wolo.guard.sandbox.selection import find
from wolo.guard.sandbox_contract import Sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are Linux's")
BACKENDS = ("bubblewrap", "namespaces", "compiled", "landlock")
"""`compiled`: namespaces by the compiled launcher; the other one runs in Python."""
USERS: dict[str, Callable[..., object]] = {"ordinary user": unprivileged.call}
if os.getuid() == 0:
    USERS["root"] = lambda function, *args: function(*args)

everyone = pytest.mark.parametrize("user", USERS)
both = pytest.mark.parametrize("backend", BACKENDS)
with_mounts = pytest.mark.parametrize("backend", BACKENDS[:3])
attacks = pytest.mark.parametrize("number", range(len(ATTACKS)), ids=[attack.name for attack in ATTACKS])


def need(backend: str) -> None:
    if backend == "bubblewrap":
        components.require("bwrap")
    elif backend in ("namespaces", "compiled"):
        if backend == "compiled" and not find_launcher([]):
            components.miss("the compiled launcher (install the packages `gcc` and `libc6-dev`, and wolo again)")
        if not unprivileged.call(has_namespaces):
            components.miss("user namespaces")
    elif not is_possible():
        components.miss("a kernel with Landlock and seccomp")


def reported(backend: str) -> str:
    """The name that wolo reports."""
    return "namespaces" if backend == "compiled" else backend


def has_namespaces() -> bool:
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], check=False, capture_output=True)
    return done.returncode == 0


def harm_done(folder: Path, number: int, backend: str) -> tuple[bool, str]:
    attack: Attack = ATTACKS[number]
    with Ground(folder) as ground:
        walls = put_up(backend, ground.profile) if backend else None
        try:
            done = ground.run(attack.command, walls)
            return attack.succeeded(ground), done.stdout + done.stderr
        finally:
            if walls:
                walls.close()


@pytest.mark.sweep(every=5)
@attacks
@both
@everyone
def test_an_attack_does_no_harm(number: int, backend: str, user: str) -> None:
    need(backend)
    with land(user) as folder:
        harmed, said = USERS[user](harm_done, folder, number, backend)  # type: ignore[misc]  # what harm_done returns
    if backend in ATTACKS[number].beyond:
        return  # the backend says so: see test_landlock_says_what_it_does_not_cover
    assert not harmed, said


@pytest.mark.sweep(every=5)
@attacks
def test_without_walls_the_same_attack_succeeds(number: int) -> None:
    with land() as folder:
        if ATTACKS[number].name == "IPv6" and not Path("/proc/net/if_inet6").exists():
            pytest.skip("no IPv6 here")
        harmed, said = unprivileged.call(harm_done, folder, number, "")
    assert harmed, said


def test_landlock_says_what_it_does_not_cover() -> None:
    need("landlock")
    with land() as folder, Ground(folder) as ground:
        walls = put_up("landlock", ground.profile)
        assert "protected names in the workspace while a command runs (they are restored after it)" in walls.not_covered
        assert "modes, owners, dates and attributes of your other files" in walls.not_covered
        walls.close()


def at_work(folder: Path, backend: str, command: str) -> tuple[int, str]:
    with Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        try:
            done = ground.run(command, walls)
            return done.returncode, done.stdout + done.stderr
        finally:
            walls.close()


@both
@everyone
def test_ordinary_work_goes_on(backend: str, user: str) -> None:
    need(backend)
    command = (
        "set -e; mkdir -p a/b; echo x > a/b/c; mv a/b/c d; ln -s d e; cat e; chmod +x d; rm -r a; "
        "file=$(mktemp); echo y > $file; cat $file; mkdir -p $XDG_CACHE_HOME; touch $XDG_CACHE_HOME/z; echo $WOLO_SANDBOX; "
        "echo gone > /dev/null; head -c 4 /dev/urandom | wc -c; ls / > /dev/null; cat AGENTS.md; "
        '"$PYTHON" -c "import socket; print(len(socket.socketpair()))"'
    )
    with land(user) as folder:
        code, said = USERS[user](at_work, folder, backend, command)  # type: ignore[misc]
    assert (code, said.split()) == (0, ["x", "y", reported(backend), "4", "kept", "2"])


def litter(folder: Path, backend: str) -> list[str]:
    with Ground(folder) as ground:
        before = sorted(map(str, ground.work.rglob("*")))
        walls = put_up(backend, ground.profile)
        ground.run("true", walls)
        ground.run("touch .wolo/x; rmdir .wolo; exit 3", walls)
        walls.close()
        after = sorted(map(str, ground.work.rglob("*")))
        return sorted({*after} ^ {*before}) + [str(path) for path in (folder / "own/state/sandbox").iterdir()]


@both
@everyone
def test_nothing_stays_behind(backend: str, user: str) -> None:
    need(backend)
    with land(user) as folder:
        assert USERS[user](litter, folder, backend) == []


@with_mounts
@everyone
def test_linked_protected_name_lets_nothing_run(user: str, backend: str) -> None:
    need(backend)
    with land(user) as folder, pytest.raises(ToolError, match=r"sandbox denied: .*\.wolo is a link"):
        USERS[user](with_a_link, folder, backend)


def with_a_link(folder: Path, backend: str) -> None:
    with Ground(folder) as ground:
        (ground.work / ".wolo").symlink_to(folder / "outside")
        walls = put_up(backend, ground.profile)
        try:
            ground.run("touch ran", walls)
        finally:
            walls.close()
            assert not (ground.work / "ran").exists()


def shared(folder: Path, backend: str) -> list[str]:
    """Commands of one conversation share their `/tmp`, those of another do not; the host's is not seen."""
    with Ground(folder) as ground:
        mine, other = put_up(backend, ground.profile), put_up(backend, ground.profile)
        marker = Path("/tmp") / f"wolo-test-{os.urandom(6).hex()}"
        marker.touch()
        try:
            ground.run("echo kept > /tmp/file", mine)
            return [
                ground.run("cat /tmp/file", mine).stdout,
                ground.run("cat /tmp/file", other).stdout,
                ground.run(f"ls {marker}", mine).stdout,
            ]
        finally:
            marker.unlink()
            mine.close()
            other.close()


@with_mounts
def test_private_tmp_lasts_for_its_conversation_only(backend: str) -> None:
    need(backend)
    with land() as folder:
        assert unprivileged.call(shared, folder, backend) == ["kept\n", "", ""]


def in_tmp(folder: Path, backend: str) -> tuple[str, bool]:
    with Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        done = ground.run("echo here > made; cat made; ls $OUT $OWN 2>&1; echo planted > $OUT/new", walls)
        walls.close()
        return done.stdout.splitlines()[0], bool(ground.text("outside/new")) or SECRET in done.stdout


@with_mounts
def test_a_workspace_in_tmp_works_and_is_held(backend: str) -> None:
    need(backend)
    with unprivileged.folder() as folder:
        assert unprivileged.call(in_tmp, folder, backend) == ("here", False)


WOLO = """
import os, subprocess, sys, time
from pathlib import Path
from tests.guard.sandbox_setup import PATIENT_TRIES, put_up
from wolo.guard.sandbox.profile import profile_for
work, state = Path(sys.argv[1]), Path(sys.argv[2])
walls = put_up(sys.argv[3], profile_for((work,), (state,), state))
for _ in range(PATIENT_TRIES):  # a socket that was to be hidden may have been removed in between
    enclosed = walls.wrap(["sh", "-c", "touch began; sleep 60; touch ended"], work)
    subprocess.run(enclosed.argv, pass_fds=enclosed.pass_fds)
    if (work / "began").exists():
        break
    enclosed.cleanup()
"""


@with_mounts
def test_kill_leaves_no_process_and_no_file(tmp_path: Path, backend: str) -> None:
    need(backend)
    with land("root") as folder:
        work = folder / "work"
        work.mkdir()
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        with subprocess.Popen([sys.executable, "-c", WOLO, str(work), str(tmp_path), backend], env=env) as wolo:
            wait_until(lambda: (work / "began").exists())
            assert [path.name for path in work.iterdir()] == ["began"]
            wolo.send_signal(signal.SIGKILL)
        wait_until(lambda: [path.name for path in work.iterdir()] == ["began"])


def wait_until(claim: Callable[[], bool]) -> None:
    from tests.end_to_end.waiting import wait_for

    wait_for(claim)


def hidden_walls(folder: Path, backend: str) -> tuple[str, ...]:
    with Ground(folder) as ground:
        walls: Sandbox = put_up(backend, ground.profile)
        (ground.folder / "own" / "data" / "outputs").mkdir()
        (ground.folder / "own" / "data" / "outputs" / "long.txt").write_text("page me")
        walls.close()
        own = (ground.folder / "own" / "data", ground.folder / "own" / "state")
        from wolo.guard.sandbox.profile import profile_for

        profile = profile_for((ground.work,), own, own[1], shown=(own[0] / "outputs",), home=ground.folder / "home")
        walls = put_up(backend, profile)
        done = ground.run("cat $OWN/data/outputs/long.txt; cat $OWN/data/wolo.db; touch $OWN/data/outputs/x", walls)
        walls.close()
        return done.stdout, str((own[0] / "outputs" / "x").exists())


@with_mounts
def test_long_outputs_can_be_paged_from_inside(backend: str) -> None:
    need(backend)
    with land() as folder:
        assert unprivileged.call(hidden_walls, folder, backend) == ("page me", "False")


def of_others(folder: Path, backend: str) -> tuple[str, str, bool]:
    """Root works in a directory that is somebody else's."""
    with Ground(folder) as ground:
        for path in (ground.work, *ground.work.rglob("*")):
            os.chown(path, unprivileged.NOBODY, unprivileged.NOBODY)
        ground.work.chmod(0o755)
        found = find((ground.work,), ground.profile.state, None) if backend == "compiled" else None
        whole = {"bubblewrap": partial(Bubblewrap, find_binary(ground.profile.writable)), "namespaces": Namespaces}.get(backend)
        if found and found.make:
            walls = found.make(ground.profile)
        else:
            walls = whole(ground.profile, of_others=True) if whole else put_up(backend, ground.profile)
        try:
            done = ground.run("echo x > made; echo y >> AGENTS.md; cat made; echo planted > $OUT/new", walls)
            return walls.backend, done.stdout, bool(ground.text("outside/new"))
        finally:
            walls.close()


@both
@pytest.mark.skipif(os.getuid() != 0, reason="only root works on files of others")
def test_root_works_on_foreign_files_within_bounds(backend: str) -> None:
    need(backend)
    with land("root") as folder:
        assert of_others(folder, backend) == (reported(backend), "x\n", False)


def at_work_in_a_closed_place(folder: Path, backend: str) -> str:
    walls = put_up(backend, profile_for((folder / "work",), (), folder / "state", home=folder / "home"))
    try:
        for _ in range(PATIENT_TRIES):
            enclosed = walls.wrap(["sh", "-c", "ls; chmod u+w . 2>/dev/null; mkdir .wolo || echo refused"], folder / "work")
            done = subprocess.run(enclosed.argv, pass_fds=enclosed.pass_fds, capture_output=True, text=True, check=False)
            has_begun = enclosed.has_begun()
            enclosed.cleanup()
            if has_begun:
                break
        return done.stdout
    finally:
        walls.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
@with_mounts
def test_unwritable_workspace_can_be_looked_at(backend: str) -> None:
    need(backend)
    with land() as folder:
        (folder / "work").mkdir()
        (folder / "work" / "seen").write_text("")
        assert unprivileged.call(at_work_in_a_closed_place, folder, backend) == "seen\nrefused\n"
        assert [path.name for path in (folder / "work").iterdir()] == ["seen"]
