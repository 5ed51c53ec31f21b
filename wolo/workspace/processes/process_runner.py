"""Runs programs in sessions of their own, with limits on time and output, and ends all they started."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from wolo.workspace.processes import process_table, process_tree
from wolo.workspace.processes.output_capture import CapturedOutput, OnOutput, OutputReader
from wolo.workspace.processes.process_table import MARK_NAME, Mark, count_tasks, fix_mark, is_apart, limit, new_mark

if sys.platform == "win32":
    from wolo.workspace.processes.windows_job import CREATION_FLAGS, JobTree
else:
    CREATION_FLAGS = 0
GRACE_S = 1.5
"""Between TERM and KILL after a timeout or a cancellation."""
INTERRUPT_GRACE_S = 0.2
"""The same while the user waits for the keyboard."""
_FADING_S = 0.5
"""Longest wait for a namespace to end."""
_DRAIN_S = 0.3
"""Longest wait for output after the program has ended, when another process holds its pipe."""
_CLOSING_GRACE_S = 0.5
MOST_PROCESSES = 1000
"""Per command."""
_LOOK_EVERY_S = 0.1
_POLL_EVERY_S = 0.01
_MAX_LEFTOVERS = 24
"""A command that leaves more processes is not starting a server: all of them are ended."""


Cleanup = Callable[[], None]
"""Must not raise."""


class ChildProcess(Protocol):
    """What is used of `Popen`."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...

    def wait(self, timeout_s: float | None = None, /) -> int: ...


class ProgramStart(Struct, frozen=True, kw_only=True):
    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    stdin: int | None = None
    """A descriptor to read from; None for no input."""
    stdout: int | None = None
    """A descriptor to write to; None merges it with stderr."""
    has_terminal: bool = False
    """Input and output are a terminal of its own; `Program.output` reads wolo's side."""
    pass_fds: Sequence[int] = ()
    cleanup: Cleanup = lambda: None
    """Called once when everything the program started has ended."""
    has_begun: Callable[[], bool] = lambda: True
    """After the end: False when the sandbox failed before the program started; it can be retried."""
    why_ended: Callable[[], str] = lambda: ""
    """Asked now and then: with a reason the program is ended."""
    is_alone: bool = False
    """Ends everything the program leaves running."""
    before_exec: Callable[[], None] | None = None
    """Called in the new process, between fork and exec: system calls only."""
    spawn: Callable[..., ChildProcess] = subprocess.Popen
    """Is called as `Popen` is."""


Cause = Literal["exited", "timed_out", "crowded"]
"""It ended by itself, timed out, or started far too many processes."""


class Finished(Struct, frozen=True):
    exit_code: int
    """The program's code; minus the signal's number after a signal."""
    elapsed_s: float
    cause: Cause = "exited"
    leftovers: tuple[process_tree.TreeProcess, ...] = ()
    """Processes left running; they end with wolo."""
    overrun: bool = False
    """It left more than the limit; all of them were ended."""

    @property
    def timed_out(self) -> bool:
        return self.cause == "timed_out"


class Program:
    def __init__(
        self,
        process: ChildProcess,
        tree: process_tree.ProcessTree,
        output: OutputReader,
        cleanup: Cleanup,
        num_tasks: int,
        why_ended: Callable[[], str],
    ) -> None:
        """`tasks` is `count_tasks` before the start."""
        self.tree, self.output = tree, output
        self.started = time.monotonic()
        self._process, self._cleanup, self._tasks = process, cleanup, num_tasks
        self.why_ended = why_ended
        """The reason of the sandbox to end it; empty if there is none."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int:
        """The program's code; minus the signal's number after a signal."""
        code = self._process.returncode
        return -9 if code is None else code

    async def wait(self, timeout_s: float | None, is_held: Callable[[], bool] = lambda: False) -> Cause:
        """Waits for the end, or ends it with all it started on a timeout. While `is_held`, its time does not run."""
        try:
            with _watch_exit(self._process) as (exited, pause_s):
                async with asyncio.timeout(timeout_s) as limit:
                    looked_at = time.monotonic()
                    while self._process.poll() is None:
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(pause_s):
                                await exited.wait()
                                break
                        since, looked_at = looked_at, time.monotonic()
                        if is_held() and (ends_at := limit.when()) is not None:
                            limit.reschedule(ends_at + looked_at - since)
                        self.tree.wait_for_orphans()
                        if self._end_if_too_many():
                            self.reap()
                            return "crowded"
                        if self.why_ended():
                            await self.tree.end(INTERRUPT_GRACE_S)
                            self.reap()
            self._process.wait()
        except TimeoutError:
            await self.tree.end(GRACE_S)
            self.reap()
            return "timed_out"
        return "exited"

    def reap(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)

    def forget(self) -> None:
        """Makes it outlive wolo."""
        self._process.returncode = 0

    def _end_if_too_many(self) -> bool:
        """Ends a program with too many processes: the kernel's limit does not bind root.

        The program is stopped while it is counted, or a fork bomb would never be seen whole.
        """
        if count_tasks() - self._tasks <= MOST_PROCESSES:
            return False
        with self.tree.stop_group():
            if self.tree.count() <= MOST_PROCESSES:
                self._tasks += MOST_PROCESSES // 4  # not yet, or caused by another program
                return False
            self.tree.kill(is_leader_held=True)
        return True

    def close_output(self) -> None:
        """Called when everything it started has ended."""
        self.output.close()
        self._cleanup()


class Processes:
    """The programs of one conversation. `close_all` ends them, at the latest when wolo exits."""

    def __init__(self, traces: Path | None = None) -> None:
        """Ends what a killed wolo left running, by its markers in the folder `traces`."""
        self._traces = traces
        self._trace: Path | None = None
        self._mark: Mark | None = None
        self._orphans: process_tree.Orphans | None = None
        self._running: list[Program] = []
        if traces is not None:
            process_tree.end_leftovers(traces)

    async def run(
        self,
        start: ProgramStart,
        timeout_s: float,
        printed: CapturedOutput,
        on_output: OnOutput = lambda chunk: None,
        is_held: Callable[[], bool] = lambda: False,
    ) -> Finished:
        """Runs a program. Returns soon after its end, even when its children hold the output open. While `is_held`, its time
        does not run.

        A cancellation ends the whole tree and is passed on; `printed` holds the output so far. Raises OSError when it cannot be
        started.
        """

        def take(chunk: bytes) -> None:
            printed.add(chunk)
            on_output(chunk)

        program = self.start(start, take)
        try:
            cause = await program.wait(timeout_s, is_held)
            if start.is_alone:
                program.tree.leader_has_ended()
                await program.tree.end(INTERRUPT_GRACE_S)
            leftovers, overrun = await self.finish(program)
        except BaseException:
            await self.end(program, INTERRUPT_GRACE_S)
            raise
        return Finished(program.exit_code, time.monotonic() - program.started, cause, leftovers, overrun)

    def start(self, start: ProgramStart, take: OnOutput, *, in_background: bool = False) -> Program:
        """Starts a program; its output goes to `take`. Raises OSError."""
        if not (hasattr(os, "killpg") or sys.platform == "win32"):
            raise OSError(errno.ENOSYS, "wolo needs process groups to end programs, and this system has none")
        mark = self._next_mark()
        tasks, since = count_tasks(), process_table.uptime_s()
        try:
            if start.has_terminal:
                from wolo.workspace.processes.pseudo_terminal import open_terminal  # noqa: PLC0415  # few commands have one

                reading, writing = open_terminal()
            else:
                reading, writing = os.pipe()
        except OSError:
            start.cleanup()
            raise
        stdin = writing if start.has_terminal else subprocess.DEVNULL
        try:
            with limit(mark.number, tasks):
                process = start.spawn(
                    start.argv,
                    stdin=stdin if start.stdin is None else start.stdin,
                    stdout=writing if start.stdout is None else start.stdout,
                    stderr=writing,
                    cwd=start.cwd,
                    env={**start.env, MARK_NAME: str(mark)},
                    start_new_session=True,
                    pass_fds=start.pass_fds,
                    preexec_fn=start.before_exec,
                    creationflags=CREATION_FLAGS,
                )
            if sys.platform == "win32":
                tree: process_tree.ProcessTree = JobTree(process, mark, MOST_PROCESSES)
            else:
                tree = process_tree.ProcessTree(process.pid, mark, self._orphans, since)
        except BaseException:
            os.close(reading)
            start.cleanup()
            raise
        finally:
            os.close(writing)
        fix_mark(process.pid, mark.number)
        output = OutputReader(reading, take, in_background=in_background)
        program = Program(process, tree, output, start.cleanup, tasks, start.why_ended)
        self._running.append(program)
        return program

    async def finish(self, program: Program) -> tuple[tuple[process_tree.TreeProcess, ...], bool]:
        """After the end: drains the output; returns the processes left running, and whether they were too many and ended."""
        await program.output.drain(_DRAIN_S)
        program.tree.leader_has_ended()
        # The remaining processes, after a short wait for a namespace that is ending
        until = time.monotonic() + _FADING_S
        members = program.tree.members()
        while any(is_apart(member.pid) for member in members) and time.monotonic() < until:
            await asyncio.sleep(0.002)
            members = program.tree.members()
        leftovers = tuple(members)
        overrun = len(leftovers) > _MAX_LEFTOVERS
        if overrun:
            program.tree.kill()
        if leftovers and not overrun:
            program.output.discard()
        else:
            self._forget(program)
        return leftovers, overrun

    async def end(self, program: Program, grace_s: float = GRACE_S) -> None:
        try:
            await program.tree.end(grace_s)
        finally:
            program.reap()
            program.tree.leader_has_ended()
            program.output.read_what_is_there()
            self._forget(program)

    def detach(self, program: Program) -> int | None:
        """Lets a program outlive wolo; returns its output descriptor, which the caller reads.

        None when it cannot be recorded, or the system ends it with wolo.
        """
        name = f"{process_tree.DETACHED}{program.tree.mark.number}"
        if self._traces is None or sys.platform == "win32" or process_tree.write_marker(self._traces, name) is None:
            return None
        self._running.remove(program)
        return program.output.release_descriptor()

    def is_anything_alive(self) -> bool:
        return any(program.tree.is_alive() for program in self._running)

    def has_orphans(self) -> bool:
        """Tells whether an ended program has left a process; True also where that cannot be known."""
        return self._orphans is None or bool(self._orphans.living())

    def close_all(self) -> None:
        """Ends all trees, gently where that is quick. Needs no event loop; may be called again."""
        running, self._running = self._running, []
        told = [one for one in running if one.tree.ask_to_end()]
        deadline = time.monotonic() + _CLOSING_GRACE_S
        while (told := [one for one in told if one.tree.is_ending()]) and time.monotonic() < deadline:
            time.sleep(0.02)
        for one in running:
            one.tree.kill()
            one.reap()
            one.close_output()
        if self._mark is not None:  # processes too short-lived to be seen at the end of their command
            process_tree.end_family(
                self._mark.family, process_tree.detached_numbers(self._traces) if self._traces else (), self._orphans
            )
        self._mark = None
        if self._trace is not None:
            with contextlib.suppress(OSError):
                self._trace.unlink()
        atexit.unregister(self.close_all)

    def _next_mark(self) -> Mark:
        if self._mark is None:
            self._mark = new_mark()
            self._orphans = process_tree.Orphans(self._mark.family) if process_tree.adopt_orphans() else None
            name = f"{self._mark.owner}-{self._mark.family}"
            self._trace = process_tree.write_marker(self._traces, name) if self._traces else None
            if self._trace is None:
                process_tree.end_orphans(process_tree.detached_numbers(self._traces) if self._traces else ())
            elif self._traces is not None:
                process_tree.forget_ended(self._traces)
            atexit.register(self.close_all)
        self._mark = self._mark.next()
        return self._mark

    def _forget(self, program: Program) -> None:
        if program in self._running:
            self._running.remove(program)
            program.close_output()


@contextlib.contextmanager
def _watch_exit(process: ChildProcess) -> Iterator[tuple[asyncio.Event, float]]:
    """An event that is set at the end of the process, and the seconds after which to look at it anyway."""
    exited, loop = asyncio.Event(), asyncio.get_running_loop()
    try:
        fd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # the system has no pidfd (macOS, old kernels)
        yield exited, _POLL_EVERY_S
        return
    loop.add_reader(fd, exited.set)
    try:
        yield exited, _LOOK_EVERY_S
    finally:
        loop.remove_reader(fd)
        os.close(fd)
