"""One limiter for all requests with a key: how many run at once, and who waits after a rate limit."""

from __future__ import annotations

import asyncio

from wolo.models.retry import MOST_AT_ONCE, KeyLimiter, limiter_of


async def no_sleep(seconds: float) -> None:
    raise AssertionError(seconds)


async def entered(limiter: KeyLimiter, count: int) -> list[asyncio.Task[None]]:
    tasks = [asyncio.ensure_future(limiter.enter(no_sleep, 0.0)) for _ in range(count)]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_requests_of_a_key_are_bounded_and_wait() -> None:
    limiter = KeyLimiter()
    tasks = await entered(limiter, MOST_AT_ONCE + 2)
    assert [task.done() for task in tasks] == [True] * MOST_AT_ONCE + [False] * 2
    tasks[-2].cancel()
    limiter.leave()
    await asyncio.wait({tasks[-1]}, timeout=60)
    assert tasks[-1].done()


async def test_rate_limit_delays_all_and_reduces_parallel_requests() -> None:
    limiter, waits = KeyLimiter(), []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    await entered(limiter, 4)
    limiter.on_rate_limit(100.0, 5.0)
    for _ in range(4):
        limiter.leave()
    assert limiter.wait_s(102.0) == 3.0
    await limiter.enter(sleep, limiter.wait_s(102.0))
    assert waits == [3.0]
    tasks = await entered(limiter, 2)
    assert [task.done() for task in tasks] == [True, False]
    limiter.on_answer()
    limiter.leave()
    await asyncio.wait({tasks[1]}, timeout=60)
    assert limiter.wait_s(106.0) == 0.0


async def test_each_key_has_its_own() -> None:
    assert limiter_of("http://a", "k") is limiter_of("http://a", "k")
    assert limiter_of("http://a", "k") is not limiter_of("http://a", "other")
