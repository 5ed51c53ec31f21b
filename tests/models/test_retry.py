"""The table of retries."""

from __future__ import annotations

import msgspec
import pytest

from wolo.errors import AuthError, BadRequest, ContextOverflow, ProviderError, RateLimited, Unavailable, Unreachable
from wolo.models.retry import JITTER, RetrySettings, next_wait_s, system_random, total_s, tries_for

AT_KEYBOARD = RetrySettings(total_s=600)


def waits(error: ProviderError, settings: RetrySettings | None = None, random: float = 0.0) -> list[float]:
    """All the waits until it gives up, for the same error again and again."""
    found: list[float] = []
    while (wait := next_wait_s(error, len(found) + 1, sum(found), settings or RetrySettings(), lambda: random)) is not None:
        found.append(wait)
    return found


def test_a_broken_connection_is_tried_five_times() -> None:
    assert waits(Unavailable("reset")) == [0.5, 1, 2, 4]


def test_network_gap_is_waited_until_total_time() -> None:
    assert waits(Unreachable("refused")) == [0.5, 1, 2, 4, 8, 16, 28.5]
    assert sum(waits(Unreachable("refused"), RetrySettings(total_s=600))) == 600
    assert max(waits(Unreachable("refused"), RetrySettings(total_s=600))) == 30
    assert waits(Unreachable("refused"), RetrySettings(tries=2)) == [0.5]
    assert waits(Unreachable("refused"), RetrySettings(total_s=0)) == []
    assert tries_for(Unreachable("refused"), RetrySettings()) == 0


def test_nobody_waits_while_another_model_could_answer() -> None:
    assert next_wait_s(Unreachable("refused"), 5, 7.5, RetrySettings(), lambda: 0.0, has_fallback=True) is None
    assert tries_for(Unreachable("refused"), RetrySettings(), has_fallback=True) == 5


def test_keyboard_waits_ten_minutes_and_headless_one() -> None:
    assert (total_s(RetrySettings(), attended=True), total_s(RetrySettings(), attended=False)) == (600, 60)
    assert (total_s(RetrySettings(total_s=5), attended=True), total_s(RetrySettings(total_s=5), attended=False)) == (5, 5)


def test_a_crowded_provider_is_given_minutes() -> None:
    assert waits(RateLimited("slow down"), AT_KEYBOARD) == [2, 5, 15, 30, 60, 90, 120]


@pytest.mark.parametrize("code", ["1302", "1303", "1305", "1312", "1234"])
def test_overload_codes_get_the_long_retry_ladder(code: str) -> None:
    assert len(waits(Unavailable("busy", code=code), AT_KEYBOARD)) == 7


@pytest.mark.parametrize("code", ["1200", "1230"])
def test_failure_without_reason_is_retried_twice(code: str) -> None:
    assert waits(Unavailable("call failed", code=code)) == [0.5, 1]


@pytest.mark.parametrize("error", [AuthError("no"), BadRequest("no"), ContextOverflow("no")])
def test_permanent_error_is_tried_once(error: ProviderError) -> None:
    assert waits(error) == []
    assert tries_for(error, RetrySettings(tries=9)) == 1


@pytest.mark.parametrize(("asked_s", "expected"), [(2.0, 2.0), (120.0, 120.0), (0.0, 2.0), (-1.0, 2.0), (None, 2.0)])
def test_the_provider_may_say_how_long_to_wait(asked_s: float | None, expected: float) -> None:
    assert waits(RateLimited("slow down", delay_s=asked_s), AT_KEYBOARD)[0] == expected


@pytest.mark.parametrize("error", [RateLimited("no", delay_s=121.0), Unavailable("no", delay_s=86_400.0)])
def test_wait_over_two_minutes_is_left_to_person(error: ProviderError) -> None:
    assert waits(error) == []


def test_jitter_shortens_but_never_what_was_asked() -> None:
    assert waits(Unavailable("reset"), random=1.0)[0] == 0.5 * (1 - JITTER)
    assert waits(RateLimited("slow", delay_s=3.0), random=1.0)[0] == 3.0


def test_all_waits_together_stay_within_the_total() -> None:
    assert waits(RateLimited("slow"), RetrySettings(total_s=60)) == [2, 5, 15, 30]
    assert waits(Unavailable("reset"), RetrySettings(total_s=0)) == []
    assert sum(waits(Unavailable("reset"), RetrySettings(tries=1000, total_s=600))) <= 600


def test_settings_say_how_often() -> None:
    assert waits(Unavailable("reset"), RetrySettings(tries=2)) == [0.5]
    assert waits(Unavailable("reset"), RetrySettings(tries=1)) == []


@pytest.mark.parametrize("wrong", [{"tries": 0}, {"total_s": -1}, {"idle_s": -1}, {"trys": 3}])
def test_impossible_settings_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, RetrySettings)


def test_chance_lies_between_zero_and_one() -> None:
    assert all(0 <= system_random() < 1 for _ in range(100))
