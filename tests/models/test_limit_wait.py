"""Which limits of a prompt are waited for, and how long, by a clock of the test."""

from __future__ import annotations

from datetime import UTC, datetime

from wolo.errors import ProviderError, RateLimited
from wolo.models.limit_wait import LimitPolicy, LimitWait, PromptWaits

NOW = 1_800_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def limit(after_s: float) -> ProviderError:
    return RateLimited("Limit reached.", resets_at=datetime.fromtimestamp(NOW + after_s, UTC).isoformat())


def waits(clock: Clock, windows: int = 1, most_s: float = 1e6) -> PromptWaits:
    return PromptWaits(LimitWait(LimitPolicy(windows, most_s), sleep=clock.sleep, clock=lambda: clock.now))


async def test_each_prompt_waits_for_its_windows_only() -> None:
    clock = Clock()
    prompt = waits(clock)
    assert prompt.wait_s(limit(100), "a") == 100
    assert await prompt.wait(100) is None
    assert clock.now >= NOW + 100
    assert prompt.wait_s(limit(500), "a") is None
    assert prompt.wait_s(limit(500), "b") == NOW + 500 - clock.now


async def test_all_waits_of_a_prompt_have_one_maximum() -> None:
    clock = Clock()
    prompt = waits(clock, windows=9, most_s=150)
    assert prompt.wait_s(limit(100), "a") == 100
    await prompt.wait(100)
    error = limit(200)
    assert prompt.wait_s(error, "a") is None
    assert "later than wolo waits (2:30)" in error.hint


def test_end_just_past_is_asked_again_six_times() -> None:
    prompt = waits(Clock())
    found = [prompt.wait_s(limit(-5), "a") for _ in range(7)]
    assert found[:6] == [10.0] * 6
    assert found[6] is None
