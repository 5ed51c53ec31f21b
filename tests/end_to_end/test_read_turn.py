"""The system calls of a turn that reads one file, counted as the difference between runs of few and of more such turns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.components import require
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text

FEW, MORE = 3, 9
LOOK, OPEN = "look at the path of the file", "open of the file"
STARTS_THREAD = (
    "clone",
    "clone3",
    "gettid",
    "madvise",
    "mmap",
    "mprotect",
    "munmap",
    "rseq",
    "rt_sigprocmask",
    "set_robust_list",
)
TIMING = ("futex", "epoll_wait", "recvfrom", "getpid", *STARTS_THREAD)
"""Calls whose number depends on the timing of threads: a pool starts another one while the first is still busy."""


def test_reading_turn_syncs_once_and_walks_one_path(provider: ProviderServer, isolated: Path) -> None:
    work = isolated / "work"
    for number in range(MORE):
        (work / f"file{number}.txt").write_text("a line\n")
    os.utime(work, (0, 0))
    _trace(provider, work, 0)  # makes the database
    few, more = (_counted(_trace(provider, work, turns), work) for turns in (FEW, MORE))
    per_turn = {name: round((more[name] - few[name]) / (MORE - FEW)) for name in more | few}
    assert (per_turn["fdatasync"], per_turn.get("fsync", 0)) == (1, 0)
    assert per_turn["getdents64"] == 0
    assert (per_turn[LOOK], per_turn[OPEN]) == (1, 1)
    assert sum(count for name, count in per_turn.items() if name not in (*TIMING, LOOK, OPEN)) <= 72, per_turn


def _trace(provider: ProviderServer, work: Path, turns: int) -> str:
    provider.script(*(call("read", {"path": f"file{number}.txt"}) for number in range(turns)), text("Done."))
    log = work.parent / f"{turns}.strace"
    argv = [sys.executable, "-m", "wolo", "-p", *provider.flags, "Read them."]
    done = subprocess.run(
        [require("strace"), "-f", "-qq", "-o", log, *argv], cwd=work, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return log.read_text(errors="replace")


def _counted(trace: str, work: Path) -> Counter[str]:
    counts = Counter(re.findall(r"^\d+ +(\w+)\(", trace, re.MULTILINE))
    names = rf'"{re.escape(str(work))}/file\d+\.txt"'
    counts[LOOK] = len(re.findall(rf"openat\(AT_FDCWD, {names}, [A-Z_|]*O_PATH", trace))
    counts[OPEN] = len(re.findall(r'openat2?\(\d+, "file\d+\.txt"', trace))
    return counts
