"""Retry rules: which errors are retried, how often and when; and the limiters of requests with one key."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Meta, Struct

from wolo.errors import LONGEST_WAIT_S, ProviderError, QuotaExhausted, RateLimited, Unreachable
from wolo.formats.tolerant_json import read_fields

if TYPE_CHECKING:
    from wolo.messages.message import Usage
    from wolo.models.protocol import Listener

ATTENDED_TOTAL_S = 600.0
HEADLESS_TOTAL_S = 60.0
LONGEST_RESET_S = 8 * 86400.0
"""Windows of subscriptions last a week at most; a later end is a mistake or not worth waiting for."""
LEAST_WAIT_S = 0.1
"""Stop when less of the total time is left."""
JITTER = 0.25
"""Waits are shortened randomly by up to this share, to spread requests."""


class RetrySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`retry.*` of the settings."""

    tries: Annotated[int, Meta(ge=1)] | None = None
    """Maximum attempts; none: by kind of error."""
    total_s: Annotated[float, Meta(ge=0)] | None = None
    """Maximum time from the first failure to the last attempt; none: 600 when attended, 60 headless."""
    idle_s: Annotated[float, Meta(ge=0)] | None = None
    """Maximum silence within a response, 0 for no limit; none: 300, or no limit for servers on this machine."""
    first_byte_s: Annotated[float, Meta(ge=0)] | None = None
    """Maximum silence before the first event, 0 for no limit; none: 120 but at most `idle_s`; on this machine `idle_s`."""
    resume_windows: Annotated[int, Meta(ge=0)] | None = None
    """Number of limits with a known end that one prompt waits for, 0 for never; none: 1 when attended, any number in a batch."""
    wait_for_reset_s: Annotated[float, Meta(ge=0)] | None = None
    """Maximum time that one prompt waits for limits to end, however many; none: as `resume_windows` says."""


class RetryRule(Struct, frozen=True):
    tries: int
    """0: until the total time is used up."""
    waits_s: tuple[float, ...]
    """Waits after each failure; the last one repeats."""


NO_CONNECTION = RetryRule(0, (0.5, 1, 2, 4, 8, 16, 30))
"""No connection, such as a lost network or a restarting server."""
SERVER_FAILURE = RetryRule(5, (0.5, 1, 2, 4, 8, 16, 30))
"""Broken connections and server errors, usually brief."""
RATE_LIMIT = RetryRule(8, (2, 5, 15, 30, 60, 90, 120))
"""Rate limits, with windows of minutes."""
UNCLEAR = RetryRule(3, (0.5, 1))
"""Unexplained errors, which usually repeat."""
BAD_OUTPUT = RetryRule(2, (0.5,))
"""Invalid model output; a second attempt may succeed, a third rarely."""
NO_RETRY = RetryRule(1, ())
"""A retry would fail the same way."""

RATE_LIMIT_CODES = frozenset({"1234", "1302", "1303", "1305", "1312"})
"""GLM codes for overload, with any HTTP status."""
UNCLEAR_CODES = frozenset({"1200", "1230", "tool_use_failed"})
BAD_OUTPUT_CODES = frozenset(
    {
        *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"),
        *("MALFORMED_RESPONSE", "OTHER", "IMAGE_OTHER", "NO_IMAGE"),
    }
)
"""Gemini finish reasons for invalid output."""


def total_s(settings: RetrySettings, *, attended: bool) -> float:
    """Maximum time from the first failure to the last attempt. `attended`: a user can stop it."""
    if settings.total_s is not None:
        return settings.total_s
    return ATTENDED_TOTAL_S if attended else HEADLESS_TOTAL_S


def rule_for(error: ProviderError, *, has_fallback: bool = False) -> RetryRule:
    """With `has_fallback`, do not wait for the network, since another model answers."""
    if not error.retryable or (error.delay_s or 0) > LONGEST_WAIT_S:
        return NO_RETRY
    if isinstance(error, Unreachable) and not has_fallback:
        return NO_CONNECTION
    if isinstance(error, RateLimited) or error.code in RATE_LIMIT_CODES:
        return RATE_LIMIT
    if error.code in BAD_OUTPUT_CODES:
        return BAD_OUTPUT
    return UNCLEAR if error.code in UNCLEAR_CODES else SERVER_FAILURE


def tries_for(error: ProviderError, settings: RetrySettings, *, has_fallback: bool = False) -> int:
    """0: until the total time is used up."""
    tries = rule_for(error, has_fallback=has_fallback).tries
    return tries if tries == NO_RETRY.tries or settings.tries is None else settings.tries


def next_wait_s(
    error: ProviderError,
    attempt: int,
    spent_s: float,
    settings: RetrySettings,
    random: Callable[[], float],
    *,
    attended: bool = False,
    has_fallback: bool = False,
) -> float | None:
    """Seconds before attempt + 1; None: give up. `spent_s` counts from the first failure."""
    if (tries := tries_for(error, settings, has_fallback=has_fallback)) and attempt >= tries:
        return None
    asked_s = error.delay_s or 0
    waits_s = rule_for(error, has_fallback=has_fallback).waits_s
    wait_s = asked_s if asked_s > 0 else waits_s[min(attempt, len(waits_s)) - 1] * (1 - JITTER * random())
    left_s = total_s(settings, attended=attended) - spent_s
    if not tries and left_s >= LEAST_WAIT_S:
        return min(wait_s, left_s)
    return None if wait_s > left_s else wait_s


def system_random() -> float:
    """Uniform in [0, 1), without importing `random` at start-up."""
    return int.from_bytes(os.urandom(4)) / 2**32


LIMITER_VARIABLE = "WOLO_LIMITER"
"""Names the socket of the limiter that all agents of a batch share."""
MOST_AT_ONCE = 8
"""Requests with one key at once."""


class KeyLimiter:
    """Bounds the requests with one key, over all agents of the process.

    After a rate limit all wait as long as the request that met it, and half as many run at once; each answer admits one more.
    """

    def __init__(self) -> None:
        self._most = MOST_AT_ONCE
        self._active = 0
        self._not_before = 0.0
        self._queue: deque[asyncio.Future[None]] = deque()

    def wait_s(self, now: float) -> float:
        return max(self._not_before - now, 0.0)

    async def enter(self, sleep: Callable[[float], Awaitable[None]], wait_s: float) -> None:
        if wait_s > 0:
            await sleep(wait_s)
        while self._active >= self._most:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()
                raise
            finally:
                if turn in self._queue:
                    self._queue.remove(turn)
        self._active += 1

    def leave(self) -> None:
        self._active -= 1
        self._wake()

    def on_answer(self) -> None:
        self._most = min(self._most + 1, MOST_AT_ONCE)

    def on_rate_limit(self, now: float, wait_s: float) -> None:
        self._most = max(min(self._most, self._active) // 2, 1)
        self._not_before = max(self._not_before, now + wait_s)

    def _wake(self) -> None:
        for turn in self._queue:
            if not turn.done():
                turn.set_result(None)
                return


_LIMITERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], KeyLimiter]] = WeakKeyDictionary()


def limiter_of(base_url: str, api_key: str) -> KeyLimiter:
    """The one of this key in this event loop."""
    return _LIMITERS.setdefault(asyncio.get_running_loop(), {}).setdefault((base_url, api_key), KeyLimiter())


_LONGEST_SLEEP_S = 5.0
_ANSWER_S = 60.0
_SHOWN_FROM_S = 1.0
_LIMIT_HEADERS = {
    "requests": ("x-ratelimit-limit-requests", "anthropic-ratelimit-requests-limit"),
    "tokens": ("x-ratelimit-limit-tokens", "anthropic-ratelimit-tokens-limit"),
}


class SharedLimiter:
    """Asks the worker of a batch before each request, so that all processes with a key stay under its limits.

    Without an answer of the worker, requests are sent as if there were no batch.
    """

    def __init__(self, path: str, base_url: str, api_key: str, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._path, self._sleep = path, sleep
        self._key = hashlib.sha256(f"{base_url}\0{api_key}".encode()).hexdigest()[:16]
        self._limits: dict[str, float] = {}

    async def enter(self, tokens: int, listener: Listener) -> None:
        """Waits until a request of about so many tokens may be sent."""
        is_shown = False
        while wait_s := (await self._ask("acquire", tokens=tokens)).get("wait_s", 0.0):
            if wait_s > LONGEST_WAIT_S and not is_shown:
                is_shown = True
                slept = QuotaExhausted("Another task of the batch has met the limit of this key.", temporary=True)
                await listener.on_attempt_failed(slept, 1, 0, wait_s)
            if wait_s >= _SHOWN_FROM_S and not is_shown:
                is_shown = True
                await listener.on_notice(f"Waiting {wait_s:.0f} s: the tasks of a batch share the limit of the key.", "info")
            await self._sleep(min(wait_s, _LONGEST_SLEEP_S))

    async def report_usage(self, usage: Usage | None, tokens: int) -> None:
        used = usage.context_tokens if usage else tokens
        await self._ask("answered", more_tokens=used - tokens, **self._limits)

    def learn(self, headers: Mapping[str, str]) -> None:
        """Notes the limits a minute that a refusal names."""
        for name, spellings in _LIMIT_HEADERS.items():
            for value in (headers.get(each, "") for each in spellings):
                if value.isdecimal() and int(value):
                    self._limits[name] = float(value)

    async def report_refusal(self, wait_s: float) -> None:
        await self._ask("refused", wait_s=wait_s, **self._limits)

    async def report_end(self, wait_s: float) -> None:
        """The quota of the key is used up, for so long: it sleeps for all tasks of the batch."""
        await self._ask("used_up", wait_s=wait_s)

    async def _ask(self, what: str, **values: float) -> dict[str, Any]:
        try:
            async with asyncio.timeout(_ANSWER_S):
                reader, writer = await asyncio.open_unix_connection(self._path)
                try:
                    writer.write(msgspec.json.encode({"do": what, "key": self._key, **values}) + b"\n")
                    line = await reader.readline()
                finally:
                    writer.close()
            return read_fields(line)
        except (OSError, TimeoutError):
            return {}
