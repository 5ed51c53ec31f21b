"""`make bench`: sessions that are huge, many, or written by many at once; the budgets stand beside the figures.

The stores are made once, under build/. Nothing here passes or fails.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bench import Bench
from runs import Run, Table, best, fsync_ms
from scripted import ScriptedServer
from store_samples import HUGE_BYTES, HUGE_ENTRIES, SESSIONS, make_huge, make_many

from wolo.messages.message import user
from wolo.sessions.entries import MessageEntry
from wolo.sessions.index import FILE, Index
from wolo.sessions.search import index_update
from wolo.sessions.search.passage_search import Hit, parse, search
from wolo.sessions.store import Store

HOME = Path(__file__).parent.parent / "build" / "sessions"
ROUNDS = 5
TABLE = Table(
    f"Sessions: {HUGE_BYTES // 1_000_000} MB and {HUGE_ENTRIES:,} entries, {SESSIONS:,} others", "", "wolo", "floor and budget"
)
PROCESSES, TURNS = 8, 50
QUERIES = ("session", '"durable commit"', "tool:shell pytest", "path:src/part_3.py", "reading*", "since:7d role:user request")


def main() -> None:
    bench = Bench()
    bench.environment["WOLO_HOME"] = str(HOME)
    make_store(bench.work)
    listing(bench)
    searching()
    resuming(bench)
    appending()
    concurrent(bench)
    TABLE.save()
    shutil.rmtree(bench.work, ignore_errors=True)


def make_store(cwd: Path) -> None:
    data = HOME / "data"
    if (data / "made").exists():
        return
    shutil.rmtree(HOME, ignore_errors=True)
    with Store.open(data) as store:
        make_many(store, cwd)
        make_huge(store, cwd)
    (data / "made").touch()


def listing(bench: Bench) -> None:
    for words in (["list", "--all"], ["list", "--all", "--json"]):
        runs = [bench.run([bench.wolo, "sessions", *words]) for _ in range(ROUNDS)]
        _row(f"wolo sessions {' '.join(words)}", best(runs, "wall_s") * 1000, 300, best(runs, "cpu_s") * 1000)
    tail = [bench.run([bench.wolo, "sessions", "show", "huge", "--tail", "5"]) for _ in range(ROUNDS)]
    TABLE.row("wolo sessions show huge --tail 5", f"{best(tail, 'wall_s') * 1000:.0f} ms", f"peak {best(tail, 'peak_mb'):.0f} MB")


def searching() -> None:
    with Store.open(HOME / "data") as store:
        (HOME / "data" / FILE).unlink(missing_ok=True)
        made = _cpu_s(lambda: index_update.ask(store, Index.marks))
        size = (HOME / "data" / FILE).stat().st_size / 1e6
        TABLE.row("search index made from nothing, CPU", f"{made:.1f} s", f"{size:.0f} MB")
        for words in QUERIES:
            wall_s, cpu_s = _median_s(partial(find, store, words))
            _row(f"search {words}", wall_s * 1000, 100, cpu_s * 1000)


def find(store: Store, words: str) -> list[Hit]:
    """A search without the start of the interpreter."""
    query = parse(words, time.time())
    return index_update.ask(store, lambda index: search(index, store.list(), query))


def resuming(bench: Bench) -> None:
    for name, more in (("of unknown context window", ()), ("of 200,000 tokens", ("--set", "context.window=200000"))):
        runs = [bench.ask("text", "-s", "huge", *more) for _ in range(3)]
        _row(f"one turn with a model {name}, CPU", best(runs, "cpu_s") * 1000, 1000)
        _row("  spawn to first request", best(runs, "first_request_s") * 1000, None)
        TABLE.row("  peak memory", f"{best(runs, 'peak_mb'):.0f} MB", "budget 200 MB")


def appending() -> None:
    with Store.open(HOME / "data") as store:
        huge = store.find("huge").id
        fresh = store.create(HOME).id
        times = {id: [_timed(store, id) for _ in range(300)] for id in (fresh, huge)}
        store.delete(fresh)
    disk = fsync_ms(HOME)
    for name, id in (("a new session", fresh), (f"one of {HUGE_ENTRIES:,} entries", huge)):
        median = statistics.median(times[id]) * 1000
        TABLE.row(f"append to {name}, median", f"{median:.2f} ms", f"budget 1 ms; a durable write {disk:.2f} ms")


def concurrent(bench: Bench) -> None:
    """Many processes in one data directory, each with its own server, so that its requests are told apart."""
    home = bench.work / "concurrent"
    bench.environment["WOLO_HOME"] = str(home)
    bench.ask("text")
    alone = statistics.median(bench.ask(f"reads-{TURNS}").turns_s) * 1000
    benches = [bench.with_server(ScriptedServer()) for _ in range(PROCESSES)]
    runs = together(benches, f"reads-{TURNS}")
    gaps = sorted(gap * 1000 for run in runs for gap in run.turns_s)
    TABLE.row(f"{PROCESSES} processes × {TURNS} tool turns, all complete", _complete(runs), f"alone {alone:.1f} ms a turn")
    _row("  time added to a turn, p50", statistics.median(gaps) - alone, None)
    _row("  time added to a turn, p95", gaps[len(gaps) * 95 // 100] - alone, 100)


def together(benches: list[Bench], model: str) -> list[Run]:
    with ThreadPoolExecutor(len(benches)) as pool:
        return list(pool.map(lambda each: each.ask(model), benches))


def _complete(runs: list[Run]) -> str:
    """A run that fails ends the benchmark with its output."""
    return "yes" if all(len(run.turns_s) == TURNS for run in runs) else "NO"


def _timed(store: Store, session_id: str) -> float:
    entry = MessageEntry(message=user("x" * 2_000))
    started = time.perf_counter()
    store.append(session_id, [entry])
    return time.perf_counter() - started


def _cpu_s(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _median_s(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU time."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        cpu_s = _cpu_s(work)
        times.append((time.perf_counter() - started, cpu_s))
    return statistics.median(wall for wall, _ in times), statistics.median(cpu for _, cpu in times)


def _row(what: str, took_ms: float, budget_ms: float | None, cpu_ms: float | None = None) -> None:
    """Adds a row with wall and CPU time; on a busy machine only the latter is meaningful."""
    beside = [f"budget {budget_ms:.0f} ms"] if budget_ms else []
    beside += [f"CPU {cpu_ms:.0f} ms"] if cpu_ms is not None else []
    TABLE.row(what, f"{took_ms:.0f} ms", ", ".join(beside))


if __name__ == "__main__":
    sys.exit(main())
