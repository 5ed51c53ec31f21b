"""Runs the programs of an attempt within its resources, and ends everything they started."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.fleet.tasks import Resources
from wolo.workspace.processes.output_capture import OnOutput
from wolo.workspace.processes.process_runner import GRACE_S, INTERRUPT_GRACE_S, ChildProcess, Processes, Program, ProgramStart

_LOOK_EVERY_S = 0.5
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG"""

How = Literal["exited", "timed_out", "crowded", "memory"]


class ProgramEnd(Struct, frozen=True):
    exit_code: int
    """Minus the signal's number after a signal."""
    how: How
    seconds: float


async def run_bounded(
    processes: Processes,
    start: ProgramStart,
    take: OnOutput,
    *,
    timeout_s: float | None,
    resources: Resources,
    seat: int,
    slept_s: Callable[[], float] = lambda: 0.0,
    spawn: Callable[..., ChildProcess] | None = None,
) -> ProgramEnd:
    """Nothing the program started is left. A cancellation ends it and is passed on. `spawn` gets the processors, too.

    `slept_s` is added to the timeout while the program runs. `seat` spreads programs with few processors over the machine.
    Raises OSError when it cannot be started.
    """
    processors = _processors(resources.cpus, seat)
    start = replace(start, before_exec=binding(os.getpid(), processors))
    program = processes.start(replace(start, spawn=partial(spawn, processors=processors)) if spawn else start, take)
    how: How
    try:
        how = await _wait(program, timeout_s, resources, slept_s)
    except BaseException:
        await processes.end(program, GRACE_S)
        raise
    program.tree.leader_has_ended()
    await program.tree.end(INTERRUPT_GRACE_S)
    await processes.finish(program)
    return ProgramEnd(program.exit_code, how, time.monotonic() - program.started)


async def _wait(program: Program, timeout_s: float | None, resources: Resources, slept_s: Callable[[], float]) -> How:
    waiting = asyncio.ensure_future(program.wait(None))
    look_s = None if resources.memory_mb is None and timeout_s is None else _LOOK_EVERY_S
    if timeout_s is not None:
        look_s = min(_LOOK_EVERY_S, timeout_s)
    try:
        while not (await asyncio.wait({waiting}, timeout=look_s))[0]:
            if resources.memory_mb is not None and memory_mb(program) > resources.memory_mb:
                program.tree.kill(is_leader_held=True)
                await waiting
                return "memory"
            if timeout_s is not None and time.monotonic() - program.started >= timeout_s + slept_s():
                await program.tree.end(GRACE_S)
                await waiting
                return "timed_out"
        return waiting.result()
    finally:
        waiting.cancel()


def memory_mb(program: Program) -> float:
    """Resident memory of all its processes; shared pages count for each of them."""
    pages = 0
    for member in program.tree.members():
        with suppress(OSError, IndexError, ValueError), open(f"/proc/{member.pid}/statm", "rb") as file:
            pages += int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def binding(parent: int, processors: Collection[int]) -> Callable[[], None] | None:
    """Binds a new process to its processors, and to its parent: it gets TERM when that one dies in any way."""
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415  # only where programs are started

    call = ctypes.CDLL(None).prctl

    def bind() -> None:
        call(_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
        if processors:
            os.sched_setaffinity(0, processors)

    return bind


def _processors(cpus: float | None, seat: int) -> frozenset[int]:
    """Empty: all of them."""
    if cpus is None or sys.platform != "linux":
        return frozenset()
    there, wanted = sorted(os.sched_getaffinity(0)), math.ceil(cpus)
    if wanted >= len(there):
        return frozenset()
    return frozenset(there[(seat * wanted + at) % len(there)] for at in range(wanted))
