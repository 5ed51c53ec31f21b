"""Counts of one run that do not depend on the load of the machine: instructions under valgrind, system calls under strace."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

COLLECTED = re.compile(r"Collected : (\d+)")
THREAD = re.compile(r"CLONE_THREAD.* = (\d+)$", re.MULTILINE)
CALL = re.compile(r"^(\w+)\(", re.MULTILINE)


@dataclass(frozen=True)
class Counts:
    """Counts of the main process; None where the program that counts is not installed."""

    instructions: int | None = None
    system_calls: int | None = None
    opens: int | None = None
    commits: int | None = None
    """fdatasync and fsync."""

    def per_turn(self, base: Counts, turns: int) -> Counts:
        """Counts that one turn adds to a run without turns."""
        mine, bases = vars(self), vars(base)
        return Counts(**{name: None if n is None else round((n - bases[name]) / turns) for name, n in mine.items()})


def count(argv: Sequence[str | Path], cwd: Path, env: dict[str, str]) -> Counts:
    env = {**env, "PYTHONHASHSEED": "0"}
    calls = _system_calls(argv, cwd, env) if shutil.which("strace") else None
    return Counts(
        instructions=_instructions(argv, cwd, env) if shutil.which("valgrind") else None,
        system_calls=calls.total() if calls else None,
        opens=calls["open"] + calls["openat"] + calls["openat2"] if calls else None,
        commits=calls["fdatasync"] + calls["fsync"] if calls else None,
    )


def _instructions(argv: Sequence[str | Path], cwd: Path, env: dict[str, str]) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *argv]
    found = COLLECTED.search(_run(command, cwd, env))
    assert found, "valgrind printed no count"
    return int(found[1])


def _system_calls(argv: Sequence[str | Path], cwd: Path, env: dict[str, str]) -> Counter[str]:
    """All threads of the main process; strace writes a file for each of them and for each child."""
    with tempfile.TemporaryDirectory() as folder:
        _run(["strace", "-ff", "-qq", "-o", f"{folder}/trace", *argv], cwd, env)
        traces = {path.suffix[1:]: path.read_text(errors="replace") for path in Path(folder).iterdir()}
    main = min(traces, key=int)
    threads = {main} | {thread for trace in traces.values() for thread in THREAD.findall(trace)}
    return Counter(call for thread in threads for call in CALL.findall(traces.get(thread, "")))


def _run(command: Sequence[str | Path], cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{command} failed: {done.stdout}{done.stderr}")
    return done.stderr
