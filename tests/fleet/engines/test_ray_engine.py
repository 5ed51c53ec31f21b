"""Batches on a Ray cluster of three nodes, whose workers and nodes die."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from tests.components import miss
from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Hold, Reply, call, delta, finish, sse, text, usage
from tests.fleet.batches import results, serve, write_tasks
from tests.fleet.engines.ray_cluster import CPUS, ray_cluster
from wolo.fleet.engines.ray_worker import ReturnedAttempt, run_attempt
from wolo.fleet.ledger.ledger_folder import create_ledger
from wolo.fleet.ledger.limit_sockets import LimitAddress, at_coordinator, at_node, serve_limits
from wolo.fleet.ledger.run_rows import Meta

NODES = 3


def needs_ray() -> None:
    if find_spec("ray") is None:
        miss("ray (the extra `fleet`; it has no wheel for every Python)")


def workers() -> list[int]:
    """Pids of Ray's processes that run an attempt: they call themselves after it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                title = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::wolo "):
                found.append(int(entry.name))
    return found


@pytest.mark.long
def test_dead_worker_or_node_ends_each_task_once(
    provider: ProviderServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    needs_ray()
    for name, value in serve(provider).items():
        monkeypatch.setenv(name, value)
    hold, asked_first = Hold(), 0

    def answer(asked: Asked) -> Reply:
        nonlocal asked_first
        if asked.results:
            return text("Done.")
        asked_first += 1
        if asked_first > NODES * CPUS:
            return call("shell", {"command": "echo made >> made.txt"})
        return sse(delta("One moment."), hold, finish("stop", usage()))

    provider.otherwise = answer
    tasks = write_tasks(tmp_path / "t.jsonl", 9)
    with ray_cluster(NODES) as cluster:
        words = [
            "batch",
            "run",
            "--mode",
            "yolo",
            str(tasks),
            "--out",
            "x",
            "-j",
            "6",
            "--engine",
            "ray",
            "--ray-address",
            cluster.address,
        ]
        with subprocess.Popen([sys.executable, "-m", "wolo", *words], stderr=subprocess.PIPE, text=True) as batch:
            wait_for(lambda: asked_first == NODES * CPUS, timeout_s=60)
            os.kill(workers()[0], signal.SIGKILL)
            cluster.kill_node()
            hold.release()
            _, said = batch.communicate(timeout=120)
    assert batch.returncode == 0, said
    found = results(Path("x"))
    assert sorted(result["id"] for result in found) == [f"t{number}" for number in range(9)]
    assert {result["state"] for result in found} == {"done"}
    assert sum(result["attempt"] > 1 for result in found) >= 2, "the lost ones were run again"
    for result in found:
        (place,) = Path("x/attempts", result["id"]).glob(f"{result['attempt']}-*")
        assert {"log", "session", "stream.jsonl"} <= {path.name for path in place.iterdir()}


@pytest.mark.long
def test_stopped_head_ends_the_run_with_a_sentence(env: dict[str, str], provider: ProviderServer, tmp_path: Path) -> None:
    needs_ray()
    tasks = write_tasks(tmp_path / "t.jsonl", 1, prompt="HOLD ON")
    with ray_cluster() as cluster:
        words = ("batch", "run", str(tasks), "--out", "x", "--engine", "ray", "--ray-address", cluster.address)
        with start_wolo(*words, "--mode", "yolo", forked=False) as batch:
            provider.wait_for_requests(1, timeout_s=60)
            cluster.freeze_head()
            _, said = batch.communicate(timeout=100)
            assert b"The head of the Ray cluster at" in said, said
            assert batch.returncode == 1, said.decode()
        again = run_wolo("batch", "resume", "x", timeout=100, forked=False)
        assert again.exit_code == 2
        assert "Cannot connect to a Ray cluster" in again.stderr
    provider.otherwise = text("Done.")
    assert run_wolo("batch", "resume", "x", "--engine", "local", timeout=60).exit_code == 0
    assert [result["state"] for result in results(Path("x"))] == ["done"]


@pytest.mark.long
def test_client_address_reaches_the_cluster(env: dict[str, str], tmp_path: Path) -> None:
    needs_ray()
    tasks = write_tasks(tmp_path / "t.jsonl", 2)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ("batch", "run", str(tasks), "--mode", "yolo", "--out", "x", "--engine", "ray")
    if find_spec("grpc") is None:
        done = run_wolo(*words, "--ray-address", f"ray://127.0.0.1:{port}", timeout=100, forked=False)
        assert done.exit_code == 2
        assert "Cannot connect to a Ray cluster at ray://" in done.stderr
        assert "ray[client]" in done.stderr
        return
    with ray_cluster(client_port=port):
        done = run_wolo(*words, "--ray-address", f"ray://127.0.0.1:{port}", timeout=100, forked=False)
    assert done.exit_code == 0, done.stderr
    assert {result["state"] for result in results(Path("x"))} == {"done"}


def test_a_node_with_another_version_says_so() -> None:
    sent = msgspec.json.encode({"version": "0.0.1", "lease": "of another shape"})
    returned = msgspec.json.decode(run_attempt(sent, ()), type=ReturnedAttempt)
    assert returned.refusal.endswith("and the run needs 0.0.1")
    assert returned.outcome is None


async def test_agents_on_other_nodes_request_the_shared_limits(run: Path) -> None:
    ledger = create_ledger(run, Meta(version="1"))
    ledger.limits().note_refusal("key", 30.0)
    async with serve_limits(ledger.limits()) as path, at_coordinator(path, "127.0.0.1") as address:
        assert 29 < await waiting_s(address) <= 30
        assert await waiting_s(LimitAddress(address.host, address.port, "guessed")) is None
    ledger.close()


async def waiting_s(address: LimitAddress) -> float | None:
    """The answer to an agent that wants to send a request; None: there was none."""
    async with at_node(address) as path:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b'{"do":"acquire","key":"key","tokens":1}\n')
        line = await reader.readline()
        writer.close()
    return float(msgspec.json.decode(line)["wait_s"]) if line else None
