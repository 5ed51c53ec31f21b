"""Functions of a program as tools: threads, side by side, progress, limits and approvals."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from wolo import Agent, tool
from wolo.errors import UsageError
from wolo.testing import ScriptedTransport

USER: ContextVar[str] = ContextVar("user", default="nobody")


def agent(*script: Any, **more: Any) -> Agent:
    return Agent("test/m", session="memory", transport=ScriptedTransport(script), **{"mode": "edit", **more})


def call(name: str, times: int = 1) -> list[dict[str, Any]]:
    return [{"tool": name, "input": {}} for _ in range(times)]


async def results(ours: Agent) -> list[tuple[bool, str]]:
    async with ours:
        events = [event async for event in ours.run_stream("go")]
    return [(event.is_error, event.content) for event in events if event.type == "tool_result"]  # type: ignore[attr-defined]  # by type


async def test_plain_function_does_not_stop_the_loop() -> None:
    released = threading.Event()

    def wait() -> str:
        """Wait."""
        return f"{released.wait(30)} {USER.get()} {threading.current_thread() is threading.main_thread()}"

    USER.set("ada")
    asyncio.get_running_loop().call_later(0.05, released.set)
    assert await results(agent(call("wait"), "Done.", tools=[wait])) == [(False, "True ada False")]


async def test_function_in_the_loop_stays_there() -> None:
    @tool(in_loop=True)
    def here() -> str:
        """Tell where."""
        return str(asyncio.get_running_loop().is_running() and threading.current_thread() is threading.main_thread())

    assert await results(agent(call("here"), "Done.", tools=[here])) == [(False, "True")]


@pytest.mark.parametrize("kind", ["async", "reader", "plain"])
async def test_calls_run_side_by_side_by_default(kind: str) -> None:
    running = [0, 0]

    async def meet() -> str:
        """Meet."""
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.05)
        running[0] -= 1
        return "met"

    if kind == "async":
        tools = [meet]
    elif kind == "reader":
        tools = [tool(meet, reads_only=True)]
    else:
        tools = [tool(meet, parallel=False)]
    await results(agent(call("meet", 3), "Done.", tools=tools))
    assert running[1] == (1 if kind == "plain" else 3)


async def test_yields_are_progress_and_their_join_the_result() -> None:
    def count() -> Iterator[str]:
        """Count."""
        yield "one "
        yield "two"

    async def count_async() -> AsyncIterator[str]:
        """Count."""
        yield "one "
        yield "two"

    async def stop() -> AsyncIterator[str]:
        """Fail after a piece."""
        yield "one"
        raise ValueError("no more")

    for function in (count, count_async):
        assert await results(agent(call(function.__name__), "Done.", tools=[function])) == [(False, "one two")]
    assert await results(agent(call("stop"), "Done.", tools=[stop])) == [(True, "stop failed: ValueError: no more")]


@pytest.mark.parametrize("is_async", [True, False])
async def test_long_call_fails_at_its_timeout(is_async: bool) -> None:
    released = threading.Event()

    @tool(name="slow", timeout_s=0.1)
    async def sleep() -> None:
        """Sleep."""
        await asyncio.sleep(30)

    @tool(name="slow", timeout_s=0.1)
    def block() -> None:
        """Block."""
        released.wait(30)

    [(is_error, text)] = await results(agent(call("slow"), "Done.", tools=[sleep if is_async else block]))
    released.set()
    assert is_error
    assert "longer than 0.1 s" in text


async def test_late_result_fails_at_the_timeout() -> None:
    @tool(name="slow", timeout_s=0.01, in_loop=True)
    def block() -> str:
        """Block the loop."""
        time.sleep(0.02)
        return "late"

    @tool(name="slow", timeout_s=0.01)
    async def swallow() -> str:
        """Catch the cancellation."""
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(30)
        return "late"

    for each in (block, swallow):
        [(is_error, text)] = await results(agent(call("slow"), "Done.", tools=[each]))
        assert is_error
        assert "longer than 0.01 s" in text


async def test_failed_call_is_repeated() -> None:
    attempts = []

    @tool(retries=2)
    def flaky() -> str:
        """Fail twice."""
        attempts.append(1)
        if len(attempts) < 3:
            raise OSError("not yet")
        return "there"

    assert await results(agent(call("flaky"), "Done.", tools=[flaky])) == [(False, "there")]
    assert len(attempts) == 3


@pytest.mark.parametrize(("approval", "answer", "ran"), [(True, True, 1), (True, False, 0), (True, None, 0), (False, None, 1)])
@pytest.mark.parametrize("by_function", [True, False])
@pytest.mark.parametrize("mode", ["edit", "yolo"])
async def test_approval_is_asked_for(approval: bool, answer: bool | None, ran: int, by_function: bool, mode: str) -> None:
    calls = []

    @tool(approval=(lambda arguments: approval and arguments == {}) if by_function else approval)
    def pay() -> str:
        """Pay."""
        calls.append(1)
        return "paid"

    on_approval = None if answer is None else lambda request: answer
    await results(agent(call("pay"), "Done.", tools=[pay], on_approval=on_approval, mode=mode))
    assert len(calls) == ran


async def test_plan_mode_takes_only_readers() -> None:
    def change() -> str:
        """Change something."""
        return "changed"

    look = tool(change, name="look", reads_only=True)
    refused, looked = await results(agent([*call("change"), *call("look")], "Done.", tools=[change, look], mode="plan"))
    assert refused[0]
    assert "plan mode" in refused[1].lower()
    assert looked == (False, "changed")


async def test_approval_that_fails_denies() -> None:
    def broken(arguments: dict[str, Any]) -> bool:
        raise KeyError("oops")

    @tool(approval=broken)
    def pay() -> str:
        """Pay."""
        return "paid"

    [(is_error, text)] = await results(agent(call("pay"), "Done.", tools=[pay]))
    assert is_error
    assert text != "paid"


@pytest.mark.parametrize("options", [{"timeout_s": 0}, {"retries": -1}, {"approval": results}])
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        tool(name="named", description="A tool.", **options)(lambda: "")


async def test_steered_message_reaches_the_model_in_the_run() -> None:
    def steer() -> str:
        """Steer."""
        assert ours.steer("Rather the other one.")
        return "steered"

    ours = agent(call("steer"), "Done.", tools=[steer])
    assert not ours.steer("Too early.")
    async with ours:
        result = await ours.run("go")
    assert "Rather the other one." in [message.text for message in result.messages]
    assert result.answer == "Done."


async def test_thinking_level_is_checked() -> None:
    with pytest.raises(UsageError, match="thinking"):
        await agent("never sent", thinking="much").run("go")
    async with agent("Fine.", thinking="high") as ours:
        assert (await ours.run("go")).output == "Fine."
