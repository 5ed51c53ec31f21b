"""Open items of the todo list, above the input; those in progress come first."""

from __future__ import annotations

from collections.abc import Sequence

from wolo.agent.events import CallEnded, Event
from wolo.frontends.terminal.display.activity import fitted
from wolo.frontends.terminal.live.component import Row
from wolo.messages.terminal_text import clean_line
from wolo.tools.tool_values import TodoItem, TodoList

MOST_ITEMS = 3


class TodoPanel:
    most_rows = 5
    least_window_rows = 15

    def __init__(self) -> None:
        self.items: Sequence[TodoItem] = ()

    def on_event(self, event: Event) -> None:
        if isinstance(event, CallEnded) and isinstance(event.view, TodoList):
            self.items = event.view.items

    def render(self, width: int) -> Sequence[Row]:
        return [[("class:dim", line)] for line in self.lines(width)]

    def lines(self, width: int) -> list[str]:
        """Empty when no item is open."""
        working = [item for item in self.items if item.status == "in_progress"]
        pending = [item for item in self.items if item.status == "pending"]
        shown = [*working, *pending][:MOST_ITEMS]
        left = len(working) + len(pending) - len(shown)
        lines = [f"{'▶' if item.status == 'in_progress' else '☐'} {clean_line(item.text)}" for item in shown]
        if lines:
            done = sum(item.status == "completed" for item in self.items)
            more = f"{left} more open · " if left else ""
            lines.append(f"  {more}{done} of {len(self.items)} done")
        return [fitted(line, "", width) for line in lines]
