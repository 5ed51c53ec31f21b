"""The brake: what it cancels, what it lets come to its end, and what no longer begins."""

from __future__ import annotations

import asyncio

import pytest

from wolo.agent.cancellation import Brake, Stopped, outlast


async def test_a_pull_cancels_every_step_that_runs_and_none_begins_after_it() -> None:
    brake, begun, ended = Brake(), asyncio.Event(), list[str]()

    async def work(name: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    steps = [asyncio.create_task(brake.step(work(name))) for name in "ab"]
    await begun.wait()
    await asyncio.sleep(0)
    brake.pull("interrupted")
    assert [type(result) for result in await asyncio.gather(*steps, return_exceptions=True)] == [Stopped, Stopped]
    assert sorted(ended) == ["a", "b"]
    with pytest.raises(Stopped):
        await brake.step(work("c"))
    assert sorted(ended) == ["a", "b"]
    assert brake.cause == "interrupted"


async def test_a_second_pull_leaves_the_cleaning_up_alone() -> None:
    brake, cleaning, cleaned = Brake(), asyncio.Event(), asyncio.Event()

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            for _ in range(5):
                await asyncio.sleep(0)
            cleaned.set()
        return "never"

    step = asyncio.create_task(brake.step(work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    brake.pull("max_seconds")
    await cleaning.wait()
    brake.pull("interrupted")
    with pytest.raises(Stopped):
        await step
    assert cleaned.is_set()
    assert brake.cause == "max_seconds", "the first cause stays"


async def test_work_that_catches_the_cancellation_gives_its_result() -> None:
    brake = Brake()

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "half"
        return "never"

    step = asyncio.create_task(brake.step(work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    brake.pull("interrupted")
    assert await step == "half"


async def test_a_step_that_has_ended_is_cancelled_no_more() -> None:
    brake, done = Brake(), asyncio.Event()

    async def quick() -> str:
        return "done"

    assert await brake.step(quick()) == "done"

    async def keeps_its_books() -> None:
        await brake.step(quick())
        brake.pull("interrupted")
        await asyncio.sleep(0)
        done.set()

    await asyncio.create_task(keeps_its_books())
    assert done.is_set()


async def test_a_cancellation_from_elsewhere_is_no_stop() -> None:
    brake = Brake()
    step = asyncio.create_task(brake.step(asyncio.Event().wait()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert brake.cause is None


async def test_whoever_cancels_the_waiting_pulls_the_brake_also_twice() -> None:
    brake, cleaning = Brake(), asyncio.Event()
    books: list[str] = []

    async def turn() -> None:
        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cleaning.set()
                await asyncio.sleep(0)
                books.append("cleaned up")

        try:
            await brake.step(work())
        except Stopped:
            await asyncio.sleep(0)
            books.append("kept")

    async def person() -> None:
        await outlast(asyncio.create_task(turn()), brake)
        books.append("told")

    waiting = asyncio.create_task(person())
    for _ in range(3):
        await asyncio.sleep(0)
    waiting.cancel()
    await cleaning.wait()
    waiting.cancel()
    await waiting
    assert books == ["cleaned up", "kept", "told"]
    assert brake.cause == "interrupted"
    assert waiting.cancelling() == 0
