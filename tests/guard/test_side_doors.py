"""The side doors of the kernel: what mounts and Landlock leave open, each tried by the probe and closed in every backend."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import unprivileged
from tests.guard.sandbox_setup import Ground, land, put_up
from tests.guard.test_sandbox_contract import BACKENDS, USERS, need
from wolo.guard.sandbox import selection
from wolo.guard.sandbox.escape_probe import FIFOS, SET_ID, SIGNALS, find_gap
from wolo.guard.sandbox.profile import SandboxProfile
from wolo.guard.sandbox_contract import SandboxedCommand

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are Linux's")
everywhere = pytest.mark.parametrize("backend", BACKENDS)
everyone = pytest.mark.parametrize("user", USERS)


class Open:
    """A sandbox that holds nothing."""

    backend, covers, not_covered, has_proxy = "none", (), (), False

    def __init__(self, profile: SandboxProfile) -> None: ...

    def wrap(
        self, argv: list[str], cwd: Path, *, only_reads: bool = False, in_background: bool = False, proxy_fd: int = -1
    ) -> SandboxedCommand:
        return SandboxedCommand(tuple(argv))

    def prepare(self) -> None: ...

    def hides(self, path: str) -> bool:
        return False

    def give_way(self, path: str) -> None: ...

    def take_restored(self) -> None: ...

    def close(self) -> None: ...


FOUND = (
    "a TCP connection got out",
    "a UDP packet got out",
    "a socket of the host got out",
    "an abstract socket got out",
    "a datagram from a pair of sockets got out",
    "write outside the workspace",
    "shares memory",
    "limits of another process",
)


def probed(folder: Path, backend: str) -> tuple[str, tuple[str, ...]]:
    make: Callable[[SandboxProfile], object] = Open if backend == "open" else lambda profile: put_up(backend, profile)
    return find_gap(make, folder / "state")  # type: ignore[arg-type]  # walls, all of them


@everyone
def test_the_probe_sees_every_door_that_is_open(user: str) -> None:
    with land(user) as folder:
        why, gaps = USERS[user](probed, folder, "open")  # type: ignore[misc]
    assert [door for door in (*FOUND, *(("kernel settings",) if user == "root" else ())) if door not in why] == []
    assert gaps == (FIFOS, SIGNALS, SET_ID)


@everywhere
@everyone
def test_the_probe_finds_none_in_a_sandbox(backend: str, user: str) -> None:
    need(backend)
    with land(user) as folder:
        assert USERS[user](probed, folder, backend) == ("", ())


@pytest.mark.parametrize(
    ("gap", "backend", "is_used"),
    [
        (FIFOS, "bubblewrap", True),
        (FIFOS, "landlock", False),
        (SIGNALS, "landlock", True),
        (SIGNALS, "namespaces", False),
        (SET_ID, "namespaces", False),
        (SET_ID, "seatbelt", True),
    ],
)
def test_backend_openings_are_declared_or_reasoned(gap: str, backend: str, is_used: bool) -> None:
    proof = selection._evaluate("", (gap,), f"{backend} x")
    assert (proof.why == "", proof.gaps) == (is_used, (gap,))


MAKING = """
import ctypes, os, sys
system, out = ctypes.CDLL(None, use_errno=True), sys.argv[1]
open(out, "w").close()
name = os.fsencode(out)
ways = {
    "chmod": lambda: os.chmod(out, MODE),
    "fchmod": lambda: os.fchmod(os.open(out, os.O_RDONLY), MODE),
    "fchmodat": lambda: os.chmod(os.path.basename(out), MODE, dir_fd=os.open(os.path.dirname(out), os.O_RDONLY)),
    "fchmodat2": lambda: system.syscall(452, -100, name, MODE, 0),
    "open": lambda: (os.unlink(out), system.syscall(2, name, os.O_CREAT | os.O_WRONLY, MODE)),
    "creat": lambda: (os.unlink(out), system.syscall(85, name, MODE)),
    "openat": lambda: (os.unlink(out), os.open(out, os.O_CREAT | os.O_WRONLY, MODE)),
    "openat2": lambda: (os.unlink(out), system.syscall(437, -100, name, (ctypes.c_uint64 * 3)(65, MODE, 0), 24)),
    "tmpfile": lambda: (
        os.unlink(out),
        fd := os.open(os.path.dirname(out), os.O_TMPFILE | os.O_WRONLY, MODE),
        system.linkat(-100, b"/proc/self/fd/%d" % fd, -100, name, 1024),
    ),
    "mknod": lambda: (os.unlink(out), system.syscall(133, name, 0o100000 | MODE, 0)),
    "mknodat": lambda: (os.unlink(out), os.mknod(out, 0o100000 | MODE)),
}
os.umask(0)
ways[sys.argv[2]]()
"""
WAYS = ("chmod", "fchmod", "fchmodat", "fchmodat2", "open", "creat", "openat", "openat2", "tmpfile", "mknod", "mknodat")
MODES = ("0o4755", "0o2755", "0o6711")


def made_with_bits(folder: Path, backend: str) -> list[str]:
    """The ways that made a file with a bit by which whoever runs it becomes its owner."""
    with Ground(folder) as ground:
        walls = put_up(backend, ground.profile) if backend else None
        lines = []
        for mode in MODES:
            (ground.work / f"try{mode}.py").write_text(MAKING.replace("MODE", mode))
            lines += [f'"$PYTHON" -I -S try{mode}.py {ground.work}/{way}{mode} {way}' for way in WAYS]
        try:
            ground.run("; ".join(lines), walls)
        finally:
            if walls:
                walls.close()
        return sorted(path.name for path in ground.work.iterdir() if path.is_file() and path.stat().st_mode & 0o6000)


@pytest.mark.sweep(every=3)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers above are those of one machine")
@everywhere
@everyone
def test_no_file_creation_gives_set_id_bits(backend: str, user: str) -> None:
    need(backend)
    with land(user) as folder:
        assert USERS[user](made_with_bits, folder, backend) == []


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers above are those of one machine")
def test_outside_each_of_them_does() -> None:
    with land() as folder:
        made = unprivileged.call(made_with_bits, folder, "")
    assert made == sorted(f"{way}{mode}" for way in WAYS for mode in MODES)


@contextmanager
def fifos(folder: Path) -> Iterator[list[int]]:
    """That somebody outside reads: beside the workspace, in the home directory, in a folder of the machine."""
    places = [folder / "outside" / "fifo", folder / "home" / "fifo"]
    for place in places:
        os.mkfifo(place)
    readers = [os.open(place, os.O_RDONLY | os.O_NONBLOCK) for place in places]
    try:
        yield readers
    finally:
        for reader in readers:
            os.close(reader)


def fed(folder: Path, backend: str) -> list[bytes]:
    with Ground(folder) as ground, fifos(folder) as readers:
        walls = put_up(backend, ground.profile) if backend else None
        try:
            ground.run('for each in "$OUT/fifo" "$HOME/fifo"; do echo x 1<> $each; echo x > $each; done', walls)
        finally:
            if walls:
                walls.close()
        return [os.read(reader, 9) if backend else os.read(reader, 1) for reader in readers]


@everywhere
@everyone
def test_no_message_passes_a_fifo_of_the_machine(backend: str, user: str) -> None:
    need(backend)
    with land(user) as folder:
        assert USERS[user](fed, folder, backend) == [b"", b""]


def test_outside_a_fifo_is_written_to() -> None:
    with land() as folder:
        assert unprivileged.call(fed, folder, "") == [b"x", b"x"]


CHANGING = (
    'import os, resource, sys; pid = int(sys.argv[5])\n{}\nopen("done", "w").write("x")',
    (
        "resource.prlimit(pid, resource.RLIMIT_CPU, (0, 0))",
        "resource.prlimit(pid, resource.RLIMIT_NOFILE)",
        "os.setpriority(os.PRIO_PROCESS, pid, 19)",
        "os.sched_setaffinity(pid, {0})",
        "os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))",
    ),
)


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("way", CHANGING[1])
@everywhere
@everyone
def test_no_other_process_is_changed(backend: str, user: str, way: str) -> None:
    need(backend)
    with land(user) as folder:
        assert USERS[user](changed, folder, backend, way) == (False, True)


def changed(folder: Path, backend: str, way: str) -> tuple[bool, bool]:
    """Whether it could be done, and whether the other process lives as before."""
    with Ground(folder) as ground:
        (ground.work / "change.py").write_text(CHANGING[0].format(way))
        walls = put_up(backend, ground.profile)
        try:
            ground.run('"$PYTHON" -I -S change.py 1 2 3 4 $VICTIM', walls)
        finally:
            walls.close()
        nice = os.getpriority(os.PRIO_PROCESS, ground.victim.pid)
        return (ground.work / "done").exists(), ground.victim.poll() is None and nice == os.getpriority(os.PRIO_PROCESS, 0)


SHARED = ("shmget(77, 4096, 0o1600)", "semget(77, 1, 0o1600)", "msgget(77, 0o1600)")


@pytest.mark.parametrize("way", SHARED)
@everyone
def test_landlock_shares_nothing_by_number(user: str, way: str) -> None:
    need("landlock")
    with land(user) as folder:
        assert USERS[user](shares, folder, way) == "-1"


def shares(folder: Path, way: str) -> str:
    with Ground(folder) as ground:
        walls = put_up("landlock", ground.profile)
        try:
            return ground.run(f'"$PYTHON" -I -S -c "import ctypes; print(ctypes.CDLL(None).{way})"', walls).stdout.strip()
        finally:
            walls.close()


@pytest.mark.skipif(os.getuid() != 0, reason="settings of the kernel are root's")
@everywhere
@pytest.mark.parametrize("setting", ["/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/proc/sysrq-trigger"])
def test_root_changes_no_setting_of_the_kernel(backend: str, setting: str) -> None:
    need(backend)
    with land("root") as folder, Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        try:
            done = ground.run(f"exec 7> {setting} && echo opened", walls)
        finally:
            walls.close()
    assert "opened" not in done.stdout


def test_pairs_of_sockets_still_work_in_landlock() -> None:
    need("landlock")
    with land() as folder:
        assert unprivileged.call(pairs, folder) == ["stream", "sequence", "refused"]


def pairs(folder: Path) -> list[str]:
    code = """
import socket
for name, kind in (("stream", 1), ("sequence", 5), ("datagram", 2)):
    try:
        one, two = socket.socketpair(1, kind)
        one.send(b"x")
        print(name if two.recv(1) == b"x" else "?")
    except PermissionError:
        print("refused")
"""
    with Ground(folder) as ground:
        (ground.work / "pairs.py").write_text(code)
        walls = put_up("landlock", ground.profile)
        try:
            return ground.run('"$PYTHON" -I -S pairs.py', walls).stdout.split()
        finally:
            walls.close()


def test_programs_see_a_broken_pipe_as_ever() -> None:
    """A launcher written in Python must not hand on that it ignores that signal."""
    for backend in BACKENDS:
        need(backend)
        with land("root") as folder, Ground(folder) as ground:
            walls = put_up(backend, ground.profile)
            done: subprocess.CompletedProcess[str] = ground.run("yes | head -1; echo ${PIPESTATUS[0]}", walls)
            walls.close()
            assert done.stdout.split() == ["y", "141"], backend
