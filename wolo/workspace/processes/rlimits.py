"""What every command is held to, so that a runaway one leaves room for everyone else. Linux only; root is not bound by all."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from wolo.workspace.processes.process_table import MARK_LIMIT

_MAX_NEW_TASKS = 2048
"""Processes and threads beyond those of the whole machine at the start of a command."""
_MAX_FILE_BYTES = 128 * 1024**3
_MAX_CPU_S = 24 * 3600
"""Of one process, for each processor: threads add up."""


@contextlib.contextmanager
def restrained(number: int) -> Iterator[None]:
    """What is started within the block is held to all that, and bears the mark, from its first moment on.

    For that moment we are held to it ourselves: a limit that is set from outside comes too late for a program that is quick.
    """
    kept = [(kind, limits) for kind, most in _limits(number) if (limits := _lower(kind, most)) is not None]
    try:
        yield
    finally:
        for kind, limits in kept:
            resource.setrlimit(kind, limits)


def count_tasks() -> int:
    """Processes and threads of the whole machine; 0 where the system does not tell."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    except (OSError, IndexError, ValueError):
        return 0


def _limits(number: int) -> list[tuple[int, int]]:
    if sys.platform != "linux":
        return []
    return [
        (MARK_LIMIT, number),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, count_tasks() + _MAX_NEW_TASKS),
        (resource.RLIMIT_FSIZE, _MAX_FILE_BYTES),
        (resource.RLIMIT_CPU, _MAX_CPU_S * (os.cpu_count() or 1)),
    ]


def _lower(kind: int, most: int) -> tuple[int, int] | None:
    """What held before; None where nothing was changed."""
    with contextlib.suppress(OSError, ValueError):
        soft, hard = resource.getrlimit(kind)
        if soft == resource.RLIM_INFINITY or soft > most or kind == MARK_LIMIT:
            resource.setrlimit(kind, (most, hard))
            return soft, hard
    return None
