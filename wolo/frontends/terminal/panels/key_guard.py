"""Which keys are an answer: not those that were under way before the question could be read, and not a paste."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from wolo.frontends.terminal.display.line_prompt import SETTLE_S

QUIET_S = 0.25
"""Whoever goes on typing has not looked up yet."""
BURST_S = 0.03
"""Keys that follow each other faster were not pressed one by one."""
PASTE_S = 0.05
"""What comes so soon after a paste is its last line end."""


class Attention:
    """`heard` is told what was pressed together, mostly one key; `woke` when keys begin to count."""

    def __init__(self, heard: Callable[[list[str]], None], woke: Callable[[], None]) -> None:
        self._heard, self._woke = heard, woke
        self._listens_at = float("inf")
        self._burst: list[str] = []
        self._due: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The question can be seen from now on."""
        self._listens_at = time.monotonic() + SETTLE_S
        self._wake_up()

    @property
    def is_deaf(self) -> bool:
        return time.monotonic() < self._listens_at

    def press(self, key: str) -> None:
        if self.is_deaf:
            self.turn_away(QUIET_S)
            return
        self._burst.append(key)
        self._after(BURST_S, self._settle)

    def turn_away(self, wait_s: float) -> None:
        """What comes so soon belongs to what has just come."""
        self._listens_at = max(self._listens_at, time.monotonic() + wait_s)
        self._wake_up()

    def close(self) -> None:
        if self._due is not None:
            self._due.cancel()

    def _settle(self) -> None:
        keys, self._burst = self._burst, []
        self._heard(keys)

    def _wake_up(self) -> None:
        left_s = self._listens_at - time.monotonic()
        if left_s > 0:
            self._after(left_s, self._wake_up)
        else:
            self._woke()

    def _after(self, wait_s: float, act: Callable[[], None]) -> None:
        self.close()
        self._due = asyncio.get_running_loop().call_later(wait_s, act)
