"""/loop: sends a prompt again and again while the session is open."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from wolo.errors import UsageError

LEAST_S = 1.0
USAGE = "/loop 10m PROMPT, /loop stop"
_INTERVAL = r"(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+)s)?"


class PromptLoop:
    def __init__(self, send: Callable[[str], None]) -> None:
        """`send` gets the prompt each time, also while a turn runs."""
        self._send = send
        self._timer: asyncio.TimerHandle | None = None
        self._interval_s = 0.0
        self._prompt = ""

    def start(self, interval_s: float, prompt: str) -> None:
        """Sends the prompt now, and then at every interval. Replaces the loop before."""
        self.stop()
        self._interval_s, self._prompt = interval_s, prompt
        self._run()

    def stop(self) -> bool:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        return timer is not None

    def describe(self) -> str:
        if self._timer is None:
            return f"No loop is running: {USAGE}"
        left = max(self._timer.when() - asyncio.get_running_loop().time(), 0)
        return f"Every {self._interval_s:g} s, next in {left:.0f} s: {self._prompt}"

    def _run(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._run)
        self._send(self._prompt)


def read_interval(text: str) -> float:
    """Seconds of `30s`, `10m` or `1h30m`. Raises UsageError."""
    match = re.fullmatch(_INTERVAL, text.lower())
    hours, minutes, seconds = (int(each or 0) for each in match.groups()) if match else (0, 0, 0)
    interval_s = hours * 3600 + minutes * 60 + seconds
    if interval_s < LEAST_S:
        raise UsageError(f"{text} is no interval.", hint=f"30s, 10m or 1h30m: {USAGE}")
    return float(interval_s)
