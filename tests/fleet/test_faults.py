"""Every fault of what surrounds a task, injected into a run: the task was not tried, so it has not failed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.components import miss
from tests.fakes.command import run_wolo
from tests.fakes.container_engine import STATE, StandInEngine
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, error, text
from tests.fleet.batches import agents
from tests.fleet.postgresql import PostgresServer

RUN = Path("run")
UNTRIED = {"queued", "errored", "lost"}
EATS = f"{sys.executable} -c 'import time; eaten = bytearray(300 << 20); time.sleep(60)'"
JUMPING_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    static int calls;
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(id, now);
    if (id == CLOCK_REALTIME) now->tv_sec += (calls++ % 2 ? 1 : -1) * 40000000;
    return status;
}
"""


class Scene:
    """A batch of two tasks that pass, before something goes wrong."""

    def __init__(self, provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> None:
        self.provider, self.folder, self.monkeypatch, self.request = provider, tmp_path, monkeypatch, request
        self.task: dict[str, Any] = {"verify": "test -f made.txt"}
        self.args: list[str] = []
        self.start: list[str] = []
        """Words in front of the command line."""

    def answers(self, reply: Reply) -> None:
        self.provider.otherwise = reply

    def make(self, *args: str) -> Any:
        file = self.folder / "tasks.jsonl"
        file.write_text("".join(json.dumps({"id": id, "prompt": "go", **self.task}) + "\n" for id in ("t", "u")))
        sets = ("--mode", "yolo", "--set", "retry.tries=1")
        return run_wolo("batch", "run", str(file), "--out", "run", *sets, *self.args, *args)

    def resume(self) -> subprocess.CompletedProcess[str]:
        """In a process of its own, as its limits may be others."""
        argv = [*self.start, sys.executable, "-m", "wolo", "batch", "resume", "run", "-j", "1"]
        return subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)

    def states(self) -> dict[str, int]:
        states: dict[str, int] = run_wolo("batch", "status", "run", "--json").json["states"]
        return states


def refused_key(scene: Scene) -> None:
    scene.answers(error(401, {"error": {"message": "bad key"}}))


def used_up_credit(scene: Scene) -> None:
    scene.answers(error(402, {"error": {"message": "Insufficient balance"}}))


def model_that_is_gone(scene: Scene) -> None:
    scene.answers(error(404, {"error": {"message": "The model does not exist", "code": "model_not_found"}}))


def name_without_address(scene: Scene) -> None:
    scene.monkeypatch.setenv("WOLO_BASE_URL", "http://provider.invalid/v1")


def port_without_server(scene: Scene) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        scene.monkeypatch.setenv("WOLO_BASE_URL", f"http://127.0.0.1:{free.getsockname()[1]}/v1")


def full_disk(scene: Scene) -> None:
    """The run is on a disk of its own, which the verify command fills."""
    enter = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode:
        miss("mount namespaces")
    scene.task["verify"] = "head -c 200000000 /dev/zero > filled"
    disk = "mount -t tmpfs -o size=16m disk run"
    mounted = f'cp -a run kept && {disk} && cp -a kept/. run && "$@"; code=$?; cp -a run/. kept; exit $code'
    scene.start = [*enter, "sh", "-c", mounted, "sh"]


def full_ledger(scene: Scene) -> None:
    """Files of the run may not grow beyond what the ledger already has."""
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)); os.execv(sys.argv[1], sys.argv[1:])"
    scene.start = [sys.executable, "-c", f"import os, resource, sys; {limit}"]


def dead_daemon(scene: Scene) -> None:
    engine(scene).die()


def daemon_that_dies(scene: Scene) -> None:
    scene.task["verify"] = f"touch {engine(scene).folder}/dead; exit 1"


def engine(scene: Scene) -> StandInEngine:
    made = StandInEngine(scene.folder / "engine")
    (made.folder / "images/img:1").mkdir()
    for name in ("docker", "podman"):
        made.install(scene.folder / "bin", name)
    scene.monkeypatch.setenv(STATE, str(made.folder))
    path = (str(scene.folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"])
    scene.monkeypatch.setenv("PATH", os.pathsep.join(path))
    scene.task["image"] = "img:1"
    scene.args += ["--image", "img:1"]
    return made


def lost_head(scene: Scene) -> None:
    scene.args += ["--engine", "ray", "--ray-address", "127.0.0.1:1"]


def stopped_database(scene: Scene) -> None:
    pytest.importorskip("psycopg")
    server: PostgresServer = scene.request.getfixturevalue("postgres")
    scene.monkeypatch.setenv("PGPASSWORD", server.password)
    scene.args += ["--store", server.url]
    before = scene.states

    def states() -> dict[str, int]:
        server.start()
        return before()

    scene.states = states  # type: ignore[method-assign]  # only a running server can be asked
    real = scene.resume

    def resume() -> subprocess.CompletedProcess[str]:
        server.stop("fast")
        return real()

    scene.resume = resume  # type: ignore[method-assign]  # made while it ran


def memory_of_setup(scene: Scene) -> None:
    scene.task |= {"setup": EATS, "resources": {"memory_mb": 150}}


def memory_of_verify(scene: Scene) -> None:
    scene.task |= {"verify": EATS, "resources": {"memory_mb": 250}}


def memory_of_the_agent(scene: Scene) -> None:
    scene.task["resources"] = {"memory_mb": 250}
    scene.answers(call("shell", {"command": EATS}))


def killed_agent(scene: Scene) -> None:
    def answer(asked: Asked) -> Reply:
        for pid in agents(RUN):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return text("too late")

    scene.provider.otherwise = answer


def killed_worker(scene: Scene) -> None:
    """Each agent ends the worker that has started it."""

    def answer(asked: Asked) -> Reply:
        for pid in agents(RUN):
            with suppress(OSError, ValueError):
                status = Path(f"/proc/{pid}/status").read_text()
                parent = int(status.partition("PPid:")[2].split()[0])
                if b"resume" in Path(f"/proc/{parent}/cmdline").read_bytes():
                    os.kill(parent, signal.SIGKILL)
        return text("too late")

    scene.provider.otherwise = answer


def jumping_clock(scene: Scene) -> None:
    """Each look at the time of day finds another year; nothing goes wrong then."""
    source, library = scene.folder / "clock.c", scene.folder / "clock.so"
    source.write_text(JUMPING_CLOCK)
    if shutil.which("cc") is None:
        miss("a C compiler")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    scene.monkeypatch.setenv("LD_PRELOAD", str(library))


@pytest.mark.parametrize(
    ("inject", "exit_code", "states"),
    [
        (refused_key, 2, {"queued": 1, "errored": 1}),
        (used_up_credit, 2, {"queued": 1, "errored": 1}),
        (model_that_is_gone, 2, {"errored": 2}),
        (name_without_address, 2, {"errored": 2}),
        (port_without_server, 2, {"errored": 2}),
        (full_disk, 2, None),
        (full_ledger, 2, None),
        (dead_daemon, 2, {"queued": 2}),
        (daemon_that_dies, 2, {"errored": 2}),
        (lost_head, 2, {"queued": 2}),
        pytest.param(stopped_database, 2, {"queued": 2}, marks=pytest.mark.timeout(240)),
        (memory_of_setup, 2, {"errored": 2}),
        (memory_of_verify, 2, {"errored": 2}),
        (memory_of_the_agent, 2, {"errored": 2}),
        (killed_agent, 2, {"lost": 2}),
        (killed_worker, -signal.SIGKILL, None),
        (jumping_clock, 0, {"passed": 2}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_fault_is_no_failure_of_a_task(
    env: dict[str, str],
    provider: ProviderServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    inject: Callable[[Scene], None],
    exit_code: int,
    states: dict[str, int] | None,
) -> None:
    scene = Scene(provider, tmp_path, monkeypatch, request)
    inject(scene)
    made = scene.make("-j", "0")
    assert made.exit_code == 0, made.stderr
    done = scene.resume()
    assert (done.returncode, "Traceback" in done.stderr) == (exit_code, False), done.stderr
    found = scene.states()
    assert sum(found.values()) == 2, "no task is gone"
    assert states is None or found == states, done.stderr
    if exit_code:
        assert found.keys() <= UNTRIED | {"leased"}, done.stderr
