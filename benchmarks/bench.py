"""`make bench`: wolo and a minimal loop against the same scripted server, in one run, and what wolo does in numbers.

Wolo is measured as people install it: a wheel, compiled to bytecode, in its own environment. Nothing here passes or fails.
"""

from __future__ import annotations

import copy
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from counts import Counts, count
from runs import Run, Table, base_environment, best, fsync_ms, install, run
from scripted import ScriptedServer

FLOOR = Path(__file__).parent / "floor.py"
LIBRARY = Path(__file__).parent / "library.py"
API_ROUNDS, API_AGENTS = 3, 200
ROUNDS = 9
COUNTED_TURNS = 30
NO_SANDBOX = ("--mode", "yolo", "--sandbox", "off")


class Bench:
    def __init__(self) -> None:
        self.python = install()
        self.wolo = self.python.parent / "wolo"
        self.server = ScriptedServer()
        self.work = Path(tempfile.mkdtemp(prefix="wolo-bench-"))
        (self.work / "notes.txt").write_text("".join(f"line {n}\n" for n in range(400)))
        self.environment = base_environment() | {"WOLO_HOME": str(self.work / "home"), "WOLO_API_KEY": "none"}

    def run(self, argv: Sequence[str | Path]) -> Run:
        return run(self.server, argv, self.work, self.environment)

    def count(self, argv: Sequence[str | Path]) -> Counts:
        return count(argv, self.work, self.environment)

    def prompt(self, model: str, *more: str) -> list[str | Path]:
        return [self.python, self.wolo, "-p", "--base-url", self.server.url, "-m", model, *more, "go"]

    def ask(self, model: str, *more: str) -> Run:
        return self.run(self.prompt(model, *more))

    def with_server(self, server: ScriptedServer) -> Bench:
        """The same with another server, so that both can be asked at once."""
        other = copy.copy(self)
        other.server = server
        return other

    def loop(self, model: str) -> list[str | Path]:
        """The command line of the minimal loop."""
        return [self.python, FLOOR, self.server.url, model, "go"]

    def plain(self, code: str) -> list[str | Path]:
        return [self.python, "-c", code]


def main() -> None:
    bench = Bench()
    bench.ask("text")  # the first run makes the database
    table = Table(f"Start and turns, minimum of {ROUNDS} runs", "", "wolo", "floor", "ratio")
    start_up(bench, table)
    turns(bench, table)
    deltas(bench, table)
    long_session(bench, table)
    table.save()
    library(bench)
    counts(bench)
    shutil.rmtree(bench.work, ignore_errors=True)


def ratio_row(table: Table, name: str, value: float, floor: float, form: str, *, of: str = "") -> None:
    table.row(name, form.format(value), f"{of} {form.format(floor)}".strip(), f"{value / floor:.1f}x")


def start_up(bench: Bench, table: Table) -> None:
    bare = [bench.run(bench.plain("pass")) for _ in range(ROUNDS)]
    base = [bench.run(bench.plain("import asyncio, ssl")) for _ in range(ROUNDS)]
    version = [bench.run([bench.wolo, "--version"]) for _ in range(ROUNDS)]
    wolo = [bench.ask("text") for _ in range(ROUNDS)]
    floor = [bench.run(bench.loop("text")) for _ in range(ROUNDS)]

    def cpu(runs: list[Run]) -> float:
        return best(runs, "cpu_s") * 1000

    ratio_row(table, "--version, CPU", cpu(version), cpu(bare), "{:.0f} ms", of="python -c pass")
    ratio_row(table, "one turn, CPU", cpu(wolo), cpu(base), "{:.0f} ms", of="import asyncio, ssl")
    ratio_row(table, "one turn, CPU", cpu(wolo), cpu(floor), "{:.0f} ms")
    first, below = best(wolo, "first_request_s") * 1000, best(floor, "first_request_s") * 1000
    ratio_row(table, "spawn to first request", first, below, "{:.0f} ms")
    ratio_row(table, "peak memory, one turn", best(wolo, "peak_mb"), best(floor, "peak_mb"), "{:.0f} MB")
    table.row("system prompt and tool schemas", f"{wolo[0].log.overhead_bytes} B", "", "")


def turns(bench: Bench, table: Table) -> None:
    disk = fsync_ms(bench.work)
    wolo, floor = bench.ask("reads-60"), bench.run(bench.loop("reads-60"))
    mine, below = statistics.median(wolo.turns_s) * 1000, statistics.median(floor.turns_s) * 1000
    ratio_row(table, "read turn, median of 60", mine, below, "{:.2f} ms")
    table.row("a durable append of 2 kB", f"{disk:.2f} ms", "", "")


def deltas(bench: Bench, table: Table) -> None:
    for together in (100, 1):
        model = f"deltas-{together}"
        wolo = [bench.ask(model) for _ in range(5)]
        floor = [bench.run(bench.loop(model)) for _ in range(5)]
        mine, below = best(wolo, "cpu_s") * 1000, best(floor, "cpu_s") * 1000
        ratio_row(table, f"20,000 deltas, {together} a chunk, CPU of the run", mine, below, "{:.0f} ms")


def long_session(bench: Bench, table: Table) -> None:
    run = bench.ask("reads-300", "-s", "long")
    early, late = statistics.median(run.turns_s[:40]), statistics.median(run.turns_s[260:300])
    ratio_row(table, "read turn, last 40 of 300", late * 1000, early * 1000, "{:.2f} ms", of="first 40")
    table.row("peak memory, 300 turns", f"{run.peak_mb:.0f} MB", "", "")
    resumed = [bench.ask("text", "-s", "long") for _ in range(5)]
    table.row("resume of 300 turns to first request", f"{best(resumed, 'first_request_s') * 1000:.0f} ms", "", "")
    table.row("peak memory, resumed", f"{best(resumed, 'peak_mb'):.0f} MB", "", "")


def library(bench: Bench) -> None:
    """What one more conversation costs a program of the Python API."""
    table = Table(f"Python API, minimum of {API_ROUNDS} runs", "", "wolo", "budget")

    def agents(session: str, count: int) -> list[Run]:
        argv = [bench.python, LIBRARY, bench.server.url, session, str(count)]
        return [bench.run(argv) for _ in range(API_ROUNDS)]

    for session, budget in (("memory", "6 ms"), ("saved", "")):
        one, many = agents(session, 1), agents(session, 1 + API_AGENTS)
        each_ms = (best(many, "cpu_s") - best(one, "cpu_s")) * 1000 / API_AGENTS
        table.row(f"a run of a new agent, {session}, CPU", f"{each_ms:.1f} ms", budget)
    table.row("1,000 saved conversations open, peak memory", f"{best(agents('saved', 1000), 'peak_mb'):.0f} MB", "100 MB")
    table.save()


def counts(bench: Bench) -> None:
    """The main process and its threads; the same commit gives the same instructions within half a percent."""
    table = Table("Counts of the main process", "", "instructions", "system calls", "opens", "commits")
    one = bench.count(bench.prompt("text"))
    rows = {
        "import asyncio, ssl": bench.count(bench.plain("import asyncio, ssl")),
        "one turn of the floor": bench.count(bench.loop("text")),
        "one turn": one,
        "a read turn": bench.count(bench.prompt(f"reads-{COUNTED_TURNS}")).per_turn(one, COUNTED_TURNS),
        "a shell turn, no sandbox": bench.count(bench.prompt(f"shells-{COUNTED_TURNS}", *NO_SANDBOX)).per_turn(
            one, COUNTED_TURNS
        ),
        "20,000 deltas, 1 a chunk": bench.count(bench.prompt("deltas-1")).per_turn(one, 1),
    }
    for name, counted in rows.items():
        millions = "not counted" if counted.instructions is None else f"{counted.instructions / 1e6:,.1f} M"
        others = (counted.system_calls, counted.opens, counted.commits)
        table.row(name, millions, *("not counted" if n is None else f"{n:,}" for n in others))
    table.save()


if __name__ == "__main__":
    main()
