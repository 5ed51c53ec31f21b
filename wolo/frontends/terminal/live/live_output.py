"""Output while the live region is shown: printed lines go above it, the status of running work stands in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wolo.agent.events import Event
from wolo.frontends.terminal.display.activity import FRAMES, Activity, Surface
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.frontends.terminal.live.component import Row

MARKS_FROM_COLUMNS = 39
"""Columns of a component, which are one fewer than those of the window."""
GAP_FROM_ROWS = 16
"""In a lower window no empty row separates running work from the output above."""
LEAST_BELOW = 2
"""Rows of the input line and the status bar."""


class RegionOutput(Stdout):
    """Replaces `Stdout` while the region is shown."""

    def __init__(self, print_above: Callable[[str], None]) -> None:
        super().__init__()
        self._print_above = print_above

    def write(self, text: str) -> int:
        self._print_above(text)
        return len(text)

    def flush(self) -> None:
        """The region collects what is printed."""


class ActivityView(Surface):
    """Shows running work, with the newest lines of its output."""

    tick_s = 0.25
    is_alive = True
    most_rows = 6
    least_window_rows = 0

    def __init__(self, paint: Callable[[], None], window_rows: Callable[[], int], state: TerminalState) -> None:
        self._paint, self._window_rows, self._state = paint, window_rows, state
        self._activity: Activity | None = None

    def render(self, width: int) -> Sequence[Row]:
        if self._activity is None or self._activity.is_over:
            return ()
        has_marks = width >= MARKS_FROM_COLUMNS
        rows = max(min(self.most_rows - 1, self._window_rows() - LEAST_BELOW), 1)
        room = width - 2 * has_marks
        lines = self._activity.lines(room, rows=rows, alongside=self._state.alongside, hint=" · Esc stops")
        frame = self._activity.frame(FRAMES)
        marks = (
            {"spinner": f"{frame} ", "rail": "  │ ", "": "  "}
            if has_marks
            else dict.fromkeys(("spinner", ""), "") | {"rail": "  "}
        )
        style = "class:dim italic" if self._activity.is_thinking else "class:dim"
        accent = style if self._activity.is_streaming else "class:accent"  # one style costs fewer bytes
        drawn = [[(accent if line.mark == "spinner" else "class:dim", marks[line.mark]), (style, line.text)] for line in lines]
        return [[("", "")], *drawn] if self._window_rows() >= GAP_FROM_ROWS else drawn

    def on_change(self, activity: Activity) -> None:
        self._activity = activity
        self._paint()

    def on_event(self, event: Event) -> None:
        """The screen reports running work by the methods of a surface."""

    def tick(self, activity: Activity) -> None:
        self._paint()

    def rest(self) -> None:
        self._state.unfinished = ""
