"""The cancellation: what it cancels, what it lets come to its end, and what no longer begins."""

from __future__ import annotations

import asyncio

import pytest

from wolo.agent.cancellation import Cancellation, Cancelled, wait_for_clean_end


async def test_pull_cancels_running_steps_and_prevents_later_ones() -> None:
    cancellation, begun, ended = Cancellation(), asyncio.Event(), list[str]()

    async def work(name: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    steps = [asyncio.create_task(cancellation.run(work(name))) for name in "ab"]
    await begun.wait()
    await asyncio.sleep(0)
    cancellation.cancel("interrupted")
    assert [type(result) for result in await asyncio.gather(*steps, return_exceptions=True)] == [Cancelled, Cancelled]
    assert sorted(ended) == ["a", "b"]
    with pytest.raises(Cancelled):
        await cancellation.run(work("c"))
    assert sorted(ended) == ["a", "b"]
    assert cancellation.cause == "interrupted"


async def test_a_second_pull_leaves_the_cleaning_up_alone() -> None:
    cancellation, cleaning, cleaned = Cancellation(), asyncio.Event(), asyncio.Event()

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            for _ in range(5):
                await asyncio.sleep(0)
            cleaned.set()
        return "never"

    step = asyncio.create_task(cancellation.run(work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    cancellation.cancel("max_seconds")
    await cleaning.wait()
    cancellation.cancel("interrupted")
    with pytest.raises(Cancelled):
        await step
    assert cleaned.is_set()
    assert cancellation.cause == "max_seconds", "the first cause stays"


async def test_work_that_catches_the_cancellation_gives_its_result() -> None:
    cancellation = Cancellation()

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "half"
        return "never"

    step = asyncio.create_task(cancellation.run(work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    cancellation.cancel("interrupted")
    assert await step == "half"


async def test_ended_step_is_cancelled_no_more() -> None:
    cancellation, done = Cancellation(), asyncio.Event()

    async def quick() -> str:
        return "done"

    assert await cancellation.run(quick()) == "done"

    async def keeps_its_books() -> None:
        await cancellation.run(quick())
        cancellation.cancel("interrupted")
        await asyncio.sleep(0)
        done.set()

    await asyncio.create_task(keeps_its_books())
    assert done.is_set()


async def test_a_cancellation_from_elsewhere_is_no_stop() -> None:
    cancellation = Cancellation()
    step = asyncio.create_task(cancellation.run(asyncio.Event().wait()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert cancellation.cause is None


async def test_cancelling_the_wait_pulls_the_brake_twice_too() -> None:
    cancellation, cleaning = Cancellation(), asyncio.Event()
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
            await cancellation.run(work())
        except Cancelled:
            await asyncio.sleep(0)
            books.append("kept")

    async def person() -> None:
        await wait_for_clean_end(asyncio.create_task(turn()), cancellation)
        books.append("told")

    waiting = asyncio.create_task(person())
    for _ in range(3):
        await asyncio.sleep(0)
    waiting.cancel()
    await cleaning.wait()
    waiting.cancel()
    await waiting
    assert books == ["cleaned up", "kept", "told"]
    assert cancellation.cause == "interrupted"
    assert waiting.cancelling() == 0
