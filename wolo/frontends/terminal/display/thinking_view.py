"""What the model thinks, on its way past: its newest line while it comes, one line about it afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable


class ThinkingShown:
    """Of the answer under way, and kept until another one thinks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.text = ""
        """All of it, for whoever wants to read it."""
        self._clock = clock
        self._pieces: list[str] = []
        self._chars = 0
        self._began: float | None = None

    def begin(self) -> None:
        """An answer begins, perhaps anew: what an earlier attempt thought is void."""
        self._pieces.clear()
        self._chars, self._began = 0, None

    def add(self, text: str) -> None:
        if self._began is None:
            self._began = self._clock()
        self._pieces.append(text)
        self._chars += len(text)

    def end(self) -> str:
        """`Thought for 12 s (~340 tokens)`, each time it stops to speak or act; empty when there is nothing to tell."""
        if self._began is None:
            return ""
        seconds, tokens = self._clock() - self._began, max(self._chars // 4, 1)
        self._began, self._chars = None, 0
        thought = "".join(self._pieces)
        if not thought.strip():
            return ""
        self.text = thought
        return f"Thought for {seconds:.0f} s (~{tokens:,} tokens)"
