"""Works on a run and shows how it goes."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wolo.cli.fleet.live_table import STATES, LiveTable, Pace, Running, can_repaint, cost_so_far, seconds_since, table_lines
from wolo.cli.listing import money, print_json
from wolo.errors import UsageError, WoloError
from wolo.frontends.streams import print_line, print_message
from wolo.messages.terminal_text import counted

if TYPE_CHECKING:
    from wolo.fleet.attempts import AttemptView
    from wolo.fleet.coordinator import Interruption
    from wolo.fleet.ledger.ledger import Ledger
    from wolo.fleet.ledger.outcomes import AttemptOutcome, Lease
    from wolo.fleet.ledger.run_rows import Row
    from wolo.fleet.workers import WorkerCallbacks, Workers

_REPAINT_S = 1.0


def work_until_done(ledger: Ledger, run: Path, jobs: int, *, most: int | None = None, waits: bool = True) -> int:
    """Returns the exit status."""
    from wolo.fleet.coordinator import exit_code_of

    signalled = work_on_run(ledger, run, jobs, most=most, waits=waits)
    now = status_of(ledger)
    print_status(now)
    if left := now["states"].get("queued"):
        print_message(f"{counted(left, 'task')} {'is' if left == 1 else 'are'} left: wolo batch resume {run}")
    if not waits:
        return signalled.exit_code or (2 if left and now["stopped"] else 0)
    return signalled.exit_code or exit_code_of(now["states"])


def work_on_run(ledger: Ledger, run: Path, jobs: int, *, most: int | None = None, waits: bool = True) -> Interruption:
    """Progress is shown on stderr: a table, or a line for each task that ends."""
    from wolo.cli.crash_log import log_to_file
    from wolo.fleet.coordinator import make_engine, options_of, work_on

    log_to_file(has_screen=sys.stderr.isatty())
    engine = make_engine(ledger.folder, options_of(ledger.meta()))
    progress = _Progress(ledger)
    try:
        return asyncio.run(work_on(ledger, engine, jobs, most=most, waits=waits, watch=progress.watch, say=progress.say))
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
        return WorkerCallbacks(ended=self._ended)

    def say(self, text: str) -> None:
        if self._table is not None:
            self._table.clear()
        print_message(text)

    def close(self) -> None:
        if self._table is not None:
            self._table.clear()
            self._table = None

    def _ended(self, lease: Lease, outcome: AttemptOutcome) -> None:
        said = f": {outcome.error.message}" if outcome.error else ""
        self.say(f"{outcome.state:9} {lease.task.id}  {money(outcome.usage.cost_usd)}{said}")

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


def _running(view: AttemptView, seconds: float) -> Running:
    spent, line = view.spent, view.stream.line if view.stream else ""
    return Running(
        id=view.lease.task.id,
        attempt=view.lease.attempt,
        phase=view.phase,
        line=line,
        tokens=spent.tokens,
        cost_usd=spent.cost_usd,
        seconds=seconds,
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
            rows = [Running(phase="", seconds=seconds_since(row.began), line=row.note, **_spent(row)) for row in _leased(ledger)]
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


def _leased(ledger: Ledger) -> list[Row]:
    return ledger.rows(states=("leased",))


def _spent(row: Row) -> dict[str, Any]:
    return {"id": row.task.id, "attempt": row.attempt, "tokens": row.tokens, "cost_usd": row.cost_usd or None}


def status_of(ledger: Ledger) -> dict[str, Any]:
    spent, running = ledger.spent(), ledger.rows(states=("leased",))
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
