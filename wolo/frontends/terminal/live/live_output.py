"""What is printed while the foot stands: whole lines go above it, the beginning of a line waits in it until the rest has come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wolo.frontends.terminal.display.activity import UnderWay, Words
from wolo.frontends.terminal.io.stdout import Stdout
from wolo.frontends.terminal.live.live_region import ACTIVITY_ROWS, Foot

TICK_S = 1.0
LEAST_BELOW = 2
"""Rows: where one writes, and the facts."""


class Paper(Stdout):
    """Takes the place of `Stdout` for whoever draws."""

    def __init__(self, foot: Foot) -> None:
        super().__init__()
        self._foot = foot

    def write(self, text: str) -> int:
        lines, newline, rest = text.rpartition("\n")
        if newline:
            self._foot.print(f"{self._foot.tail}{lines}\n")
            self._foot.tail = rest
        else:
            self._foot.tail += rest
        self._foot.paint()
        return len(text)

    def flush(self) -> None:
        """The foot gathers what is printed."""


class Activity:
    """Takes the place of `StatusLine`: what is under way stands in the foot, with the newest lines of what runs."""

    is_alive = True

    def __init__(self, foot: Foot) -> None:
        self.aside: Callable[[], str] = str
        self._foot = foot
        self._under_way = UnderWay()
        self._foot.activity = self._lines
        self._ticking: asyncio.TimerHandle | None = None

    def start(self, words: Words) -> None:
        self._under_way.begin(words)
        self._changed()

    def say(self, words: Words) -> None:
        self._under_way.say(words)
        self._changed()

    def heard(self) -> None:
        self._under_way.heard()

    def begin_call(self, id: str, words: str) -> None:
        self._under_way.begin_call(id, words)
        self._changed()

    def hear_call(self, id: str, printed: str) -> None:
        self._under_way.hear_call(id, printed)
        self._changed()

    def end_call(self, id: str) -> None:
        self._under_way.end_call(id)
        self._changed()

    def unfinished(self, line: str) -> None:
        self._foot.unfinished = line
        self._changed()

    def hold(self, held: bool) -> None:
        """Nothing is in its way."""

    def hide(self) -> None:
        """It is in nobody's way."""

    def pause(self) -> None:
        """The foot vanishes as a whole."""

    def stop(self) -> None:
        self._under_way.end()
        self._foot.unfinished = ""
        self._changed()

    def _changed(self) -> None:
        """While something is under way its seconds are painted, too."""
        self._foot.paint()
        if self._ticking is None and not self._under_way.is_over:
            self._ticking = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._ticking = None
        if not self._under_way.is_over:
            self._changed()

    def _lines(self, columns: int) -> list[str]:
        rows = max(min(ACTIVITY_ROWS, self._foot.rows - LEAST_BELOW), 1)
        return self._under_way.lines(columns, rows=rows, aside=self.aside(), hint=" · Esc stops")
