"""Many agents in one process share what they can: the writer, the database, the tools."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from tests.architecture.test_growth import Bytecodes
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import error, text
from wolo import Agent, RunError
from wolo.places import find_places
from wolo.sessions.store import Store
from wolo.testing import ScriptedTransport

NUM_AGENTS = 30
MOST_BYTES = 75_000
"""Of one conversation with all tools: 60,000 on Python 3.11; 80,000 when each had its own environment, paths and prompt."""


MOST_BYTECODES = 56_000
"""Of wolo, for a run of one more agent that saves nothing: 52,000; 97,000 when each one prepared its sandbox, looked its
model up, and searched tools and settings for secrets."""


async def run_agents(stack: AsyncExitStack, number: int, session: str | None = None) -> list[Agent]:
    agents = [Agent("test/m", transport=ScriptedTransport(["Hi!"]), session=session) for _ in range(number)]
    for each in agents:
        await stack.enter_async_context(each)
        await each.run("Hello")
    return agents


P = ParamSpec("P")
T = TypeVar("T")


def open_files(name: str = "") -> list[str]:
    files = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            files.append(str(descriptor.readlink()))
    return [file for file in files if name in file]


async def test_saved_conversations_share_thread_and_connection() -> None:
    async with AsyncExitStack() as stack:
        await run_agents(stack, 1)
        database, threads, files = open_files("wolo.db"), threading.active_count(), len(open_files())
        await run_agents(stack, NUM_AGENTS)
        assert open_files("wolo.db") == database != []
        assert threading.active_count() <= threads + 1
        assert len(open_files()) <= files + 2 * NUM_AGENTS
    assert open_files("wolo.db") == []


async def test_limit_of_open_files_is_named() -> None:
    resource = pytest.importorskip("resource")
    async with AsyncExitStack() as stack:
        await run_agents(stack, 1)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(open_files()) + 3, hard))
        try:
            with pytest.raises(RunError, match="too many files are open") as failed:
                await run_agents(stack, 20)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert "ulimit -n" in (failed.value.hint or "")
        await run_agents(stack, 3)


async def test_conversation_takes_few_bytes() -> None:
    async with AsyncExitStack() as stack:
        await run_agents(stack, 3)
        gc.collect()
        tracemalloc.start()
        try:
            for agent in (agents := await run_agents(stack, NUM_AGENTS)):
                agent._transport.requests.clear()  # type: ignore[union-attr]  # the script's own
            gc.collect()
            num_bytes = tracemalloc.get_traced_memory()[0] / len(agents)
        finally:
            tracemalloc.stop()
        assert num_bytes < MOST_BYTES


async def run_next(provider: ProviderServer, session: str | None = "memory") -> None:
    provider.script(text("Hi!"))
    async with Agent("test-model", base_url=provider.base_url, api_key="key", session=session) as agent:
        await agent.run("Hello")


async def test_next_agent_looks_up_nothing(provider: ProviderServer) -> None:
    await run_next(provider)
    assert [asked.path for asked in provider.looked_up] == ["/v1/models"]
    assert provider.num_connections == 2  # a page that is missing closes its own
    await run_next(provider)
    assert len(provider.looked_up) == 1


async def test_failed_run_leaves_look_up_to_next(provider: ProviderServer) -> None:
    provider.script(error(401, {"error": {"message": "Unknown key."}}))
    async with Agent("test-model", base_url=provider.base_url, api_key="wrong", session="memory") as agent:
        with pytest.raises(RunError):
            await agent.run("Hello")
    await run_next(provider)
    assert len(provider.looked_up) == 2


async def test_unsaved_run_needs_no_thread(provider: ProviderServer) -> None:
    with NoThreads() as threads:
        asyncio.get_running_loop().set_default_executor(threads)
        await run_next(provider)
        threads.work.clear()  # it looked the model up
        await run_next(provider)
    assert threads.work == []


class NoThreads(ThreadPoolExecutor):
    """Records what it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.work: list[object] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        self.work.append(fn)
        return super().submit(fn, *args, **kwargs)


@pytest.mark.parametrize(("session", "most"), [("memory", MOST_BYTECODES), (None, MOST_BYTECODES + 4_000)])
async def test_run_of_another_agent_takes_few_bytecodes(provider: ProviderServer, session: str | None, most: int) -> None:
    provider.linted = False  # its linter is wolo's
    await run_next(provider, session)
    await run_next(provider, session)
    bytecodes = Bytecodes()
    bytecodes.turn_on(True)
    try:
        await run_next(provider, session)
    finally:
        bytecodes.turn_on(False)
    assert bytecodes.count < most


async def test_closed_conversation_leaves_others_their_database() -> None:
    async with AsyncExitStack() as stack:
        (staying,) = await run_agents(stack, 1)
        async with AsyncExitStack() as passing:
            await run_agents(passing, 1)
        staying._transport._script.append("Still here.")  # type: ignore[union-attr]
        await staying.run("And now?")
        with Store.open(find_places().data) as store:
            assert store.find(staying.session_id).turns == 2


async def test_dropped_agent_gives_its_share_back(tmp_path: Path) -> None:
    agent = Agent("test/m", transport=ScriptedTransport(["Hi!"]))
    await agent.run("Hello")
    del agent
    gc.collect()
    assert open_files("wolo.db") == []


async def test_cancelled_close_leaves_session_unlocked() -> None:
    write = {"tool": "write", "input": {"path": "new", "content": "x"}}  # its record is closed in a thread
    agent = Agent("test/m", mode="edit", transport=ScriptedTransport([write, "Hi!", "Again."]))
    await agent.run("Hello")
    closing = asyncio.create_task(agent.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait({closing})
    assert closing.cancelled()
    async with agent:
        assert (await agent.run("And now?")).answer == "Again."
    assert open_files("wolo.db") == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forked_child_continues_in_session_of_its_own() -> None:
    agent = Agent("test/m", transport=ScriptedTransport(["Hi!", "Again."]))
    asyncio.run(agent.run("Hello"))
    child = os.fork()
    if not child:
        try:
            answer = asyncio.run(agent.run("And now?")).answer
            asyncio.run(agent.close())
            os._exit(0 if answer == "Again." and len(agent.history) == 4 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert asyncio.run(agent.run("And now?")).answer == "Again."
    asyncio.run(agent.close())
    with Store.open(find_places().data) as store:
        assert [session.turns for session in store.list()] == [2, 2]
