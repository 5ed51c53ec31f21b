"""Runs a program with input on stdin and separate stdout and stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from wolo.workspace.processes.output_capture import CapturedOutput, OutputReader
from wolo.workspace.processes.process_runner import INTERRUPT_GRACE_S, Cause, Processes, ProgramStart

_DRAIN_S = 0.3
"""Longest wait for stdout when another process holds it open."""


class ProgramResult(Struct, frozen=True, kw_only=True):
    exit_code: int
    """The program's code; minus the signal's number after a signal."""
    cause: Cause
    stdout: bytes
    stderr: bytes


async def run_with_input(
    processes: Processes,
    argv: Sequence[str],
    data: bytes,
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    kept_bytes: int,
) -> ProgramResult:
    """Raises OSError when it cannot be started. A cancellation ends the whole tree and is passed on."""
    printed, errors = CapturedOutput(kept_bytes), CapturedOutput(kept_bytes)
    reading, writing = os.pipe()
    try:
        with unnamed_file() as file:
            file.write(data)
            file.flush()
            file.seek(0)
            start = ProgramStart(argv=argv, cwd=cwd, env=env, stdin=file.fileno(), stdout=writing)
            program = processes.start(start, errors.add)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    output = OutputReader(reading, printed.add)
    leftovers: Sequence[object] = ()
    try:
        cause = await program.wait(timeout_s)
        await output.drain(_DRAIN_S)
        leftovers, _ = await processes.finish(program)
    except BaseException:
        await processes.end(program, INTERRUPT_GRACE_S)
        raise
    finally:
        if leftovers:
            output.discard()
        else:
            output.close()
    return ProgramResult(
        exit_code=program.exit_code, cause=cause, stdout=b"".join(printed.take()), stderr=b"".join(errors.take())
    )


def unnamed_file() -> IO[bytes]:
    """A file in memory where possible: the input may be secret.

    Unlike a pipe it needs no writer when the program does not read.
    """
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("told"), "w+b")
    import tempfile  # noqa: PLC0415  # few programs get input

    return tempfile.TemporaryFile()
