"""Output that was printed in short: results, changes of files, thinking. The viewer shows all of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from wolo.tools.tool_values import View

MOST_VIEWS = 100
THINKING = "thinking"


class FoldedOutput:
    """The results of the newest calls in full, for the viewer."""

    def __init__(self) -> None:
        self.hint = ""
        """Key hint after folded output; empty where no keys are read."""
        self.views: dict[str, View] = {}
        """By the id of the call."""
        self.newest = ""
        """The call that was folded last, or THINKING."""

    def add(self, part_id: str, view: View | None) -> None:
        if view is not None:
            self.views[part_id] = view
        if len(self.views) > MOST_VIEWS:
            del self.views[next(iter(self.views))]


class Thinking:
    """Collects the thinking of one answer; one line reports its length afterwards."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.text = ""
        self._clock = clock
        self._pieces: list[str] = []
        self._chars = 0
        self._began: float | None = None

    def begin(self) -> None:
        """Called when an answer begins; discards what an earlier attempt thought."""
        self._pieces.clear()
        self._chars, self._began = 0, None

    def add(self, text: str) -> None:
        if self._began is None:
            self._began = self._clock()
        self._pieces.append(text)
        self._chars += len(text)

    def end(self) -> str:
        """`Thought for 12 s (~340 tokens)`, or `Thought briefly`; empty when nothing was thought since the last call."""
        if self._began is None:
            return ""
        seconds, tokens = self._clock() - self._began, max(self._chars // 4, 1)
        self._began, self._chars = None, 0
        thought = "".join(self._pieces)
        if not thought.strip():
            return ""
        self.text = thought
        took = f"for {seconds:.0f} s" if seconds >= 1 else "briefly"
        return f"Thought {took} (~{tokens:,} tokens)"
