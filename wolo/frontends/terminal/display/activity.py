"""What is under way, for how long, and what has come of it just now: one line of it, or a few."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from wolo.messages.terminal_text import clean, escaped_line

Words = str | Callable[[], str]
"""A function is asked again once in a second, for the seconds beside them are painted then, too."""

QUIET_S = 5.0
"""A stream that is silent for longer is said to be."""
TAIL_CHARS = 2000
"""How much of what a call prints is kept to show its newest lines."""
TAIL_LINES = 3
MOST_CALLS = 4
LEAST_WORDS = 4
"""Cells; with less room for words only they are shown."""


@dataclass(slots=True)
class _Call:
    words: str
    began: float
    printed: str = ""


class UnderWay:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._words: Words = ""
        self._shown, self._shown_at = "", -1
        """What the words were last, and in which second."""
        self._began: float | None = None
        self._heard_at: float | None = None
        """When the stream said something last; None while nothing streams."""
        self._calls: dict[str, _Call] = {}

    @property
    def is_over(self) -> bool:
        return self._began is None and not self._calls

    def begin(self, words: Words) -> None:
        """Something new; its seconds count from now."""
        self._began, self._words, self._heard_at = self._clock(), words, None
        self._shown_at = -1

    def say(self, words: Words) -> None:
        """Other words for the same thing."""
        if words != self._words:
            self._words, self._shown_at = words, -1

    def heard(self) -> None:
        """More of the stream has come."""
        self._heard_at = self._clock()

    def end(self) -> None:
        self._began = self._heard_at = None
        self._calls.clear()

    def begin_call(self, id: str, words: str) -> None:
        """It runs beside those that run already."""
        self._began = self._heard_at = None
        self._calls[id] = _Call(escaped_line(words), self._clock())

    def hear_call(self, id: str, printed: str) -> None:
        if call := self._calls.get(id):
            call.printed = (call.printed + printed)[-TAIL_CHARS:]

    def end_call(self, id: str) -> None:
        self._calls.pop(id, None)

    def lines(self, columns: int, *, rows: int = 1, aside: str = "", hint: str = "") -> list[str]:
        """Each fits the width; `aside` and `hint` stand at the end of the first one."""
        end = f"{f' · {aside}' if aside else ''}{{}}{hint}"
        if self._calls:
            return self._call_lines(columns, rows, end)
        if self._began is None:
            return []
        now = self._clock()
        words, seconds = self._words_at(int(now - self._began)), _seconds(now - self._began)
        if self._heard_at is None or now - self._heard_at <= QUIET_S:
            return [_with_end(words, end, seconds, columns)]
        silent = f"silent for {now - self._heard_at:.0f} s"
        both = f"{words} · {silent}{end.format(seconds)}"
        return [both if cell_len(both) <= columns else fitted(silent, "", columns)]

    def _words_at(self, second: int) -> str:
        if second != self._shown_at:
            self._shown, self._shown_at = escaped_line(self._words if isinstance(self._words, str) else self._words()), second
        return self._shown

    def _call_lines(self, columns: int, rows: int, end: str) -> list[str]:
        calls, now = list(self._calls.values()), self._clock()
        if rows == 1:
            words = (newest_lines(calls[-1].printed, 1) or [calls[-1].words])[0]
            count = f"{len(calls)} calls · " if len(calls) > 1 else ""
            return [_with_end(count + words, end, _seconds(now - calls[0].began), columns)]
        if len(calls) == 1:
            first = _with_end(calls[0].words, end, _seconds(now - calls[0].began), columns)
            newest_ones = newest_lines(calls[0].printed, min(TAIL_LINES, rows - 1))
            return [first, *(fitted(f"  {line}", "", columns) for line in newest_ones)]
        lines: list[str] = []
        most = min(MOST_CALLS, rows - (len(calls) > rows))
        for call in calls[:most]:
            newest = "".join(f" · {line}" for line in newest_lines(call.printed, 1))
            lines.append(_with_end(call.words + newest, end if not lines else "{}", _seconds(now - call.began), columns))
        return [*lines, *([f"and {len(calls) - most} more"] if len(calls) > most else [])]


def newest_lines(printed: str, most: int) -> list[str]:
    """Those that say something; a progress bar writes over itself with carriage returns."""
    lines = [line.strip().replace("\t", " ") for line in clean(printed.replace("\r", "\n")).split("\n")]
    return [line for line in lines if line][-most:]


def _with_end(words: str, end: str, seconds: str, columns: int) -> str:
    """The seconds alone where there is no room for all that stands around them."""
    whole = end.format(seconds)
    return fitted(words, whole if columns - cell_len(whole) >= LEAST_WORDS else seconds, columns)


def fitted(words: str, end: str, columns: int) -> str:
    """One row of it: the words are cut, and where there is no room for them, the end."""
    room = columns - cell_len(end)
    if room < LEAST_WORDS:
        return set_cell_size(words, columns).rstrip()
    if cell_len(words) > room:
        words = set_cell_size(words, room - 1).rstrip() + "…"
    return words + end


def _seconds(seconds: float) -> str:
    return f" · {int(seconds)} s"
