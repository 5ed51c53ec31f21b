"""Waits until the limit of a provider ends, and asks again."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import datetime

from msgspec import Struct

from wolo.errors import ProviderError, RateLimited
from wolo.formats.format import ThinkingLevel
from wolo.messages.message import Message
from wolo.models.protocol import Listener, ModelClient, ModelQuestion
from wolo.models.provider import ModelChoice
from wolo.models.retry import LONGEST_RESET_S, RetrySettings

_MARGIN_S = 1.0
"""Ends are stated in whole seconds."""
_LOOK_EVERY_S = 20.0
"""The clock is read so often: a suspended machine continues late by no more."""
_DAY_S = 86400
_LATE_S, _LATE_WAIT_S, _MOST_LATE = 60.0, 10.0, 6
"""An end so little in the past is one of another clock: it is asked again some times."""


class LimitPolicy(Struct, frozen=True):
    windows: int
    """How many limits of one prompt are waited for; 0: none."""
    most_s: float
    """Seconds in all for one prompt."""


def policy_of(settings: RetrySettings, *, attended: bool, in_batch: bool) -> LimitPolicy:
    """In a batch, and with `wait_for_reset_s`, any number of limits are waited for."""
    if settings.wait_for_reset_s is not None:
        return LimitPolicy(sys.maxsize, settings.wait_for_reset_s)
    default = sys.maxsize if in_batch else int(attended)
    return LimitPolicy(default if settings.resume_windows is None else settings.resume_windows, LONGEST_RESET_S)


def limit_end(error: ProviderError, now: float) -> float | None:
    """POSIX time at which the limit that `error` reports ends, perhaps in the past; None: it is no limit, or has no known end."""
    if error.exit_code != RateLimited.exit_code:
        return None
    if error.resets_at:
        try:
            return datetime.fromisoformat(error.resets_at).timestamp()
        except (ValueError, OverflowError):
            return None
    return now + error.delay_s if isinstance(error, RateLimited) and error.delay_s else None


def clock_time(at: float, now: float) -> str:
    """Local time: `14:22`, with the day if it is not today."""
    stated, today = datetime.fromtimestamp(at), datetime.fromtimestamp(now)
    if stated.date() == today.date():
        return f"{stated:%H:%M}"
    return f"{stated:%a %d %b %H:%M}" if abs(at - now) < LONGEST_RESET_S else f"{stated:%Y-%m-%d}"


def countdown(left_s: float) -> str:
    """`1:59:40`, `0:09`."""
    minutes, rest = divmod(max(int(left_s), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class LimitWait:
    """The waits of a conversation's models; a front end may end them early."""

    def __init__(
        self,
        policy: LimitPolicy,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.policy, self.clock = policy, clock
        self._sleep = sleep
        self.is_waiting = False
        self._is_ended = asyncio.Event()
        self._other: ModelChoice | None = None

    def end(self, other: ModelChoice | None = None) -> None:
        """Asks again now; `other` answers instead until the limit ends."""
        self._other = other
        self._is_ended.set()

    async def until(self, end_at: float) -> bool:
        """False: it was ended early."""
        self._is_ended.clear()
        self._other = None
        self.is_waiting = True
        ended = asyncio.ensure_future(self._is_ended.wait())
        try:
            while (left_s := end_at - self.clock()) > 0 and not ended.done():
                sleeping = asyncio.ensure_future(self._sleep(min(left_s, _LOOK_EVERY_S)))
                try:
                    await asyncio.wait({sleeping, ended}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    sleeping.cancel()
            return not ended.done()
        finally:
            self.is_waiting = False
            ended.cancel()

    def take_other(self) -> ModelChoice | None:
        """The model that the user chose instead, once."""
        other, self._other = self._other, None
        return other


class PromptWaits:
    """Decides for one model client which limits of a prompt are waited for."""

    def __init__(self, wait: LimitWait) -> None:
        self._wait, self.clock = wait, wait.clock
        self._prompt_id = ""
        self._num_windows = self._num_late = 0
        self._waited_s = 0.0

    def wait_s(self, error: ProviderError, prompt_id: str) -> float | None:
        """None: it is no limit, or is not waited for; where its end is the reason, the hint of the error says so."""
        if prompt_id != self._prompt_id:
            self._prompt_id, self._num_windows, self._num_late, self._waited_s = prompt_id, 0, 0, 0.0
        policy, now = self._wait.policy, self.clock()
        if (end_at := limit_end(error, now)) is None:
            return None
        left_s, stated = end_at - now, clock_time(end_at, now)
        if -_LATE_S < left_s <= 0 < policy.windows and self._num_late < _MOST_LATE:
            self._num_late += 1
            return _LATE_WAIT_S
        if self._num_windows >= policy.windows:
            return None
        if left_s <= 0:
            error.hint = f"The provider says that this limit ended at {stated}, which is past: send the prompt again."
        elif self._waited_s + left_s > policy.most_s:
            most = countdown(policy.most_s) if policy.most_s < _DAY_S else f"{policy.most_s / _DAY_S:.0f} days"
            error.hint = f"The limit ends at {stated}, which is later than wolo waits ({most})."
        else:
            return left_s
        return None

    async def wait(self, wait_s: float) -> ModelChoice | None:
        """The model that the user wants instead until then."""
        is_over = await self._wait.until(self.clock() + wait_s + _MARGIN_S)
        if is_over and wait_s != _LATE_WAIT_S:
            self._num_windows, self._waited_s = self._num_windows + 1, self._waited_s + wait_s
        return self._wait.take_other()


class ResumingModelClient:
    """Wraps a client: where a limit has a known end, it waits and asks again, as far as the policy goes."""

    def __init__(self, first: ModelClient, waits: PromptWaits, open_other: Callable[[ModelChoice], ModelClient]) -> None:
        self._first, self._waits, self._open_other = first, waits, open_other
        self._other: ModelClient | None = None
        self._other_until = 0.0
        """POSIX time."""
        self._level: ThinkingLevel | None = None

    @property
    def choice(self) -> ModelChoice:
        return self._current.choice

    @property
    def _current(self) -> ModelClient:
        return self._other if self._other and self._waits.clock() < self._other_until else self._first

    def think(self, level: ThinkingLevel) -> None:
        self._level = level
        for client in filter(None, (self._first, self._other)):
            client.think(level)

    async def ask(self, question: ModelQuestion, listener: Listener) -> Message:
        """Requests without a prompt, such as side questions, do not wait."""
        while True:
            try:
                return await self._current.ask(question, listener)
            except ProviderError as error:
                wait_s = self._waits.wait_s(error, question.prompt_id) if question.prompt_id else None
                if wait_s is None:
                    raise
                failure, end_at = error, self._waits.clock() + wait_s
            await listener.on_attempt_failed(failure, 1, 0, wait_s)
            if (other := await self._waits.wait(wait_s)) is not None:
                if self._other is not None:
                    await self._other.close()
                self._other, self._other_until = self._open_other(other), end_at
                if self._level is not None:
                    self._other.think(self._level)
                await listener.on_replaced(failure, self.choice.label)

    async def close(self) -> None:
        await self._first.close()
        if self._other is not None:
            await self._other.close()
