"""The panel that counts down to the end of a limit."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from rich.text import Text

from wolo.frontends.terminal.panels.panel import Panel, key_hints
from wolo.models.limit_wait import clock_time, countdown


class LimitPanel(Panel[Literal["now", "model", "stop"]]):
    """Esc and Ctrl-D stop; other keys do nothing."""

    def __init__(self, end_at: float) -> None:
        """`end_at` is POSIX time."""
        self._end_at = end_at
        self._ticker: asyncio.TimerHandle | None = None
        super().__init__()

    def open(self) -> None:
        super().open()
        self._tick()

    def content(self) -> list[Text]:
        now = time.time()
        line = Text.assemble((f"limit until {clock_time(self._end_at, now)} ({countdown(self._end_at - now)})", "warning"))
        if self.ignores_keys:
            return [line]
        return [line.append(" · ", "dim").append_text(key_hints(("Enter", "now"), ("m", "other model"), ("Esc", "stop")))]

    def on_ready(self) -> None:
        self.redraw()

    def handle_key(self, key: str) -> None:
        if key == "enter":
            self.resolve("now")
        elif key.lower() == "m":
            self.resolve("model")
        elif key == "end-of-input":
            self.escape()

    def escape(self) -> None:
        self.resolve("stop")

    def close(self) -> None:
        super().close()
        if self._ticker is not None:
            self._ticker.cancel()

    def _tick(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        self._ticker = asyncio.get_running_loop().call_later(1.0, self._tick)
        self.redraw()
