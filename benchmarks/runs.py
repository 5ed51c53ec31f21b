"""Shared by the benchmarks: runs of a command against the scripted server, statistics, and the table that is saved."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from scripted import Log, ScriptedServer  # noqa: E402  # it needs the path above

INSTALLED = ROOT / "build" / "bench"
RESULTS = Path(__file__).parent / "results.md"
TIMED = Path(__file__).parent / "timed.py"


@dataclass(frozen=True)
class Run:
    """One run of a command; seconds, and megabytes of the largest of its processes."""

    log: Log
    started: float
    wall_s: float
    cpu_s: float
    """User and system time of the process and its finished children."""
    peak_mb: float

    @property
    def first_request_s(self) -> float:
        return self.log.arrived[0] - self.started

    @property
    def turns_s(self) -> list[float]:
        """Times from the end of each answer to the arrival of the next request."""
        return [after - before for before, after in zip(self.log.answered, self.log.arrived[1:], strict=False)]

    @property
    def turns_to_head_s(self) -> list[float]:
        """The same to the head of the next request: without the transfer of its body, which the server receives."""
        return [after - before for before, after in zip(self.log.answered, self.log.begun[1:], strict=False)]


def run(server: ScriptedServer, argv: Sequence[str | Path], cwd: Path, env: dict[str, str]) -> Run:
    """Exits with the output of the command when it fails."""
    log = server.fresh_log()
    with tempfile.NamedTemporaryFile() as times:
        done = subprocess.run(
            [sys.executable, "-I", "-S", TIMED, times.name, *argv],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        measured = json.load(times)
    if measured.pop("exit_code") != 0:
        raise SystemExit(f"{argv[0]} failed: {(done.stdout + done.stderr).decode(errors='replace')}")
    return Run(log, **measured)


def install() -> Path:
    """Installs this checkout as a wheel, compiled to bytecode; returns the interpreter of its environment."""
    python = INSTALLED / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", INSTALLED], check=True)
    quiet = ["-qq", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", "install", *quiet, ROOT], check=True, env=environment)
    subprocess.run([python, "-m", "pip", "install", *quiet, "--force-reinstall", "--no-deps", ROOT], check=True, env=environment)
    subprocess.run([python, "-m", "compileall", "-q", INSTALLED / "lib"], check=False, env=environment, stdout=subprocess.DEVNULL)
    return python


def base_environment() -> dict[str, str]:
    """The variables of this process that a benchmarked command gets."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


def best(runs: Sequence[Run], name: str) -> float:
    return min(getattr(run, name) for run in runs)


def p10(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=10)[0]


def fsync_ms(folder: Path) -> float:
    """Median time of a durable append of 2 kB: the least that a commit takes."""
    samples = []
    with open(folder / "fsync", "wb") as file:
        for _ in range(100):
            started = time.perf_counter()
            file.write(b"x" * 2048)
            file.flush()
            os.fdatasync(file.fileno())
            samples.append(time.perf_counter() - started)
    return statistics.median(samples) * 1000


class Table:
    """A table that is printed row by row and saved as one section of results.md."""

    def __init__(self, title: str, *columns: str) -> None:
        self.title = title
        self._rows = [columns]

    def row(self, *cells: str) -> None:
        if len(self._rows) == 1:
            print(f"\n{self.title} · {machine()}\n")
            self._print(self._rows[0])
        self._rows.append(cells)
        self._print(cells)

    def _print(self, cells: Sequence[str]) -> None:
        first, *rest = cells
        print(f"{first:<48}" + "".join(f" {cell:>22}" for cell in rest), flush=True)

    def save(self) -> None:
        """Replaces the section of this title in results.md."""
        head, *body = self._rows
        lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body)]
        section = f"## {self.title}\n\n{datetime.date.today()} · {machine()}\n\n" + "\n".join(lines) + "\n"
        intro, *sections = (RESULTS.read_text() if RESULTS.exists() else "# Last results of `make bench`\n").split("\n## ")
        kept = {each.partition("\n")[0]: f"## {each.strip()}\n" for each in sections} | {self.title: section}
        RESULTS.write_text("\n".join([intro.strip() + "\n", *(kept[title] for title in sorted(kept))]))


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else []
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())
    system = f"{platform.system()} {platform.release()}"
    load = f"load {os.getloadavg()[1]:.1f}"
    return f"{model.strip()}, {os.cpu_count()} cores · {system} · Python {platform.python_version()} · {load}"
