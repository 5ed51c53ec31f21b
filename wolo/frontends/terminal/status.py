"""The one line that moves: what is going on, for how long, how much has come."""

from __future__ import annotations

import asyncio
import os
import sys
import time

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_TICK_S = 0.1


class StatusLine:
    """Repaints the bottom line in place; everything else is printed above it. Silent where the terminal cannot."""

    def __init__(self) -> None:
        self._alive = os.environ.get("TERM", "dumb") != "dumb" and sys.stdout.isatty()
        self._text = ""
        self._started = 0.0
        self._shown = False
        self._task: asyncio.Task[None] | None = None

    def start(self, text: str) -> None:
        self._text = text
        self._started = time.monotonic()
        if self._alive and self._task is None:
            self._task = asyncio.create_task(self._tick())

    def say(self, text: str) -> None:
        """A new text; the seconds go on counting."""
        self._text = text

    def hide(self) -> None:
        """Before anything else is printed."""
        if self._shown:
            sys.stdout.write("\r\x1b[2K")
            sys.stdout.flush()
            self._shown = False

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self.hide()

    async def _tick(self) -> None:
        frame = 0
        while True:
            await asyncio.sleep(_TICK_S)
            if not self._text:
                continue
            frame = (frame + 1) % len(_FRAMES)
            seconds = int(time.monotonic() - self._started)
            self._paint(f"{_FRAMES[frame]} {self._text} · {seconds} s · Ctrl-C stops")

    def _paint(self, line: str) -> None:
        width = max(os.get_terminal_size(sys.stdout.fileno()).columns - 1, 10)
        dim, normal = ("", "") if os.environ.get("NO_COLOR") else ("\x1b[2m", "\x1b[0m")
        sys.stdout.write(f"\r\x1b[2K{dim}{line[:width]}{normal}")
        sys.stdout.flush()
        self._shown = True
