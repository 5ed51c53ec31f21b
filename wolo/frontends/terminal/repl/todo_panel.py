"""The todo list while it has open items: in the foot, short, the one that is worked on first."""

from __future__ import annotations

from collections.abc import Sequence

from wolo.agent.events import CallEnded, Event
from wolo.frontends.terminal.display.activity import fitted
from wolo.messages.terminal_text import clean_line
from wolo.tools.tool import TodoItem, TodoList

MOST_ITEMS = 3


class TodoShown:
    def __init__(self) -> None:
        self._items: Sequence[TodoItem] = ()

    def take(self, items: Sequence[TodoItem]) -> None:
        """The list as it stands now."""
        self._items = items

    def hear(self, event: Event) -> None:
        if isinstance(event, CallEnded) and isinstance(event.view, TodoList):
            self._items = event.view.items

    def lines(self, columns: int) -> list[str]:
        """Empty when nothing is open."""
        working = [item for item in self._items if item.status == "in_progress"]
        pending = [item for item in self._items if item.status == "pending"]
        shown = [*working, *pending][:MOST_ITEMS]
        left = len(working) + len(pending) - len(shown)
        lines = [f"{'▶' if item.status == 'in_progress' else '☐'} {clean_line(item.text)}" for item in shown]
        if lines:
            done = sum(item.status == "completed" for item in self._items)
            more = f"{left} more open · " if left else ""
            lines.append(f"  {more}{done} of {len(self._items)} done")
        return [fitted(line, "", columns) for line in lines]
