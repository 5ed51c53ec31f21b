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
from typing import Any, Literal

from msgspec import Struct

from wolo.errors import ToolError
from wolo.guard.secrets.redactor import Secrets
from wolo.places import make_private
from wolo.tools.clipping import clean
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import MOST_PROCESSES, Cause, Processes, Program, ProgramStart
from wolo.workspace.processes.process_tree import TreeProcess

MOST_RUNNING = 20
CROWDED = f"ended because it started more than {MOST_PROCESSES} processes"
_KEPT_S = 30 * 24 * 3600
"""Seconds until the output of a detached job, or of a killed process, is deleted."""
_SHOWN_CHARS = 60

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
    def __init__(self, id: int, command: str, program: Program, spool: JobOutput, *, confined: bool) -> None:
        self.id = id
        self.command = command
        self.program = program
        self.spool = spool
        self.confined = confined
        """Runs inside the sandbox, which ends with wolo."""
        self.ending: JobEnd | None = None
        self.is_stopping = False
        self.is_detached = False
        self.is_reported = False
        """The model has been told how the job ended."""
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


Alternatives = tuple[tuple[str, ...], ...]
"""Each is pieces of text that a line holds in this order."""
_MOST_PATTERN_CHARS = 1000


def read_pattern(pattern: str) -> Alternatives:
    """Text, `|` between alternatives, `.*` for any characters: matched in linear time, whatever is printed. Raises ToolError."""
    if not pattern or len(pattern) > _MOST_PATTERN_CHARS:
        raise ToolError(f"`pattern` has 1 to {_MOST_PATTERN_CHARS:,} characters.")
    alternatives, piece, rest = [[""]], "", pattern
    while rest:
        if rest.startswith(".*"):
            alternatives[-1].append("")
            rest = rest[2:]
            continue
        piece, rest = rest[0], rest[1:]
        if piece == "|":
            alternatives.append([""])
            continue
        if piece in "[]()+*?^${}" or (piece == "\\" and (not rest or rest[0].isalnum())):
            raise ToolError(
                "`pattern` is text; `|` separates alternatives, `.*` is anything; put a backslash before []()+*?^${}."
            )
        if piece == "\\":
            piece, rest = rest[0], rest[1:]
        alternatives[-1][-1] += piece
    if not all(any(pieces) for pieces in alternatives):
        raise ToolError("An alternative of `pattern` is empty, so every line would match.")
    return tuple(map(tuple, alternatives))


def find_line(alternatives: Alternatives, text: str) -> str | None:
    """Returns the first line that holds the pieces of an alternative."""
    return next((line for line in text.splitlines() if any(_holds(line, pieces) for pieces in alternatives)), None)


def _holds(line: str, pieces: tuple[str, ...]) -> bool:
    at = 0
    for piece in pieces:
        if (start := line.find(piece, at)) < 0:
            return False
        at = start + len(piece)
    return True


class BackgroundJobs:
    def __init__(self, processes: Processes, folder: Path, secrets: Secrets | None = None) -> None:
        """`folder` holds the output, one file per job; `secrets` are redacted in it."""
        self.on_change: Callable[[Job], None] = lambda job: None
        """Called at every start and end of a job. Must not raise."""
        self._processes = processes
        self._folder = folder
        self._secrets = secrets or Secrets()
        self.unreported: list[Job] = []
        """Jobs that ended since the last `news`."""
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
        try:
            program = self._processes.start(start, spool.add, in_background=True)
        except OSError:
            spool.remove()
            raise
        named = self._secrets.hide_data(command.encode()).decode()
        job = Job(len(self._jobs) + 1, named, program, spool, confined=confined)
        self._jobs.append(job)
        watcher = asyncio.get_running_loop().create_task(self._watch(job, timeout_s))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        self.on_change(job)
        return job

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
        reading = self._processes.detach(job.program)
        if reading is None:
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

    def news(self) -> list[str]:
        """Returns one line for each job that ended since the last call, unless the model knows already."""
        ended, self.unreported = self.unreported, []
        return [f"[{job.name} has ended: {job.ending}]" for job in ended if not job.is_reported]

    def close(self) -> None:
        """Deletes the output of all jobs except detached ones. Call it after their processes have ended."""
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
            self.on_change(job)


MAX_FILE_BYTES = 32 * 1024 * 1024
_NEWS_BYTES = 256 * 1024
"""Bytes saved from each end of unread output."""
_NEWEST_BYTES = 16 * 1024
_LONGEST_LINE_BYTES = 64 * 1024
"""An unfinished line beyond this length is passed on in pieces."""


class JobOutput:
    """Output of one job: all of it in a file up to a limit, and the unread part in memory. Whole lines are passed on; reading
    includes an unfinished line."""

    def __init__(self, path: Path, secrets: Secrets) -> None:
        """Raises OSError when the file cannot be created."""
        self.path = path
        self._secrets = secrets
        self.size_bytes = 0
        self.newest = b""
        """The last lines, whether they were read or not."""
        self.listeners: list[Callable[[bytes], None]] = []
        """Called with new lines, and with the unfinished one at each change; secrets are redacted. Must not raise."""
        self._unread = CapturedOutput(_NEWS_BYTES)
        self._line = bytearray()
        self._kept_bytes = 0
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def add(self, chunk: bytes) -> None:
        self._line += chunk
        whole = self._line.rfind(b"\n") + 1
        if not whole and len(self._line) > _LONGEST_LINE_BYTES:
            whole = len(self._line)
        if whole:
            self._pass_on(whole)
        if self._line and self.listeners:
            self._notify(self._unfinished_line())

    def peek(self) -> bytes:
        """Returns unread output with the unfinished line, and leaves it unread."""
        head, tail = self._unread.peek()
        return head + (b"\n" if tail else b"") + tail + self._unfinished_line()

    def _unfinished_line(self) -> bytes:
        """Without an end that may be part of a secret."""
        text = self._secrets.hide_data(b"".join(clean(bytes(self._line))))
        return text[: len(text) - self._secrets.count_unfinished(text)]

    def _notify(self, text: bytes) -> None:
        for listener in self.listeners:
            listener(text)

    @property
    def has_unread(self) -> bool:
        return self._unread.size_bytes > 0 or bool(self._line)

    def read_new(self) -> bytes:
        """Returns output since the last read; the middle is omitted when it is long."""
        self._pass_on(len(self._line))
        unread, self._unread = self._unread, CapturedOutput(_NEWS_BYTES)
        head, tail = unread.take()
        note = f"\n[… {unread.omitted_bytes:,} bytes left out …]\n".encode() if unread.omitted_bytes else b""
        return head + note + tail

    def close(self) -> None:
        """Completes the file and notes in it what is missing."""
        if self._fd < 0:
            return
        self._pass_on(len(self._line), is_last=True)
        if self.size_bytes > self._kept_bytes:
            self._write(f"\n[… {self.size_bytes - self._kept_bytes:,} bytes were not saved; their end follows: …]\n".encode())
            self._write(self.newest[-(self.size_bytes - self._kept_bytes) :])
        os.close(self._fd)
        self._fd = -1

    def remove(self) -> None:
        self.close()
        with suppress(OSError):
            self.path.unlink()

    @property
    def room_bytes(self) -> int:
        return MAX_FILE_BYTES - self._kept_bytes

    def _pass_on(self, size: int, *, is_last: bool = False) -> None:
        """Holds back text that may be part of a secret, until more output, the end of its line, or the end of the job."""
        text = self._secrets.hide_data(b"".join(clean(bytes(self._line[:size]))))
        held = 0 if is_last or text.endswith(b"\n") else self._secrets.count_unfinished(text)
        self._line[:size] = text[len(text) - held :]
        text = text[: len(text) - held]
        self.size_bytes += len(text)
        self._unread.add(text)
        self._notify(text)
        self.newest = (self.newest + text[-_NEWEST_BYTES:])[-_NEWEST_BYTES:]
        if kept := text[: self.room_bytes]:
            self._write(kept)
            self._kept_bytes += len(kept)

    def _write(self, text: bytes) -> None:
        """A full disk affects the file only, not the job."""
        with suppress(OSError):
            while text:
                text = text[os.write(self._fd, text) :]
