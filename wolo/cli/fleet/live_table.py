"""Live table of a run: repaints a few lines of a terminal in place."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from wolo.cli.listing import cut, in_short, money, padded, width_of
from wolo.messages.terminal_text import clean_line

if TYPE_CHECKING:
    from wolo.fleet.ledger.run_rows import Meta

STATES = ("queued", "leased", "passed", "done", "failed", "timeout", "budget", "errored", "lost", "cancelled")
_LONGEST_ID = 30
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output: the terminal shows a repaint as a whole."""


class Running(NamedTuple):
    """One line of the table."""

    id: str
    attempt: int
    phase: str
    line: str
    tokens: int
    cost_usd: float | None
    seconds: float


def can_repaint(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


class LiveTable:
    """Owns the lines above the cursor. Whoever prints in between calls `clear` first."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._drawn: list[str] = []

    def draw(self, lines: Sequence[str]) -> None:
        columns, rows = self._size()
        room = max(rows - 1, 1)
        hidden = len(lines) - room + 1 if len(lines) > room > 1 else 0
        shown = [*lines[: room - 1], f"  … {hidden} more"] if hidden else lines[:room]
        fitting = [cut(line, columns - 1) for line in shown]
        if fitting != self._drawn:
            erasing = self._erasing(columns)
            self._write(_BEGIN + erasing + "".join(f"{line}\n" for line in fitting) + _END)
            self._drawn = fitting

    def clear(self) -> None:
        self._write(self._erasing(self._size()[0]))
        self._drawn = []

    def _erasing(self, columns: int) -> str:
        """A window that was made narrower has wrapped the lines."""
        height = sum(max(1, -(-width_of(line) // columns)) for line in self._drawn)
        return f"\r\x1b[{height}A\x1b[J" if height else ""

    def _size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return 80, 24
        return max(size.columns, 10) if size.columns else 80, size.lines or 24

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            pass  # the work goes on without a terminal


class Pace:
    """Tasks a minute since the table was opened, and the time that is left."""

    def __init__(self, ended: int) -> None:
        self._began, self._before = time.monotonic(), ended

    def text(self, ended: int, left: int) -> str:
        seconds, count = time.monotonic() - self._began, ended - self._before
        if count < 1 or seconds <= 0:
            return ""
        rest = f" · {spelled_time(left * seconds / count)} left" if left and count > 1 else ""
        return f" · {count * 60 / seconds:.1f}/min{rest}"


def cost_so_far(now: Mapping[str, Any]) -> str:
    """Attempts that were killed leave a part of the total unknown."""
    unknown = now["cost_usd"] is None and now["known_cost_usd"] > 0
    return f"at least {money(now['known_cost_usd'])}" if unknown else money(now["cost_usd"])


def table_lines(now: Mapping[str, Any], meta: Meta, pace: Pace, running: Sequence[Running]) -> list[str]:
    """Counts, totals against the limits, and one line for each running task."""
    states = now["states"]
    total = sum(states.values())
    left = states.get("queued", 0) + states.get("leased", 0)
    ended = total - left
    cost = cost_so_far(now) + (f" of {money(meta.max_cost_usd)}" if meta.max_cost_usd is not None else "")
    tokens = in_short(now["tokens"]) + (f" of {in_short(meta.max_tokens)}" if meta.max_tokens is not None else "")
    counts = " · ".join(f"{states[name]} {'running' if name == 'leased' else name}" for name in STATES if states.get(name))
    lines = [counts, f"{ended} of {total}{pace.text(ended, left)} · {cost} · {tokens} tokens"]
    cells = [_cells(row) for row in running]
    widths = [max((width_of(line[at]) for line in cells), default=0) for at in range(4)]
    for row, line in zip(running, cells, strict=True):
        beginning = "  ".join(
            padded(cell, width, right=at > 1) for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        lines.append(f"  {beginning}  {clean_line(row.line)}".rstrip())
    return lines


def _cells(row: Running) -> tuple[str, str, str, str]:
    name = cut(clean_line(row.id), _LONGEST_ID) + (f" #{row.attempt}" if row.attempt > 1 else "")
    spent = f"{in_short(row.tokens)} tok" if row.cost_usd is None else money(row.cost_usd)
    return name, clean_line(row.phase), spent, spelled_time(row.seconds)


def spelled_time(seconds: float) -> str:
    """`42s`, `3m05s`, `2h10m`"""
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02}s" if whole < 3600 else f"{whole // 3600}h{whole % 3600 // 60:02}m"


def seconds_since(began: str) -> float:
    """0 for a time that cannot be read."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
