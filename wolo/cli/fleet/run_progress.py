"""Works on a run and shows how it goes."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from wolo.cli.listing import cut, in_short, money, pad, print_json
from wolo.errors import UsageError, WoloError
from wolo.frontends.streams import print_line, print_message
from wolo.frontends.wrapping import cells
from wolo.messages.terminal_text import clean_line, quantity

if TYPE_CHECKING:
    from wolo.fleet.attempts import AttemptView
    from wolo.fleet.coordinator import BatchOptions, Interruption
    from wolo.fleet.ledger.ledger import Ledger
    from wolo.fleet.ledger.outcomes import AttemptOutcome, Lease
    from wolo.fleet.ledger.run_rows import Meta
    from wolo.fleet.workers import WorkerCallbacks, Workers


_REPAINT_S = 1.0


def work_until_done(
    ledger: Ledger, run: Path, jobs: int, *, most: int | None = None, waits: bool = True, options: BatchOptions | None = None
) -> int:
    """Returns the exit status."""
    from wolo.fleet.coordinator import exit_code_of

    signalled = work_on_run(ledger, run, jobs, most=most, waits=waits, options=options)
    now = status_of(ledger)
    print_status(now)
    if left := now["states"].get("queued"):
        print_message(f"{quantity(left, 'task')} {'is' if left == 1 else 'are'} left: wolo batch resume {run}")
    if not waits:
        return signalled.exit_code or (2 if left and now["stopped"] else 0)
    return signalled.exit_code or exit_code_of(now["states"])


def work_on_run(
    ledger: Ledger, run: Path, jobs: int, *, most: int | None = None, waits: bool = True, options: BatchOptions | None = None
) -> Interruption:
    """Progress is shown on stderr: a table, or a line for each task that ends. `options`: instead of those of the run."""
    from wolo.cli.crash_log import log_to_file
    from wolo.fleet.coordinator import make_engine, options_of, work_on

    log_to_file(has_screen=sys.stderr.isatty())
    engine = make_engine(ledger.folder, options or options_of(ledger.meta()))
    progress = _Progress(ledger)
    try:
        return asyncio.run(work_on(ledger, engine, jobs, most=most, waits=waits, watch=progress.watch, say=progress.show))
    except OSError as error:
        progress.close()
        raise UsageError(
            f"Cannot write to {run}: {error.strerror}.", hint=f"Nothing is lost; `wolo batch resume {run}` continues."
        ) from error
    finally:
        progress.close()


class _Progress:
    """Shows the progress of this process on stderr."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._table = LiveTable(sys.stderr) if can_repaint(sys.stderr) else None
        self._ticking: asyncio.Task[None] | None = None

    def watch(self, workers: Workers) -> WorkerCallbacks:
        from wolo.fleet.workers import WorkerCallbacks

        if self._table is not None:
            self._ticking = asyncio.create_task(self._tick(workers, self._table))
        return WorkerCallbacks(ended=self._show_end)

    def show(self, text: str) -> None:
        if self._table is not None:
            self._table.clear()
        print_message(text)

    def close(self) -> None:
        if self._table is not None:
            self._table.clear()
            self._table = None

    def _show_end(self, lease: Lease, outcome: AttemptOutcome) -> None:
        said = f": {outcome.error.message}" if outcome.error else ""
        self.show(f"{outcome.state:9} {lease.task.id}  {money(outcome.usage.cost_usd)}{said}")

    async def _tick(self, workers: Workers, table: LiveTable) -> None:
        meta = await asyncio.to_thread(self._ledger.meta)
        pace: Pace | None = None
        began: dict[int, float] = {}
        while True:
            try:
                now = await asyncio.to_thread(status_of, self._ledger)
            except WoloError:  # the workers will meet it too
                return
            states = now["states"]
            pace = pace or Pace(sum(states.values()) - states.get("queued", 0) - states.get("leased", 0))
            time_s = time.monotonic()
            began = {fence: began.get(fence, time_s) for fence in workers.views}
            rows = [_running(view, time_s - began[fence]) for fence, view in workers.views.items()]
            table.draw(table_lines(now, meta, pace, rows))
            await asyncio.sleep(_REPAINT_S)


def _running(view: AttemptView, elapsed_s: float) -> Running:
    spent, line = view.spent, view.stream.line if view.stream else ""
    return Running(
        id=view.lease.task.id,
        attempt=view.lease.attempt,
        phase=view.phase,
        line=line,
        tokens=spent.tokens,
        cost_usd=spent.cost_usd,
        seconds=elapsed_s,
    )


def watch_run(ledger: Ledger, *, as_json: bool) -> None:
    """Shows the run until all its tasks have ended: a table on a terminal, else lines whenever something has changed."""
    table = LiveTable(sys.stdout) if can_repaint(sys.stdout) and not as_json else None
    meta, before, pace = ledger.meta(), None, None
    while True:
        now = status_of(ledger)
        states = now["states"]
        is_over = not {"queued", "leased"} & {*states}
        pace = pace or Pace(sum(states.values()) - states.get("queued", 0) - states.get("leased", 0))
        if table is not None and not is_over:
            rows = [
                Running(
                    id=row.task.id,
                    attempt=row.attempt,
                    phase="",
                    line=row.note,
                    tokens=row.tokens,
                    cost_usd=row.cost_usd or None,
                    seconds=seconds_since(row.began),
                )
                for row in ledger.rows(states=("leased",))
            ]
            table.draw(table_lines(now, meta, pace, rows))
        elif now != before:
            if table is not None:
                table.clear()
            print_json(now) if as_json else print_status(now)
        if is_over:
            return
        before = now
        time.sleep(_REPAINT_S)
        ledger.expire()


def status_of(ledger: Ledger) -> dict[str, Any]:
    spent, running = ledger.totals(), ledger.rows(states=("leased",))
    return {
        "states": ledger.counts(),
        "tokens": spent.tokens,
        "cost_usd": spent.cost_usd,
        "known_cost_usd": spent.counted_usd,
        "stopped": list(ledger.refusals().reasons),
        "running": [
            {"id": row.task.id, "attempt": row.attempt, "host": row.host, "began": row.began, "note": row.note} for row in running
        ],
    }


def print_status(now: dict[str, Any]) -> None:
    states = [f"{now['states'][state]} {state}" for state in STATES if now["states"].get(state)]
    print_line(f"{', '.join(states)} · {now['tokens']:,} tokens · {cost_so_far(now)}")
    for reason in now["stopped"]:
        print_line(f"stopped: {reason}")
    for row in now["running"]:
        print_line(f"  {row['id']}  {row['host']}  {row['note']}")


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
        height = sum(max(1, -(-cells(line) // columns)) for line in self._drawn)
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
    table = [_cells(row) for row in running]
    widths = [max((cells(line[at]) for line in table), default=0) for at in range(4)]
    for row, line in zip(running, table, strict=True):
        beginning = "  ".join(pad(cell, width, right=at > 1) for at, (cell, width) in enumerate(zip(line, widths, strict=True)))
        lines.append(f"  {beginning}  {clean_line(row.line)}".rstrip())
    return lines


def _cells(row: Running) -> tuple[str, str, str, str]:
    name = cut(clean_line(row.id), _LONGEST_ID) + (f" #{row.attempt}" if row.attempt > 1 else "")
    spent = f"{in_short(row.tokens)} tok" if row.cost_usd is None else money(row.cost_usd)
    return name, clean_line(row.phase), spent, spelled_time(row.seconds)


def spelled_time(elapsed_s: float) -> str:
    """`42s`, `3m05s`, `2h10m`"""
    whole = max(int(elapsed_s), 0)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02}s" if whole < 3600 else f"{whole // 3600}h{whole % 3600 // 60:02}m"


def seconds_since(began: str) -> float:
    """0 for a time that cannot be read."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
