"""Filters the keys of a question: keys typed before it could be read, and pastes, are not answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from wolo.frontends.terminal.display.line_prompt import READING_S

QUIET_S = 0.25
"""Pause in typing after which keys count; who still types has not seen the question."""
BURST_S = 0.03
"""Keys that follow each other faster are one burst, such as an unmarked paste."""
PASTE_S = 0.05
"""Keys this soon after a paste belong to it, such as its last line end."""


class KeyGuard:
    def __init__(self, on_keys: Callable[[list[str]], None], on_ready: Callable[[], None]) -> None:
        """`on_keys` gets each burst, mostly one key; `on_ready` is called when keys begin to count."""
        self._on_keys, self._on_ready = on_keys, on_ready
        self._ready_at = float("inf")
        self._burst: list[str] = []
        self._due: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Call it when the question is visible."""
        self._ready_at = time.monotonic() + READING_S
        self._wait_until_ready()

    @property
    def ignores_keys(self) -> bool:
        return time.monotonic() < self._ready_at

    def handle_key(self, key: str) -> None:
        if self.ignores_keys:
            self.ignore_for(QUIET_S)
            return
        self._burst.append(key)
        self._after(BURST_S, self._end_burst)

    def ignore_for(self, wait_s: float) -> None:
        self._ready_at = max(self._ready_at, time.monotonic() + wait_s)
        self._wait_until_ready()

    def close(self) -> None:
        if self._due is not None:
            self._due.cancel()

    def _end_burst(self) -> None:
        keys, self._burst = self._burst, []
        self._on_keys(keys)

    def _wait_until_ready(self) -> None:
        left_s = self._ready_at - time.monotonic()
        if left_s > 0:
            self._after(left_s, self._wait_until_ready)
        else:
            self._on_ready()

    def _after(self, wait_s: float, act: Callable[[], None]) -> None:
        self.close()
        self._due = asyncio.get_running_loop().call_later(wait_s, act)
