"""What is printed while the foot stands: whole lines go above it, the beginning of a line waits in it until the rest has come."""

from __future__ import annotations

import time
from collections.abc import Callable

from wolo.frontends.terminal.foot import Foot
from wolo.frontends.terminal.status import Words
from wolo.frontends.terminal.stdout import Stdout
from wolo.messages.terminal_text import clean_line


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
    """Takes the place of `StatusLine`: what is under way, and for how long."""

    is_alive = True

    def __init__(self, foot: Foot) -> None:
        self.aside: Callable[[], str] = str
        self._foot = foot
        self._words: Words = ""
        self._started: float | None = None

    def start(self, words: Words) -> None:
        self._started = time.monotonic()
        self._foot.activity = self._line
        self.say(words)

    def say(self, words: Words) -> None:
        self._words = words
        self._foot.paint()

    def hold(self, held: bool) -> None:
        """Nothing is in its way."""

    def hide(self) -> None:
        """It is in nobody's way."""

    def pause(self) -> None:
        """The foot vanishes as a whole."""

    def stop(self) -> None:
        self._started = None
        self._foot.activity = str
        self._foot.paint()

    def _line(self) -> str:
        words = clean_line(self._words if isinstance(self._words, str) else self._words())
        return f"{words} · {int(time.monotonic() - self._started)} s · Esc stops" if self._started is not None else ""
