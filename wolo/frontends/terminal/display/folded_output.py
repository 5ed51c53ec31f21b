"""Output that was printed in short: results, changes of files, thinking. The viewer shows all of it."""

from __future__ import annotations

import time

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
    """Measures the thinking of one answer; one line reports its length afterwards."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Called when an answer begins; discards what an earlier attempt thought."""
        self._chars, self._has_words = 0, False
        self._began: float | None = None

    def add(self, text: str) -> None:
        if self._began is None:
            self._began = time.monotonic()
        self._chars += len(text)
        self._has_words = self._has_words or bool(text.strip())

    def end(self) -> str:
        """`Thought for 12 s (~340 tokens)`, or `Thought briefly`; empty when nothing was thought since the last call."""
        if self._began is None:
            return ""
        seconds, tokens, has_words = time.monotonic() - self._began, max(self._chars // 4, 1), self._has_words
        self.begin()
        took = f"for {seconds:.0f} s" if seconds >= 1 else "briefly"
        return f"Thought {took} (~{tokens:,} tokens)" if has_words else ""
