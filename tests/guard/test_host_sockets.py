"""Sockets that come, go and lie where no command can enter: no command fails for them, and none reaches one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import components, unprivileged
from tests.guard.sandbox_setup import Ground, land, put_up
from tests.guard.test_sandbox_contract import BACKENDS, with_mounts
from tests.tools.harness import ToolHarness
from tests.unprivileged import NOBODY
from wolo.errors import ToolError
from wolo.guard.sandbox import mounts
from wolo.guard.sandbox.mounts import host_sockets
from wolo.guard.sandbox.selection import find
from wolo.guard.sandbox_contract import MOST_TRIES, Sandbox, SandboxedCommand

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are Linux's")


@pytest.fixture
def ground() -> Iterator[Ground]:
    components.require("bwrap")
    with land("root") as folder, Ground(folder) as ground:
        yield ground


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that commands see, and cannot write to."""
    with land("root") as folder:
        yield folder


def listening(place: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen(1)
    return listener


def run(
    walls: Sandbox, ground: Ground, elsewhere: Path | None = None
) -> tuple[SandboxedCommand, subprocess.CompletedProcess[str]]:
    enclosed = walls.wrap(["sh", "-c", "echo ran"], ground.work)
    if elsewhere is not None:
        (elsewhere / "brief").unlink(missing_ok=True)
    done = subprocess.run(enclosed.argv, pass_fds=enclosed.pass_fds, capture_output=True, text=True, check=False)
    enclosed.cleanup()
    return enclosed, done


def run_until_begun(walls: Sandbox, ground: Ground) -> subprocess.CompletedProcess[str]:
    """As the tools do: sockets of other programs come and go too, those of the tests beside this one among them."""
    for _ in range(MOST_TRIES):
        enclosed, done = run(walls, ground)
        if enclosed.has_begun():
            break
    return done


def test_socket_in_a_closed_folder_stops_nothing(ground: Ground) -> None:
    if os.getuid() != 0:
        pytest.skip("only root sees sockets in folders that it cannot enter without its rights")
    closed = ground.folder / "closed"
    (closed / "deep").mkdir(parents=True)
    with listening(closed / "deep" / "s"):
        os.chown(closed, NOBODY, NOBODY)
        closed.chmod(0o700)
        assert str(closed) in host_sockets(by_modes=True)
        assert f"{closed}/deep/s" in host_sockets(by_modes=False)
        walls = put_up("bubblewrap", ground.profile)
        try:
            done = run_until_begun(walls, ground)
        finally:
            walls.close()
        assert (done.stdout, done.stderr) == ("ran\n", "")
        assert find((ground.work,), ground.folder / "state", None).is_whole
        closed.chmod(0o755)


def test_ordinary_user_sees_no_closed_folder() -> None:
    with land("root") as folder, listening(folder / "s"):
        folder.chmod(0o700)
        seen = unprivileged.call(sockets_seen) if os.getuid() == 0 else []
        assert f"{folder}/s" not in seen


def sockets_seen() -> list[str]:
    return host_sockets(by_modes=False)


@with_mounts
def test_walls_say_that_a_command_has_not_begun(ground: Ground, elsewhere: Path, backend: str) -> None:
    walls = put_up(backend, ground.profile)
    try:
        with listening(elsewhere / "brief"):
            enclosed, done = run(walls, ground, elsewhere)
            assert (done.stdout, enclosed.has_begun()) == ("", False)
            assert run_until_begun(walls, ground).stdout == "ran\n"
    finally:
        walls.close()


class Unsteady:
    """Walls under which a socket goes away, so many times."""

    backend, covers, not_covered, has_proxy = "bubblewrap", (), (), False

    def __init__(self, walls: Sandbox, place: Path, times: int) -> None:
        self._walls, self._place, self._times = walls, place, times

    def wrap(
        self, argv: list[str], cwd: Path, *, only_reads: bool = False, in_background: bool = False, proxy_fd: int = -1
    ) -> SandboxedCommand:
        if self._times <= 0:
            return self._walls.wrap(argv, cwd)
        self._times -= 1
        with listening(self._place):
            enclosed = self._walls.wrap(argv, cwd)
        self._place.unlink()
        return enclosed

    def prepare(self) -> None: ...

    def hides(self, path: str) -> bool:
        return False

    def give_way(self, path: str) -> None: ...

    def take_restored(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(("times", "expected"), [(1, "ran 7"), (2, "ran 7"), (99, "bwrap: ")])
async def test_shell_runs_an_unstarted_command_once(ground: Ground, elsewhere: Path, times: int, expected: str) -> None:
    harness = ToolHarness(ground.folder)
    walls = put_up("bubblewrap", ground.profile)
    harness.services.sandbox.made = Unsteady(walls, elsewhere / "brief", times)
    harness.confined = True
    try:
        result = await harness.call("shell", command="echo x >> runs; echo ran $((3 + 4)); exit 1")
    finally:
        walls.close()
        harness.services.shell.close()
    assert result.text.startswith(expected)
    runs = ground.work / "runs"
    assert (runs.read_text() if runs.exists() else "") == ("" if times == 99 else "x\n")


def test_a_socket_under_a_relative_name_is_found(ground: Ground) -> None:
    place = ground.work / "relative"
    place.mkdir()
    code = "import os, socket, sys; s = socket.socket(1); s.bind('./here'); s.listen(); print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        assert f"{place}/here" in host_sockets(by_modes=False)
        looked = mounts._locate.cache_info()
        assert f"{place}/here" in host_sockets(by_modes=False)
        assert not looked.currsize or mounts._locate.cache_info().misses == looked.misses  # none: some cannot be located
        place.rename(ground.work / "elsewhere")
        assert f"{ground.work}/elsewhere/here" in host_sockets(by_modes=False)
        owner.communicate()


def test_too_many_sockets_let_nothing_run(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_MOST", 0)
    with listening(ground.work / "one"):
        for backend in BACKENDS[:3]:
            walls = put_up(backend, ground.profile)
            with pytest.raises(ToolError, match="programs outside have sockets"):
                walls.wrap(["true"], ground.work)
            walls.close()
            monkeypatch.setattr(mounts, "_TABLE", Path("/proc/net/none"))
            walls = put_up(backend, ground.profile)
            with pytest.raises(ToolError, match="cannot be read"):
                walls.wrap(["true"], ground.work)
            walls.close()
            monkeypatch.setattr(mounts, "_TABLE", Path("/proc/net/unix"))


def test_many_sockets_are_hidden_all(ground: Ground) -> None:
    with ExitStack() as stack:
        for number in range(250):
            stack.enter_context(listening(ground.work / f"s{number}"))
        walls = put_up("namespaces", ground.profile)
        code = "import glob, socket; s = glob.glob('s*'); print(sum(socket.socket(1).connect_ex(x) == 0 for x in s), len(s))"
        try:
            assert ground.run(f'"$PYTHON" -c "{code}"', walls).stdout == "0 251\n"
        finally:
            walls.close()


def test_vanishing_workspace_socket_leaves_nothing(ground: Ground) -> None:
    walls = put_up("namespaces", ground.profile)
    try:
        with listening(ground.work / "brief"):
            enclosed, done = run(walls, ground, ground.work)
            assert (done.stdout, enclosed.has_begun(), (ground.work / "brief").exists()) == ("", False, False)
    finally:
        walls.close()
