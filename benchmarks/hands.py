"""`make bench`: verdicts, the sandbox, edits, checkpoints, searches and floods of output, each with its floor and budget.

Nothing here passes or fails.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from runs import Table

from wolo.guard.intents import RunIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import find_mode
from wolo.guard.rules import parse_rule
from wolo.guard.sandbox.bubblewrap import Bubblewrap, Namespaces, can_use_namespaces, find_binary
from wolo.guard.sandbox.landlock_sandbox import Landlock, is_possible
from wolo.guard.sandbox.profile import profile_for
from wolo.guard.sandbox_contract import Sandbox, SandboxedCommand
from wolo.tools.background.background_jobs import BackgroundJobs
from wolo.tools.search.grep import Grep, GrepArgs
from wolo.tools.search.ripgrep import stand_in
from wolo.tools.tool import CallContext, ShellState, ToolServices
from wolo.tools.toolbox import Toolbox
from wolo.workspace.checkpoints.tracker import FileTracker
from wolo.workspace.files.file_reading import FileLedger
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import Processes, ProgramStart
from wolo.workspace.root import Workspace

RULES = ("shell:pytest *", "shell:git push *", "shell:npm run build")
COMMAND = "pytest -q tests/unit -k parser --maxfail 3"
MANY_FILES = 20_000
MOST_FILES = 100_000
FLOOD = "yes | head -c 2G"
TABLE = Table("Tools and the guard", "", "wolo", "floor and budget")


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="wolo-bench-")).resolve()
    try:
        verdicts(folder)
        sandboxes(folder)
        edits(folder)
        checkpoints(folder)
        searches(folder)
        flood(folder)
        TABLE.save()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def verdicts(folder: Path) -> None:
    judge = Judge(find_mode("ask"), [parse_rule(rule, "allow") for rule in RULES], folder)
    for what, command in (("a plain command, three rules", COMMAND), ("a safe command", "cat src/main.py | head -20")):
        verdict = partial(judge.judge, "shell", [RunIntent(command, folder)])
        verdict()
        TABLE.row(f"verdict: {what}", f"{median(2000, verdict) * 1e6:.0f} µs", "budget 50 µs")


def sandboxes(folder: Path) -> None:
    """Each form of the sandbox that this machine has, not only the one that wolo would choose."""
    work = folder / "sandbox"
    (work / ".git").mkdir(parents=True)
    profile = profile_for((work,), (), folder / "state")
    plain_s, plain_cpu_s = asyncio.run(command_cost(work, None))
    beside = f"without a sandbox {ms(plain_s)}, CPU {ms(plain_cpu_s)}; budget 25 ms"
    binary = find_binary(profile.writable)
    forms = (
        partial(Bubblewrap, binary) if binary else None,
        Namespaces if can_use_namespaces() else None,
        Landlock if is_possible() else None,
    )
    for form in filter(None, forms):
        sandbox = form(profile)
        try:
            took_s, used_s = asyncio.run(command_cost(work, sandbox))
        finally:
            sandbox.close()
        TABLE.row(f"sandbox ({sandbox.backend}): bash -c true", f"{ms(took_s)}, CPU {ms(used_s)}", beside)


async def command_cost(work: Path, sandbox: Sandbox | None) -> tuple[float, float]:
    """Median time until everything that the command started has ended, and mean CPU time with wolo's own part."""
    processes, env, spent = Processes(), {"PATH": os.environ["PATH"]}, []
    before_s = cpu_s()
    argv = ("bash", "-c", "true")
    for _ in range(30):
        begun = time.perf_counter()
        made = sandbox.wrap(argv, work) if sandbox else SandboxedCommand(argv)
        start = ProgramStart(
            argv=made.argv, cwd=work, env=env, pass_fds=made.pass_fds, cleanup=made.cleanup, is_alone=made.is_alone
        )
        await processes.run(start, 60, CapturedOutput())
        if made.has_begun():  # otherwise a socket that it hides has just gone
            spent.append(time.perf_counter() - begun)
    processes.close_all()
    return statistics.median(spent), (cpu_s() - before_s) / len(spent)


def cpu_s() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def edits(folder: Path) -> None:
    work = folder / "edits"
    work.mkdir()
    services = new_services(work, folder)
    toolbox = Toolbox()
    lines = "".join(f"line {n} of a file that is edited\n" for n in range(600))
    (work / "file.txt").write_text(lines)

    async def edit() -> float:
        spent = []
        for n in range(100):
            tool, args = toolbox.decode("edit", {"path": "file.txt", "old": f"line {n} of", "new": f"line {n} in"})
            begun = time.perf_counter()
            await tool.run(args, CallContext(services))
            spent.append(time.perf_counter() - begun)
        return statistics.median(spent)

    bare = median(100, lambda: bare_write(work / "bare.txt", lines))
    TABLE.row("edit of a 20 kB file, with undo", ms(asyncio.run(edit())), f"bare write and fsync {ms(bare)}, budget 2 ms")
    large = work / "large.txt"
    large.write_bytes(b"a line of a large file\n" * (100 * 1024 * 1024 // 23))

    async def refused() -> str:
        tool, args = toolbox.decode("edit", {"path": "large.txt", "old": "nothing like it", "new": "x"})
        try:
            return (await tool.run(args, CallContext(services))).text
        except Exception as error:
            return str(error)

    begun = time.perf_counter()
    output = asyncio.run(refused())
    TABLE.row("edit of a 100 MB file", ms(time.perf_counter() - begun), f"budget 5 s; {output[:60]}")
    large.unlink()


def checkpoints(folder: Path) -> None:
    work = folder / "many"
    make_files(work, MANY_FILES)
    watch = FileTracker(folder / "data" / "checkpoints", (work,), "session")
    first = timed(lambda: watch.before_command("first"))
    watch.after_command("first")
    bare = median(5, lambda: sum(1 for _ in stats(work)))

    def incremental() -> None:
        (work / "dir1" / "file1.txt").write_text(str(time.perf_counter()))
        watch.before_command("call")

    spent = []
    for _ in range(7):
        spent.append(timed(incremental))
        watch.after_command("call")
    watch.close()
    floor = f"stat of all {ms(bare)}, budget 150 ms; the first {first:.2f} s"
    TABLE.row(f"checkpoint of {MANY_FILES:,} files, one changed", ms(statistics.median(spent)), floor)


def searches(folder: Path) -> None:
    work = folder / "most"
    make_files(work, MOST_FILES)
    services = new_services(work, folder)
    for what, program in (("ripgrep", None), ("the fallback", stand_in())):
        if program is None and shutil.which("rg") is None:
            continue

        async def search(program: Any = program) -> str:
            return (await Grep(program).run(GrepArgs("nowhere to be found"), CallContext(services))).text

        begun = time.perf_counter()
        output = asyncio.run(search()).splitlines()[-1]
        TABLE.row(
            f"grep over {MOST_FILES:,} files, {what}", f"{time.perf_counter() - begun:.1f} s", f"budget 10 s; {output[:60]}"
        )


def flood(folder: Path) -> None:
    work = folder / "flood"
    work.mkdir()
    services = new_services(work, folder)

    async def shell() -> str:
        tool, args = Toolbox().decode("shell", {"command": FLOOD})
        return (await tool.run(args, CallContext(services))).text

    bare = timed(lambda: subprocess.run(["bash", "-c", f"{FLOOD} > /dev/null"], check=True))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    asyncio.run(shell())
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    TABLE.row(FLOOD, f"{time.perf_counter() - begun:.1f} s, +{grown:.0f} MB", f"bare {bare:.1f} s, budget 30 s and 50 MB")


# Fixtures


def new_services(work: Path, folder: Path) -> ToolServices:
    processes = Processes(folder / "commands")
    outputs = folder / "outputs"
    outputs.mkdir(exist_ok=True)

    def save(name: str, data: bytes) -> Path:
        path = outputs / name
        path.write_bytes(data)
        return path

    tracker = FileTracker(folder / "data" / work.name, (work,), "session")
    judge = Judge(find_mode("ask"), (), work)
    return ToolServices(
        workspace=Workspace(work),
        is_readable=judge.readable,
        all_readable=judge.all_readable,
        ledger=FileLedger(folder / "locks"),
        save_output=save,
        shell=ShellState(work, processes, BackgroundJobs(processes, folder / "jobs")),
        tracker=lambda: tracker,
    )


def make_files(work: Path, count: int) -> None:
    for n in range(count):
        place = work / f"dir{n // 100}"
        if n % 100 == 0:
            place.mkdir(parents=True)
        (place / f"file{n % 100}.txt").write_text(f"file {n}\n" * 20)


def stats(work: Path) -> Iterator[os.stat_result]:
    for folder, _, names in os.walk(work):
        for name in names:
            yield os.lstat(f"{folder}/{name}")


def bare_write(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def median(times: int, work: Callable[[], object]) -> float:
    return statistics.median(timed(work) for _ in range(times))


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 10 else f"{seconds:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
