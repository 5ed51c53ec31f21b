"""The engine of a cluster whose head dies: a stand-in for Ray whose calls never return from then on."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.fakes.repositories import files
from wolo import __version__
from wolo.errors import WoloError
from wolo.fleet.agent_run import AgentSettings, Allowance
from wolo.fleet.attempts import AttemptView
from wolo.fleet.engines import ray_engine
from wolo.fleet.engines.ray_engine import RayEngine
from wolo.fleet.ledger.outcomes import Lease, Owner
from wolo.fleet.run_folder import RunFolder
from wolo.fleet.tasks import BatchTask
from wolo.places import find_places


class StalledRay(ModuleType):
    """Has what the engine uses of Ray; `stalled` names calls that do not return."""

    def __init__(self, address: str) -> None:
        super().__init__("ray")
        self.address = address
        self.stalled: set[str] = set()
        self.submitting, self.sent = threading.Event(), threading.Event()
        self.released = threading.Event()
        self.calls: list[str] = []
        self.payload: object = b""
        """The attempt that was sent last."""
        self.exceptions = SimpleNamespace(RayError=RuntimeError)
        self.util = SimpleNamespace(scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=_Endless))

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.stalled:
            self.released.wait()

    def init(self, **_options: object) -> None: ...

    def nodes(self) -> list[dict[str, Any]]:
        self._call("nodes")
        return [{"NodeID": "n0", "Alive": True, "Resources": {"CPU": 4.0, "memory": 1e9}}]

    def remote(self, _function: object) -> StalledRay:
        return self

    def options(self, **_options: object) -> SimpleNamespace:
        return SimpleNamespace(remote=self._submit)

    def _submit(self, *sent: object) -> _Endless:
        if sent:  # else it asks a node for its version
            self.payload = sent[0]
            self.submitting.set()
            self._call("submit")
            self.sent.set()
        return _Endless()

    def wait(self, asked: list[object], **_options: object) -> tuple[list[object], list[object]]:
        self._call("wait")
        return asked, []

    def get(self, _asked: object) -> str:
        return __version__

    def cancel(self, _placed: object, *, force: bool) -> None:
        self._call("cancel")

    def shutdown(self) -> None:
        self._call("shutdown")


class _Endless:
    def __init__(self, *_: object, **__: object) -> None: ...

    def __await__(self) -> Any:
        return asyncio.get_running_loop().create_future().__await__()


@pytest.fixture
def head() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def ray(head: socket.socket, monkeypatch: pytest.MonkeyPatch) -> Iterator[StalledRay]:
    fake = StalledRay(f"127.0.0.1:{head.getsockname()[1]}")
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.setattr(ray_engine, "_HEAD_S", 0.2)
    monkeypatch.setattr(ray_engine, "_PREPARE_S", 0.2)
    monkeypatch.setattr(ray_engine, "_PROBE_S", 0.0)
    monkeypatch.setattr(ray_engine, "_LEAVE_S", 0.0)
    yield fake
    fake.released.set()


def placing(engine: RayEngine) -> asyncio.Task[object]:
    lease = Lease(task=BatchTask(id="t0", prompt="go"), key="t0", attempt=1, fence=1, owner=Owner("here", 1, ""))
    return asyncio.create_task(engine.place(lease, Allowance(), AttemptView(lease)))


@pytest.mark.parametrize("stalled", ["", "nodes", "wait", "submit"])
async def test_silent_head_ends_the_run(ray: StalledRay, run: Path, stalled: str) -> None:
    """It still accepts connections, as a stopped process does."""
    ray.stalled = {stalled, "cancel", "shutdown"}
    engine = RayEngine(RunFolder(run), AgentSettings(), ray.address)
    attempt = placing(engine)
    if not stalled:
        await asyncio.to_thread(ray.sent.wait)
        ray.stalled.add("nodes")
    elif stalled == "submit":
        await asyncio.to_thread(ray.submitting.wait)
        ray.stalled.add("nodes")
    with pytest.raises(WoloError, match="head of the Ray cluster") as ended:
        await attempt
    await engine.close()
    assert ended.value.hint is not None
    assert "resume RUN --engine ray --ray-address" in ended.value.hint
    assert "--engine local" in ended.value.hint
    assert "cancel" not in ray.calls, "nothing is asked of a head that is gone"


async def test_model_and_mode_of_settings_are_sent(ray: StalledRay, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZAI_API_KEY", "k")
    ray.stalled = {"cancel", "shutdown"}
    files(find_places().config, {"config.toml": 'model = "zai/glm-5.2"\nmode = "plan"\n'})
    engine = RayEngine(RunFolder(run), AgentSettings(sets=("thinking=low",)), ray.address)
    attempt = placing(engine)
    await asyncio.to_thread(ray.sent.wait)
    attempt.cancel()
    await asyncio.wait([attempt])
    await engine.close()
    assert isinstance(ray.payload, bytes)
    assert msgspec.json.decode(ray.payload)["settings"] == {"model": "zai/glm-5.2", "mode": "plan", "sets": ["thinking=low"]}


async def test_a_stalled_cluster_is_left(ray: StalledRay, run: Path) -> None:
    ray.stalled = {"cancel", "shutdown"}
    engine = RayEngine(RunFolder(run), AgentSettings(), ray.address)
    attempt = placing(engine)
    await asyncio.to_thread(ray.sent.wait)
    attempt.cancel()
    await asyncio.wait([attempt])
    await engine.close()
    assert attempt.cancelled()
    assert {"cancel", "shutdown"} <= set(ray.calls)
