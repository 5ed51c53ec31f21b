"""`make scale`: large trees, long sessions, many sessions, tools and processes, beside what a smaller one costs.

The table is saved in results.md. Nothing here passes or fails.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import sessions
from bench import NO_SANDBOX, Bench
from hands import make_files, median, ms, new_services, timed
from runs import ROOT, Run, Table, best, p10
from scripted import ScriptedServer
from store_samples import HUGE_ENTRIES, SESSIONS, make_compacted, make_turns

from wolo.frontends.file_names import FileNames, NameIndex
from wolo.sessions.store import Store
from wolo.tools.search.grep import Grep, GrepArgs
from wolo.tools.search.ripgrep import stand_in
from wolo.tools.tool import CallContext
from wolo.tools.toolbox import Toolbox

TABLE = Table("Scale", "", "wolo", "beside")
FILES = 100_000
TURNS = 2_000
TOOLS = 200
ROUNDS = 5


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="wolo-scale-")).resolve()
    bench = Bench()
    try:
        tree(folder)
        edits(folder)
        long_sessions(bench)
        many_turns(bench)
        many_sessions(bench)
        many_tools(bench)
        processes(bench)
        TABLE.save()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(bench.work, ignore_errors=True)


def tree(folder: Path) -> None:
    work = folder / "tree"
    make_files(work, FILES)
    toolbox, services = Toolbox(), new_services(work, folder)

    def use(tool: str, **arguments: str) -> None:
        found, args = toolbox.decode(tool, arguments)
        asyncio.run(found.run(args, CallContext(services)))

    def bare(*argv: str) -> str:
        program = shutil.which(argv[0]) or shutil.which(f"{argv[0]}find")  # Debian's name of fd
        if program is None:
            return f"{argv[0]} is not installed"
        run = partial(subprocess.run, [program, *argv[1:]], cwd=work, stdout=subprocess.DEVNULL, check=False)
        return f"{argv[0]} {ms(median(3, run))}"

    what = f"{FILES:,} files"
    TABLE.row(f"grep, {what}, no match", ms(median(3, lambda: use("grep", pattern="nowhere"))), bare("rg", "nowhere", "."))
    without = Grep(stand_in()).run(GrepArgs("nowhere"), CallContext(services))
    TABLE.row(f"grep without ripgrep, {what}", ms(timed(lambda: asyncio.run(without))), "")
    TABLE.row(
        f"glob **/file99.txt, {what}", ms(median(3, lambda: use("glob", pattern="**/file99.txt"))), bare("fd", "file99.txt")
    )
    names = FileNames().below(work)
    TABLE.row(f"@ list of names, {what}", ms(timed(lambda: FileNames().below(work))), bare("rg", "--files"))
    keys = _keys(names, "dir77file9")
    TABLE.row("@ one key typed", ms(statistics.median(keys)), f"slowest {ms(max(keys))}, {len(names):,} names")


def _keys(names: Sequence[str], word: str) -> list[float]:
    index = NameIndex(names)
    return [timed(partial(index.best, word[:end])) for end in range(1, len(word) + 1)]


def edits(folder: Path) -> None:
    work = folder / "edits"
    work.mkdir()
    toolbox, services = Toolbox(), new_services(work, folder)

    async def edit(name: str, lines: int) -> float:
        (work / name).write_text("".join(f"line {n} of a file that is edited, with some more words\n" for n in range(lines)))
        spent = []
        for n in range(10):
            tool, args = toolbox.decode("edit", {"path": name, "old": f"line {n * 7} of", "new": f"line {n * 7} in"})
            begun = time.perf_counter()
            await tool.run(args, CallContext(services))
            spent.append(time.perf_counter() - begun)
        return statistics.median(spent)

    small, large = (asyncio.run(edit(f"{lines}.txt", lines)) for lines in (400, 20_000))
    TABLE.row("edit of a file of 1 MB", ms(large), f"of 20 kB {ms(small)}")


def long_sessions(bench: Bench) -> None:
    with Store.open(Path(bench.environment["WOLO_HOME"]) / "data") as store:
        make_turns(store, bench.work, 300)
        make_compacted(store, bench.work, HUGE_ENTRIES)
    first = {name: _first_ms(bench, "-s", name) for name in ("turns", "compacted")}
    ratio = first["compacted"] / first["turns"]
    TABLE.row("first request after 300 turns", f"{first['turns']:.0f} ms", "")
    TABLE.row(f"first request after {HUGE_ENTRIES:,} entries", f"{first['compacted']:.0f} ms", f"{ratio:.2f} × 300 turns")


def _first_ms(bench: Bench, *more: str) -> float:
    bench.ask("text", *more)  # the first turn of a session that was made adds it to the index
    return statistics.median(bench.ask("text", *more).first_request_s for _ in range(ROUNDS)) * 1000


def many_turns(bench: Bench) -> None:
    (bench.work / "notes.txt").write_text("".join(f"line {n}\n" for n in range(TURNS + 1)))
    run: Run = bench.ask(f"reads-{TURNS}", "-s", "reads", *NO_SANDBOX)
    early, late = (p10(gaps) * 1000 for gaps in (run.turns_s[:200], run.turns_s[-200:]))
    TABLE.row(f"read turn, last 200 of {TURNS:,}, p10", f"{late:.2f} ms", f"{late / early:.2f} × the first 200")
    TABLE.row(f"peak memory, {TURNS:,} read turns", f"{run.peak_mb:.0f} MB", "")


def many_sessions(bench: Bench) -> None:
    own = bench.environment["WOLO_HOME"]
    bench.environment["WOLO_HOME"] = str(sessions.HOME)
    sessions.make_store(bench.work)
    runs = [bench.run([bench.python, bench.wolo, "sessions", "list", "--all"]) for _ in range(ROUNDS)]
    TABLE.row(f"sessions list --all, {SESSIONS:,} sessions", f"{best(runs, 'wall_s') * 1000:.0f} ms", "")
    with Store.open(sessions.HOME / "data") as store:
        sessions.find(store, "session")
        TABLE.row("search of all, a common word", ms(median(ROUNDS, lambda: sessions.find(store, "session"))), "")
        TABLE.row("resume picker, all sessions", ms(median(ROUNDS, store.list)), "")
    bench.environment["WOLO_HOME"] = own


def many_tools(bench: Bench) -> None:
    home = bench.work / "tools"
    server = {"command": sys.executable, "args": [str(ROOT / "tests" / "fakes" / "mcp_plain.py"), f"many-{TOOLS}"]}
    config = home / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    own = bench.environment["WOLO_HOME"]
    bench.environment["WOLO_HOME"] = str(home)
    without = _first_ms(bench)
    config.write_text(f"[mcp_servers.many]\ncommand = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}\n")
    TABLE.row(f"first request with {TOOLS} MCP tools", f"{_first_ms(bench):.0f} ms", f"without {without:.0f} ms")
    bench.environment["WOLO_HOME"] = own


def processes(bench: Bench) -> None:
    bench.environment["WOLO_HOME"] = str(bench.work / "concurrent")
    alone = statistics.median(bench.ask("reads-50").turns_s) * 1000
    runs = sessions.together([bench.with_server(ScriptedServer()) for _ in range(sessions.PROCESSES)], "reads-50")
    each = statistics.median(gap * 1000 for run in runs for gap in run.turns_s)
    TABLE.row(f"read turn, {sessions.PROCESSES} wolos at once", f"{each:.1f} ms", f"alone {alone:.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
