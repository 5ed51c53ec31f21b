"""Whether somebody looks at the terminal: it says so itself, or the keyboard tells."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Protocol

FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"
"""What a terminal sends when it comes to the front and when it leaves it, once it is told to."""
REPORT, NO_REPORT = "\x1b[?1004h", "\x1b[?1004l"


class Sender(Protocol):
    def send(self, sequence: str) -> None:
        """Writes a control sequence to the terminal."""


class Presence:
    def __init__(self, sender: Sender | None) -> None:
        """Without a `sender` the terminal is never asked to report."""
        self._sender = sender
        self._is_in_front: bool | None = None
        """None: the terminal has not said, and many never do."""
        self._pressed_at = time.monotonic()
        self._changed = asyncio.Event()

    def report(self, wanted: bool) -> None:
        """While the keyboard is ours, and no longer."""
        if self._sender is not None:
            self._sender.send(REPORT if wanted else NO_REPORT)
        self._is_in_front = None

    def hear(self, data: str) -> bool:
        """True for what the terminal says of itself; anything else was pressed by a person, who is here then."""
        if is_report := data in (FOCUS_IN, FOCUS_OUT):
            self._is_in_front = data == FOCUS_IN
        else:
            self._pressed_at = time.monotonic()
            self._is_in_front = True if self._is_in_front is not None else None
        self._changed.set()
        return is_report

    def is_away(self, after_s: float) -> bool:
        """Where the terminal does not say: nothing was pressed for so long."""
        if self._is_in_front is not None:
            return not self._is_in_front
        return time.monotonic() - self._pressed_at >= after_s

    async def until_away(self, after_s: float) -> None:
        while not self.is_away(after_s):
            self._changed.clear()
            left_s = None if self._is_in_front else self._pressed_at + after_s - time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()
