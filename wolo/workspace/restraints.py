"""What every command is held to, so that a runaway one leaves room for everyone else. Linux only; root is not bound by all."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path

_MAX_NEW_TASKS = 2048
"""Processes and threads beyond those of the whole machine at the start of a command."""
_MAX_FILE_BYTES = 128 * 1024**3
_MAX_CPU_S = 24 * 3600
"""Of one process, for each processor: threads add up."""


def restrain(pid: int) -> None:
    """A program that has just been started, and all that it starts from now on."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, ValueError):
        tasks = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
        for kind, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NPROC, tasks + _MAX_NEW_TASKS),
            (resource.RLIMIT_FSIZE, _MAX_FILE_BYTES),
            (resource.RLIMIT_CPU, _MAX_CPU_S * (os.cpu_count() or 1)),
        ):
            _limit(pid, kind, most)


def _limit(pid: int, kind: int, most: int) -> None:
    soft, hard = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (most if soft == resource.RLIM_INFINITY else min(soft, most), hard))
