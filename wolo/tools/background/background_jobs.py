"""Background jobs of a conversation, and their output."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from wolo.errors import ToolError
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.message import WOKEN, UserPrompt
from wolo.messages.parts import TextPart
from wolo.places import make_private
from wolo.workspace.processes.output_capture import OnOutput
from wolo.workspace.processes.process_runner import MOST_PROCESSES, Cause, Processes, Program, ProgramStart
from wolo.workspace.processes.process_tree import TreeProcess

if TYPE_CHECKING:
    from wolo.tools.background.job_output import Alternatives, JobOutput, LineWatch
    from wolo.tools.background.job_terminal import JobTerminal

MOST_RUNNING = 20
CROWDED = f"ended because it started more than {MOST_PROCESSES} processes"
_KEPT_S = 30 * 24 * 3600
"""Seconds until the output of a detached job, or of a killed process, is deleted."""
_SHOWN_CHARS = 60
GATHER_S = 1.0
"""Time between a line and the turn that it starts."""
MOST_WAKES_PER_MINUTE = 4
MOST_WAKES_IN_A_ROW = 20
"""Turns without a word of the user in between."""
WOKEN_BY_LINES = (
    "Lines of background jobs that you watch for came while nothing ran; the user wrote nothing. Do what they call for, or end"
    " with one sentence."
)
LAST_WAKE = f"[{MOST_WAKES_IN_A_ROW} turns have started so: later lines wait for the user's next prompt]"

# Daemon that drains the output of a detached job: into a file up to a limit, then discarded.
_READER = (
    "import os, sys\n"
    "if os.fork(): os._exit(0)\n"
    "file, room = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND), int(sys.argv[2])\n"
    "while chunk := os.read(0, 65536):\n"
    "    room -= os.write(file, chunk[:room]) if room > 0 else 0\n"
)


class JobEnd(Struct, frozen=True):
    cause: Cause | Literal["stopped"]
    exit_code: int
    """Negative signal number when a signal ended the job."""
    elapsed_s: float
    leftovers: tuple[TreeProcess, ...] = ()
    """Processes that the job started and left running."""
    why: str = ""
    """The reason of the sandbox to end it."""

    @property
    def shell_code(self) -> int:
        """As in a shell: 128 plus the signal number when a signal ended the job."""
        return 128 - self.exit_code if self.exit_code < 0 else self.exit_code

    def __str__(self) -> str:
        """`exit 1 after 12 s`"""
        how = {"exited": f"exit {self.shell_code}", "stopped": "stopped", "timed_out": "timed out", "crowded": CROWDED}[
            self.cause
        ]
        left = f"; left running until this conversation ends: {'; '.join(map(str, self.leftovers))}" if self.leftovers else ""
        why = f"; the sandbox ended it: {self.why}" if self.why else ""
        return f"{how} after {self.elapsed_s:.0f} s{why}{left}"


class Job:
    def __init__(self, id: int, command: str, program: Program, spool: JobOutput, *, cwd: Path, confined: bool) -> None:
        self.id, self.command, self.cwd = id, command, cwd
        self.program, self.spool = program, spool
        self.confined = confined
        """Runs inside the sandbox, which ends with wolo."""
        self.ending: JobEnd | None = None
        self.is_stopping = False
        self.is_detached = False
        self.is_reported = False
        """The model has been told how the job ended."""
        self.terminal: JobTerminal | None = None
        """None: it has no keyboard."""
        self.ended = asyncio.Event()

    @property
    def name(self) -> str:
        """`job 1 (npm run dev)`"""
        line = " ".join(self.command.split())
        return f"job {self.id} ({line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + '…'})"

    @property
    def state(self) -> str:
        if self.ending is not None:
            return f"ended: {self.ending}"
        how = "detached, runs" if self.is_detached else "runs"
        return f"{how}, {self.seconds:.0f} s, pid {self.program.pid}"

    @property
    def seconds(self) -> float:
        return self.ending.elapsed_s if self.ending is not None else time.monotonic() - self.program.started

    async def wait(self, timeout_s: float) -> None:
        """Returns when the job ends or the timeout has passed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), timeout_s)

    async def wait_for_line(self, alternatives: Alternatives, timeout_s: float) -> str | None:
        """Returns the first matching line of unread and new output. None: the job ended or the timeout passed before it."""
        from wolo.tools.background.job_output import find_line  # noqa: PLC0415  # most conversations have no jobs

        match: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def check(text: bytes) -> None:
            if not match.done() and (line := find_line(alternatives, text.decode(errors="replace"))) is not None:
                match.set_result(line)

        ending = asyncio.create_task(self.ended.wait())
        self.spool.listeners.append(check)
        try:
            check(self.spool.peek())
            ends: tuple[asyncio.Future[Any], ...] = (match, ending)
            await asyncio.wait(ends, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.spool.listeners.remove(check)
            ending.cancel()
        return match.result() if match.done() else None


class JobWakes:
    """Starts turns for lines that the model watches for while nothing runs; a flood of lines starts few."""

    def __init__(
        self, jobs: BackgroundJobs, call_later: Callable[[float, Callable[[], None]], asyncio.TimerHandle] | None = None
    ) -> None:
        """`call_later` is that of the event loop."""
        self.listener: Callable[[], None] | None = None
        """Takes the lines and runs a turn, unless something runs; None: lines wait for the next turn."""
        self._jobs, self._call_later = jobs, call_later
        self._timer: asyncio.TimerHandle | None = None
        self._recent = 0
        """Turns of the last minute."""
        self.num_in_a_row = 0
        """Turns since the user's last prompt; at the most of them lines wait for the next one."""

    def look(self) -> None:
        """Lets the listener know of waiting lines a little later, so that those which follow come along."""
        if self.listener is None or self._timer is not None or not self._jobs.has_matches:
            return
        if self.num_in_a_row < MOST_WAKES_IN_A_ROW and self._recent < MOST_WAKES_PER_MINUTE:
            self._timer = self._after(GATHER_S, self._notify)

    def take(self) -> UserPrompt | None:
        """The prompt of a turn; None: no line waits."""
        if not self._jobs.has_matches:
            return None
        self._recent += 1
        self.num_in_a_row += 1
        self._after(60.0, self._forget)
        words = (WOKEN_BY_LINES, *self._jobs.news(), *((LAST_WAKE,) if self.num_in_a_row == MOST_WAKES_IN_A_ROW else ()))
        parts = (TextPart(text="\n".join(words)),)
        return UserPrompt(role="user", parts=parts, finished=True, origin="job", metadata={WOKEN: True})

    def pause(self) -> None:
        """Lines wait for the user's next prompt: a turn that they started was interrupted or failed."""
        self.num_in_a_row = MOST_WAKES_IN_A_ROW
        self._cancel()

    def reset(self) -> None:
        """The user has written something."""
        self.num_in_a_row = 0

    def close(self) -> None:
        self.listener = None
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _after(self, delay_s: float, function: Callable[[], None]) -> asyncio.TimerHandle:
        return (self._call_later or asyncio.get_running_loop().call_later)(delay_s, function)

    def _notify(self) -> None:
        self._timer = None
        if self.listener is not None:
            self.listener()

    def _forget(self) -> None:
        self._recent -= 1
        self.look()


class BackgroundJobs:
    def __init__(self, processes: Processes, folder: Path, secrets: Secrets | None = None) -> None:
        """`folder` holds the output, one file per job; `secrets` are redacted in it."""
        self.on_change: Callable[[Job], None] = lambda job: None
        """Called at every start and end of a job. Must not raise."""
        self._processes, self._folder = processes, folder
        self._secrets = secrets or Secrets()
        self.unreported: list[Job] = []
        """Jobs that ended since the last `news`."""
        self.watches: dict[Job, LineWatch] = {}
        """They match the lines that the model wants to see as they come."""
        self.wakes = JobWakes(self)
        self._jobs: list[Job] = []
        self._watchers: set[asyncio.Task[None]] = set()

    @property
    def all(self) -> tuple[Job, ...]:
        return tuple(self._jobs)

    @property
    def running(self) -> tuple[Job, ...]:
        """Jobs that end with the conversation."""
        return tuple(job for job in self._jobs if job.ending is None and not job.is_detached)

    @property
    def detached(self) -> tuple[Job, ...]:
        return tuple(job for job in self._jobs if job.ending is None and job.is_detached)

    def find(self, id: int | None) -> Job:
        """Without an id, returns the only job. Raises ToolError."""
        found = [job for job in self._jobs if id in (job.id, None)]
        if len(found) == 1:
            return found[0]
        there = ", ".join(str(job.id) for job in self._jobs)
        if not there:
            raise ToolError("There are no jobs.")
        raise ToolError(f"There is no job {id}; there are {there}." if id is not None else f"Which job? There are {there}.")

    def start(self, command: str, start: ProgramStart, *, timeout_s: float | None, confined: bool) -> Job:
        """Raises OSError when the command cannot be started, ToolError when too many jobs run."""
        if len(self.running) >= MOST_RUNNING:
            start.cleanup()
            raise ToolError(f"{MOST_RUNNING} jobs run already; stop one first.")
        from wolo.tools.background.job_output import JobOutput  # noqa: PLC0415  # most conversations have no jobs

        try:
            make_private(self._folder)
            if not self._jobs:
                for path in self._folder.iterdir():
                    with suppress(OSError):
                        if time.time() - path.stat().st_mtime > _KEPT_S:
                            path.unlink()
            spool = JobOutput(self._folder / f"{os.urandom(6).hex()}-job-{len(self._jobs) + 1}.txt", self._secrets)
        except OSError:
            start.cleanup()
            raise
        terminal: JobTerminal | None = None
        take: OnOutput = spool.add
        if start.has_terminal:
            from wolo.tools.background.job_terminal import JobTerminal  # noqa: PLC0415  # few jobs have one

            terminal = JobTerminal(self._secrets)
            take = terminal.pass_on(spool.add)
        try:
            program = self._processes.start(start, take, in_background=True)
        except OSError:
            spool.remove()
            raise
        named = self._secrets.hide_data(command.encode()).decode()
        job = Job(len(self._jobs) + 1, named, program, spool, cwd=start.cwd, confined=confined)
        if terminal is not None:
            terminal.find_descriptor = lambda: program.output.descriptor
            job.terminal = terminal
        self._jobs.append(job)
        watcher = asyncio.get_running_loop().create_task(self._watch(job, timeout_s))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        self.on_change(job)
        return job

    def watch(self, job: Job, alternatives: Alternatives) -> None:
        """Replaces an earlier pattern of the job."""
        from wolo.tools.background.job_output import LineWatch  # noqa: PLC0415  # as above

        watch = self.watches[job] = LineWatch(alternatives, self.wakes.look)
        job.spool.watchers = [watch.add]

    async def stop(self, job: Job) -> None:
        """Ends the job and its processes: SIGTERM first, SIGKILL later."""
        if job.ending is None:
            job.is_stopping = True
            try:
                await self._processes.end(job.program)
            finally:
                self._end(job, "stopped")

    def detach(self, job: Job) -> None:
        """Lets the job continue when wolo quits. Raises ToolError."""
        if job.ending is not None:
            raise ToolError(f"Job {job.id} has ended.")
        if job.is_detached:
            raise ToolError(f"Job {job.id} is detached already.")
        if job.confined:
            hint = "A command that you allow by a rule runs outside: --allow 'shell:npm run dev'."
            raise ToolError(f"Job {job.id} runs inside the sandbox, which ends with wolo.", hint=hint)
        if (reading := self._processes.detach(job.program)) is None:
            raise ToolError("The job cannot be recorded on disk, so the next start of wolo would end it.")
        job.is_detached = True
        room = job.spool.room_bytes
        job.spool.close()
        os.set_blocking(reading, True)
        try:
            subprocess.run(
                [sys.executable, "-I", "-S", "-c", _READER, job.spool.path, str(room)],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
                check=False,
            )
        finally:
            os.close(reading)

    @property
    def has_matches(self) -> bool:
        """A line that the model watches for has come since the last `news`."""
        return any(watch.has_matches for watch in self.watches.values())

    def news(self) -> list[str]:
        """Returns the lines that were watched for since the last call, and one for each job that ended, unless the model knows
        already."""
        ended, self.unreported = self.unreported, []
        matches = [f"[{job.name}] {line}" for job, watch in self.watches.items() for line in watch.take()]
        for job in [job for job in self.watches if job.ending is not None]:
            del self.watches[job]
        return [*matches, *(f"[{job.name} has ended: {job.ending}]" for job in ended if not job.is_reported)]

    def close(self) -> None:
        """Deletes the output of all jobs except detached ones. Call it after their processes have ended."""
        self.wakes.close()
        for watcher in self._watchers:
            watcher.cancel()
        for job in self._jobs:
            if job.is_detached:
                job.program.forget()
            else:
                job.spool.remove()

    async def _watch(self, job: Job, timeout_s: float | None) -> None:
        cause = await job.program.wait(timeout_s)
        if job.is_stopping:
            return
        leftovers, _ = await self._processes.finish(job.program)
        self._end(job, cause, leftovers)

    def _end(self, job: Job, cause: Cause | Literal["stopped"], leftovers: tuple[TreeProcess, ...] = ()) -> None:
        if job.ending is None:
            seconds, why = time.monotonic() - job.program.started, job.program.why_ended()
            job.ending = JobEnd(cause, job.program.exit_code, seconds, leftovers, why)
            job.spool.close()
            job.ended.set()
            self.unreported.append(job)
            if watch := self.watches.get(job):
                watch.end()
            self.on_change(job)
