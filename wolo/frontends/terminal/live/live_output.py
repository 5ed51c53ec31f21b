"""Output while the live region is shown: printed lines go above it, the status of running work stands in it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from wolo.agent.events import Event
from wolo.frontends.terminal.display.activity import UnderWay, Words
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.frontends.terminal.live.component import Painter, Row

TICK_S = 1.0
LEAST_BELOW = 2
"""Rows of the input line and the status bar."""


class RegionOutput(Stdout):
    """Replaces `Stdout` while the region is shown."""

    def __init__(self, region: Painter) -> None:
        super().__init__()
        self._region = region

    def write(self, text: str) -> int:
        self._region.write(text)
        return len(text)

    def flush(self) -> None:
        """The region collects what is printed."""


class ActivityView:
    """Replaces `StatusLine` while the region is shown: running work with the newest lines of its output."""

    is_alive = True
    most_rows = 5
    least_window_rows = 0

    def __init__(self, region: Painter, state: TerminalState) -> None:
        self._region, self._state = region, state
        self._under_way = UnderWay()
        self._ticking: asyncio.TimerHandle | None = None

    def render(self, width: int) -> Sequence[Row]:
        rows = max(min(self.most_rows, self._region.rows - LEAST_BELOW), 1)
        lines = self._under_way.lines(width, rows=rows, aside=self._state.alongside, hint=" · Esc stops")
        return [[("class:dim", line)] for line in lines]

    def on_event(self, event: Event) -> None:
        """The screen reports running work by the methods below."""

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
        self._state.unfinished = line
        self._changed()

    def hold(self, held: bool) -> None: ...
    def hide(self) -> None: ...
    def pause(self) -> None: ...

    def stop(self) -> None:
        self._under_way.end()
        self._state.unfinished = ""
        self._changed()

    def _changed(self) -> None:
        """Repaints, and once a second while something runs."""
        self._region.paint()
        if self._ticking is None and not self._under_way.is_over:
            self._ticking = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._ticking = None
        if not self._under_way.is_over:
            self._changed()
