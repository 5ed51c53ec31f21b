"""Run programs so that they end: a session of their own, no keyboard, bounded output, a limit in time, no survivors."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from wolo.workspace.processes.output_capture import OnOutput, Output, Printed
from wolo.workspace.processes.process_table import (
    MARK_NAME,
    Mark,
    count_tasks,
    fix_mark,
    is_apart,
    new_family,
    new_mark,
    restrained,
)
from wolo.workspace.processes.process_tree import (
    Member,
    ProcessTree,
    detached,
    end_family,
    end_orphans,
    end_what_was_left,
    forget_ended,
    leave_trace,
    let_go,
)

GRACE_S = 1.5
"""Between TERM and KILL when the time is up or somebody has asked for the end."""
INTERRUPT_GRACE_S = 0.2
"""When a person waits for their keyboard."""
_FADING_S = 0.5
"""How long a namespace that ends is waited for."""
_DRAIN_S = 0.3
"""How long output is waited for after the program itself has ended, when something else still holds its pipe."""
_CLOSING_GRACE_S = 0.5
MOST_PROCESSES = 1000
"""Of one command at one time."""
_LOOK_EVERY_S = 0.1
_MAX_LEFTOVERS = 24
"""A command that leaves more processes than this behind does not mean a server: all of them are ended."""


Cleanup = Callable[[], None]
"""Must not raise."""


class Start(Struct, frozen=True, kw_only=True):
    """What is to be run, and how."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    stdin: int | None = None
    """A descriptor that it reads; None: there is nothing to read."""
    stdout: int | None = None
    """A descriptor that it writes to; None: that is taken together with what it says on stderr."""
    pass_fds: Sequence[int] = ()
    tidy: Cleanup = lambda: None
    """Called once when everything the program started has ended. Must not raise."""
    has_begun: Callable[[], bool] = lambda: True
    """After it has ended: False where what was to hold it gave up before the program was started. Try again."""
    is_alone: bool = False
    """All it leaves running is ended with it."""


Cause = Literal["exited", "timed_out", "crowded"]
"""It came to its end; it was ended because its time was up, or because it had started far too many processes."""


class Finished(Struct, frozen=True):
    exit_code: int
    """As the program gave it; minus the signal's number when a signal ended it."""
    seconds: float
    cause: Cause = "exited"
    leftovers: tuple[Member, ...] = ()
    """What the program started and left running; it ends when wolo does."""
    overrun: bool = False
    """It left more behind than is allowed, and all of that was ended."""

    @property
    def timed_out(self) -> bool:
        return self.cause == "timed_out"


class Program:
    """One that was started and has not been let go of."""

    def __init__(self, process: subprocess.Popen[bytes], tree: ProcessTree, output: Output, tidy: Cleanup) -> None:
        self.tree = tree
        self.output = output
        self.started = time.monotonic()
        self._process = process
        self._tidy = tidy
        self._tasks = count_tasks()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int:
        """Of one that has ended; minus the signal's number when a signal ended it."""
        code = self._process.returncode
        return -signal.SIGKILL if code is None else code

    async def wait(self, timeout_s: float | None) -> Cause:
        """Until it has ended, or has had to be ended with everything it started."""
        ending = asyncio.ensure_future(_exit_of(self._process))
        try:
            async with asyncio.timeout(timeout_s):
                while not ending.done():
                    await asyncio.wait({ending}, timeout=_LOOK_EVERY_S)
                    if not ending.done() and self._is_ended_as_crowd():
                        self.reap()
                        return "crowded"
        except TimeoutError:
            await self.tree.end(GRACE_S)
            self.reap()
            return "timed_out"
        finally:
            ending.cancel()
        return "exited"

    def reap(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)

    def forget(self) -> None:
        """It outlives us: nobody waits for it any more."""
        self._process.returncode = 0

    def _is_ended_as_crowd(self) -> bool:
        """The limit on processes does not bind root, and who reaches it keeps the machine busy.

        It is stopped before it is counted: one that doubles while it is looked at is never seen whole.
        """
        if count_tasks() - self._tasks <= MOST_PROCESSES:
            return False
        with self.tree.stopped():
            if self.tree.count() <= MOST_PROCESSES:
                self._tasks += MOST_PROCESSES // 4  # not yet, or it was somebody else
                return False
            self.tree.kill(is_leader_held=True)
        return True

    def is_gone(self) -> None:
        """All of it."""
        self.output.close()
        self._tidy()


class Processes:
    """The programs of one conversation. `close_all` ends what is left of them, at the latest when wolo exits."""

    def __init__(self, traces: Path | None = None) -> None:
        """`traces`: a directory of the user's; what a killed wolo left running, by its trace there, is ended now."""
        self._traces = traces
        self._trace: Path | None = None
        self._mark: Mark | None = None
        self._running: list[Program] = []
        if traces is not None:
            end_what_was_left(traces)

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout_s: float,
        printed: Printed,
        on_output: OnOutput | None = None,
        pass_fds: Sequence[int] = (),
        tidy: Cleanup = lambda: None,
        is_alone: bool = False,
    ) -> Finished:
        """Returns soon after the program itself has ended, even when its children hold on to its output.

        Raises OSError when it cannot be started. A cancellation ends the whole tree and is passed on; `printed` then
        holds what came before. `on_output` must not raise; `tidy` is called once when everything has ended.
        """

        def take(chunk: bytes) -> None:
            printed.add(chunk)
            if on_output is not None:
                on_output(chunk)

        program = self.start(Start(argv=argv, cwd=cwd, env=env, pass_fds=pass_fds, tidy=tidy), take)
        try:
            cause = await program.wait(timeout_s)
            if is_alone:
                program.tree.leader_has_ended()
                await program.tree.end(INTERRUPT_GRACE_S)
            leftovers, overrun = await self.settle(program)
        except BaseException:
            await self.end(program, INTERRUPT_GRACE_S)
            raise
        return Finished(program.exit_code, time.monotonic() - program.started, cause, leftovers, overrun)

    def start(self, start: Start, take: OnOutput, *, in_background: bool = False) -> Program:
        """Everything it prints is handed to `take`, which must not raise. Raises OSError."""
        mark = self._next_mark()
        reading, writing = os.pipe()
        try:
            with restrained(mark.number):
                process = subprocess.Popen(
                    start.argv,
                    stdin=subprocess.DEVNULL if start.stdin is None else start.stdin,
                    stdout=writing if start.stdout is None else start.stdout,
                    stderr=writing,
                    cwd=start.cwd,
                    env={**start.env, MARK_NAME: str(mark)},
                    start_new_session=True,
                    pass_fds=start.pass_fds,
                )
        except BaseException:
            os.close(reading)
            start.tidy()
            raise
        finally:
            os.close(writing)
        fix_mark(process.pid, mark.number)
        output = Output(reading, take, in_background=in_background)
        program = Program(process, ProcessTree(process.pid, mark), output, start.tidy)
        self._running.append(program)
        return program

    async def settle(self, program: Program) -> tuple[tuple[Member, ...], bool]:
        """It has ended: take the rest of its output and see what else it started is still there (True: too much, ended)."""
        await program.output.drain(_DRAIN_S)
        program.tree.leader_has_ended()
        leftovers = await _fading(program.tree)
        overrun = len(leftovers) > _MAX_LEFTOVERS
        if overrun:
            program.tree.kill()
        if leftovers and not overrun:
            program.output.discard()
        else:
            self._forget(program)
        return leftovers, overrun

    async def end(self, program: Program, grace_s: float = GRACE_S) -> None:
        """All of it."""
        try:
            await program.tree.end(grace_s)
        finally:
            program.reap()
            program.output.read_what_is_there()
            self._forget(program)

    def detach(self, program: Program) -> int | None:
        """It goes on when wolo ends, and is nobody's any more. Its output is the caller's to read: the descriptor.

        None where that cannot be noted, so that a later wolo would end it.
        """
        if self._traces is None or not let_go(self._traces, program.tree.mark):
            return None
        self._running.remove(program)
        return program.output.hand_over()

    def is_anything_alive(self) -> bool:
        """Something that a command has started is still there."""
        return any(program.tree.is_alive() for program in self._running)

    def close_all(self) -> None:
        """Ends every living tree, gently where that is quick. Needs no event loop; may be called again."""
        running, self._running = self._running, []
        told = [one for one in running if one.tree.ask_to_end()]
        deadline = time.monotonic() + _CLOSING_GRACE_S
        while (told := [one for one in told if one.tree.is_ending()]) and time.monotonic() < deadline:
            time.sleep(0.02)
        for one in running:
            one.tree.kill()
            one.reap()
            one.is_gone()
        if self._mark is not None:  # whoever was too quick to be seen at the end of its command
            end_family(self._mark.family, detached(self._traces) if self._traces else ())
        self._mark = None
        if self._trace is not None:
            with contextlib.suppress(OSError):
                self._trace.unlink()
        atexit.unregister(self.close_all)

    def _next_mark(self) -> Mark:
        if self._mark is None:
            self._mark = new_mark(new_family())
            self._trace = leave_trace(self._traces, self._mark.family) if self._traces else None
            if self._trace is None:
                end_orphans(detached(self._traces) if self._traces else ())
            elif self._traces is not None:
                forget_ended(self._traces)
            atexit.register(self.close_all)
        self._mark = self._mark.next()
        return self._mark

    def _forget(self, program: Program) -> None:
        if program in self._running:
            self._running.remove(program)
            program.is_gone()


async def _fading(tree: ProcessTree) -> tuple[Member, ...]:
    """What is left, once whatever was held in a namespace of its own has ended with it: the kernel takes a moment."""
    until = time.monotonic() + _FADING_S
    members = tree.members()
    while any(is_apart(member.pid) for member in members) and time.monotonic() < until:
        await asyncio.sleep(0.002)
        members = tree.members()
    return tuple(members)


async def _exit_of(process: subprocess.Popen[bytes]) -> None:
    try:
        fd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        await _poll_for_exit(process)
        return
    loop = asyncio.get_running_loop()
    exited = asyncio.Event()  # a future would have been cancelled already by whoever stops waiting in the same moment
    loop.add_reader(fd, exited.set)
    try:
        await exited.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)
    process.wait()


async def _poll_for_exit(process: subprocess.Popen[bytes]) -> None:
    """Where the system cannot tell us (macOS, old kernels): look, at first often, then less."""
    pause_s = 0.002
    while process.poll() is None:
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.05)
