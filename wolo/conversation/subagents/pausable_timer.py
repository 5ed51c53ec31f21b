"""A clock that stands still while a person is asked: what they take to answer is nobody else's time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class PausableTimer:
    def __init__(self, seconds: float, ring: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.rang = False
        self._left_s = seconds
        self._ring = ring
        self._clock = clock
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._held = 0
        """How many wait for a person."""

    def start(self) -> None:
        self._since = self._clock()
        self._timer = asyncio.get_running_loop().call_later(self._left_s, self._rings)

    def stop(self) -> None:
        if self._timer is not None:
            self._left_s = max(self._left_s - (self._clock() - self._since), 0.0)
            self._timer.cancel()
            self._timer = None

    @contextmanager
    def held(self) -> Iterator[None]:
        self._held += 1
        self.stop()
        try:
            yield
        finally:
            self._held -= 1
            if not self._held and not self.rang:
                self.start()

    def _rings(self) -> None:
        self._timer = None
        self.rang = True
        self._ring()
