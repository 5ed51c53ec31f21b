"""The tools `shell`, which runs a command line without a terminal, and `jobs`, which manages those in the background."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from wolo.errors import SessionError, ToolError
from wolo.guard.intents import Intent, RunIntent
from wolo.guard.sandbox_contract import MOST_TRIES
from wolo.messages.parts import ToolKind
from wolo.tools.background_jobs import Job, read_pattern
from wolo.tools.clipping import clean, clip, clip_and_keep
from wolo.tools.command_tracking import ChangeTracking, LiveOutput, changes_metadata, paths_of, shell_report
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import CallResult, Interrupted, Listing, Output
from wolo.workspace.checkpoints.path_state import ChangedPaths
from wolo.workspace.processes.command_environment import find_program
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import MOST_PROCESSES, Finished, ProgramStart

FILES = "files"
"""Metadata key of the files that a command created, changed and removed."""
_MAX_TIMEOUT_S = 3600.0
_MAX_COMMAND_BYTES = 120_000
"""The system limits one argument to 128 KiB."""
FIRST_LOOK_S = 1.0
"""Seconds to wait for the first output of a job."""


class ShellArgs(Struct, frozen=True):
    command: str
    timeout_s: Annotated[float | None, Meta(description=f"seconds, {_MAX_TIMEOUT_S:g} at most")] = None
    background: Annotated[bool, Meta(description="return at once; see jobs")] = False


class Shell:
    """Run a command line in bash. The working directory persists between calls (`cd` changes it), variables do not. There is
    no keyboard: editors and prompts fail. Long output is cut in the middle and saved in a file. With `background` a server or
    a long build continues as a job while you go on; do not use `&` for that."""

    name: ClassVar[str] = "shell"
    Args: ClassVar[type[Struct]] = ShellArgs
    aliases: ClassVar[Mapping[str, str]] = {
        "cmd": "command",
        "script": "command",
        "timeout": "timeout_s",
        "run_in_background": "background",
        "is_background": "background",
    }
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "execute"

    def intents(self, args: ShellArgs, services: ToolServices) -> Sequence[Intent]:
        _refuse_unusable(args)
        return (RunIntent(args.command, _place(services).cwd),)

    def preview(self, args: ShellArgs, services: ToolServices) -> Output:
        return Output(args.command, "", None, 0.0)

    async def run(self, args: ShellArgs, call: CallContext) -> CallResult:
        _refuse_unusable(args)
        run, looks = _ShellRun(args, call), ChangeTracking(call)
        await looks.before()
        try:
            await call.prepare()
            if args.background:
                begun = await run.as_job()
                return replace(begun, files_changed=paths_of(await looks.find_changes(runs_on=True)))
            try:
                finished = await run.to_its_end()
            except asyncio.CancelledError as error:
                raise Interrupted(run.interruption(looks.after())) from error
            changes = await looks.find_changes(runs_on=bool(finished.leftovers) and not finished.overrun)
            return run.result(finished, changes)
        finally:
            looks.after()


class _ShellRun:
    """Runs one command and reports its result."""

    def __init__(self, args: ShellArgs, call: CallContext) -> None:
        self._command = args.command
        self._limit_s = args.timeout_s
        self._timeout_s = args.timeout_s or call.services.shell_timeout_s
        self._call = call
        self._services = call.services
        self._place = _place(call.services)
        self._printed = CapturedOutput()
        self._progress = LiveOutput(call.progress)
        self._moved_to: Path | None = None
        """None when the shell could not report it: it was killed, replaced itself, or its directory is gone."""
        self._left_running = False
        self._why_ended = ""
        """The reason of the sandbox."""
        self._started = time.monotonic()

    async def to_its_end(self) -> Finished:
        for _ in range(MOST_TRIES - 1):
            finished, has_begun = await self._run_once()
            if has_begun:
                return finished
            self._printed.take()
        return (await self._run_once())[0]

    async def _run_once(self) -> tuple[Finished, bool]:
        with shell_report() as report, self._definitions() as (definitions, fds):
            start = self._start(report.script + definitions, report.fd, *fds)
            try:
                finished = await self._services.shell.processes.run(
                    start.argv,
                    cwd=start.cwd,
                    env=start.env,
                    timeout_s=self._timeout_s,
                    printed=self._printed,
                    on_output=self._progress.add,
                    pass_fds=start.pass_fds,
                    cleanup=start.cleanup,
                    why_ended=start.why_ended,
                    is_alone=start.is_alone,
                )
                self._why_ended = start.why_ended()
                return finished, finished.cause != "exited" or start.has_begun()
            except OSError as error:
                raise _unstartable(error) from error
            finally:
                self._progress.close()
                self._moved_to, self._left_running = report.read()

    async def as_job(self) -> CallResult:
        """Starts the job and waits a moment, so that early failures are reported at once."""
        if self._services.shell.jobs is None:
            raise ToolError("Nothing can run in the background here.")
        jobs = self._services.shell.jobs
        try:
            with self._definitions() as (definitions, fds):
                start = self._start(definitions, *fds, in_background=True)
                job = jobs.start(self._command, start, timeout_s=self._limit_s, confined=self._call.confined)
        except OSError as error:
            raise _unstartable(error) from error
        try:
            await job.wait(FIRST_LOOK_S)
        except asyncio.CancelledError as error:
            if job.is_detached:
                raise Interrupted(
                    CallResult(f"[interrupted: {job.name} was detached and continues]\n", outcome="interrupted")
                ) from error
            await jobs.stop(job)
            job.is_reported = True
            raise Interrupted(
                CallResult("[interrupted: the job was ended; it may have had effects]\n", outcome="interrupted")
            ) from error
        begun = job_report(job, self._services)
        first = f"[{self._place.vanished} no longer exists; this ran in {self._place.cwd}]\n" if self._place.vanished else ""
        return replace(begun, text=f"{first}{begun.text}", is_error=job.ending is not None and job.ending.exit_code != 0)

    def _definitions(self) -> AbstractContextManager[tuple[str, tuple[int, ...]]]:
        """Code that loads what the login shell defines, and its descriptors."""
        login = self._services.shell.login_shell
        # A command is on the list of safe ones for what its programs do, not for aliases of their names.
        return nullcontext(("", ())) if login is None or self._call.only_reads else login.load()

    def _start(self, first: str = "", *fds: int, in_background: bool = False) -> ProgramStart:
        bash = find_program("bash", self._services.workspace)
        shell = [bash, "--noprofile", "--norc", "-c"] if bash else ["/bin/sh", "-c"]
        argv = [*shell, f'{first}__wolo=$1; shift; eval "$__wolo"', Path(shell[0]).name, self._command]
        enclosed = self._call.enclose(argv, self._place.cwd, in_background=in_background)
        return ProgramStart(
            argv=enclosed.argv,
            cwd=self._place.cwd,
            env=self._call.environment(),
            pass_fds=(*fds, *enclosed.pass_fds),
            cleanup=enclosed.cleanup,
            has_begun=enclosed.has_begun,
            why_ended=enclosed.why_ended,
            is_alone=enclosed.is_alone,
        )

    def result(self, finished: Finished, changes: ChangedPaths) -> CallResult:
        notes = [_ending(finished, self._timeout_s)]
        if self._why_ended:
            notes.append(f"the sandbox ended it: {self._why_ended}")
        if finished.overrun:
            notes.append(f"it left {len(finished.leftovers)} processes running; all of them were ended")
        elif finished.leftovers:
            listed = "; ".join(str(member) for member in finished.leftovers)
            notes.append(f"still running in the background until this conversation ends: {listed}")
        elif finished.cause == "exited" and self._call.confined and self._left_running:
            notes.append("the sandbox ended the processes that it left running with &; use background for that")
        code = 128 - finished.exit_code if finished.exit_code < 0 else finished.exit_code
        return self._result([*notes, *self._directory()], code if finished.cause == "exited" else None, changes)

    def interruption(self, changes: ChangedPaths) -> CallResult:
        notes = ["interrupted: the command and everything it started were ended; it may have had effects", *self._directory()]
        return replace(self._result(notes, None, changes), outcome="interrupted")

    def _result(self, notes: list[str], code: int | None, changes: ChangedPaths) -> CallResult:
        body = clip_and_keep(
            self._services.secrets.hide_data(self._output()),
            name=f"shell-{self._call.call_id or 'output'}.txt",
            keep=self._services.save_output,
            dropped_bytes=self._printed.omitted_bytes,
        )
        if code:
            notes = [*notes, *self._call.explain_hidden(f"{self._command}\n{body}")]
        first = [f"{self._place.vanished} no longer exists; this ran in {self._place.cwd}"] if self._place.vanished else []
        text = "".join([*(f"[{note}]\n" for note in first), body or "(no output)\n", *(f"[{note}]\n" for note in notes)])
        view = Output(self._command, body, code, time.monotonic() - self._started)
        files = {FILES: kept} if (kept := changes_metadata(changes)) else {}
        return CallResult(text, view, is_error=code != 0, files_changed=paths_of(changes), metadata=files)

    def _output(self) -> bytes:
        omitted = self._printed.omitted_bytes
        note = f"\n[… {omitted:,} bytes in the middle were not saved …]\n".encode() if omitted else b""
        head, tail = self._printed.take()
        output = io.BytesIO()
        output.writelines(clean(head))
        del head  # both ends in two forms would be several times as large
        output.write(note)
        output.writelines(clean(tail))
        del tail
        if output.tell() and output.getbuffer()[-1] != ord("\n"):
            output.write(b"\n")
        return output.getvalue()

    def _directory(self) -> list[str]:
        """Saves the final directory, and reports it unless it is the expected one."""
        state = self._services.shell
        before, state.cwd = state.cwd, self._moved_to or self._place.cwd
        if state.cwd == before == self._services.workspace.start and self._moved_to:
            return []
        return [f"the next command runs in {state.cwd}"] if state.cwd.is_dir() else []


class _Place(Struct, frozen=True):
    """Directory of a command; `vanished` is the intended directory if it no longer exists."""

    cwd: Path
    vanished: Path | None = None


def _place(services: ToolServices) -> _Place:
    cwd = services.shell.cwd
    if cwd.is_dir():
        return _Place(cwd)
    start = services.workspace.start
    if not start.is_dir():
        raise ToolError(f"The directory {start} no longer exists, so no command can run.")
    return _Place(start, vanished=cwd)


def _refuse_unusable(args: ShellArgs) -> None:
    if not args.command.strip():
        raise ToolError("The command is empty.")
    if "\0" in args.command:
        raise ToolError("The command contains a NUL character.")
    try:
        size = len(os.fsencode(args.command))
    except UnicodeEncodeError as error:
        raise ToolError("The command contains half of a surrogate pair, which no program can receive.") from error
    if size > _MAX_COMMAND_BYTES:
        raise ToolError(f"The command has {size:,} bytes, more than the system accepts; put long text into a file with write.")
    if args.timeout_s is not None and not 0 < args.timeout_s <= _MAX_TIMEOUT_S:
        raise ToolError(f"timeout_s is in seconds, above 0 and at most {_MAX_TIMEOUT_S:g}.")


def _unstartable(error: OSError) -> ToolError:
    if error.errno == errno.E2BIG:
        return ToolError(
            "The command could not be started: it and the user's variables are larger than the system accepts."
            ' The user\'s settings shell.hide and shell.inherit = "core" make room.'
        )
    return ToolError(f"The command could not be started: {error.strerror}.")


def _ending(finished: Finished, timeout_s: float) -> str:
    if finished.cause == "crowded":
        return f"it had started more than {MOST_PROCESSES} processes: all of them were ended"
    if finished.timed_out:
        return f"timed out after {timeout_s:g} s: the command and everything it started were ended"
    if finished.exit_code >= 0:
        return f"exit {finished.exit_code}"
    try:
        name = signal.Signals(-finished.exit_code).name
    except ValueError:
        name = f"signal {-finished.exit_code}"
    return f"exit {128 - finished.exit_code}: ended by {name}"


MAX_WAIT_S = 600.0
_PATIENCE_S = 1.0
"""Seconds to wait for new output when no time is given; polling costs a request each."""
_WAIT_S = 60.0
"""Seconds to wait for a line when no time is given."""
_SHOWN_LINE_CHARS = 300


class JobsArgs(Struct, frozen=True):
    action: Literal["list", "output", "wait", "stop"] = "list"
    id: int | None = None
    wait_s: Annotated[float | None, Meta(description=f"{MAX_WAIT_S:g} at most")] = None
    pattern: Annotated[str | None, Meta(description="of a line: text, `|`, `.*`")] = None


class Jobs:
    """Manage background commands: `output` returns what is new and how one ended; `wait` does so when a line matches; `stop` ends
    it with all it started. You are notified when one ends."""

    name: ClassVar[str] = "jobs"
    Args: ClassVar[type[Struct]] = JobsArgs
    aliases: ClassVar[Mapping[str, str]] = {"job_id": "id", "job": "id", "task_id": "id", "bash_id": "id", "timeout_s": "wait_s"}
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "execute"

    def intents(self, args: JobsArgs, services: ToolServices) -> Sequence[Intent]:
        """Returns none, because the commands were judged when they started."""
        if args.wait_s is not None and not 0 <= args.wait_s <= MAX_WAIT_S:
            raise ToolError(f"wait_s is in seconds, {MAX_WAIT_S:g} at most.")
        if (args.action == "wait") != (args.pattern is not None):
            raise ToolError("`wait` needs a `pattern`." if args.pattern is None else "`pattern` is for the action `wait`.")
        if args.pattern is not None:
            read_pattern(args.pattern)
        return ()

    async def run(self, args: JobsArgs, call: CallContext) -> CallResult:
        if call.services.shell.jobs is None:
            raise ToolError("Nothing can run in the background here.")
        if args.action == "list":
            jobs = call.services.shell.jobs.all
            for job in jobs:
                job.is_reported = job.ending is not None
            lines = tuple(f"{job.name}: {job.state}" for job in jobs)
            text = "".join(f"{line}\n" for line in lines) or "There are no jobs.\n"
            return CallResult(text, Listing("jobs", lines, len(lines)))
        job = call.services.shell.jobs.find(args.id)
        if args.action == "stop":
            await call.services.shell.jobs.stop(job)
        elif args.pattern is not None:
            return await _wait_for_line(job, args.pattern, _WAIT_S if args.wait_s is None else args.wait_s, call.services)
        elif args.wait_s is not None:
            await job.wait(args.wait_s)
        elif not job.spool.has_unread:
            await job.wait(_PATIENCE_S)
        return job_report(job, call.services)


async def _wait_for_line(job: Job, pattern: str, wait_s: float, services: ToolServices) -> CallResult:
    if job.is_detached:
        raise ToolError(f"Job {job.id} was detached, so its lines are not followed; read {job.spool.path}.")
    line = await job.wait_for_line(read_pattern(pattern), wait_s)
    report = job_report(job, services)
    if line is not None:
        note = f"a line matches: {line if len(line) <= _SHOWN_LINE_CHARS else line[:_SHOWN_LINE_CHARS] + '…'}"
    else:
        note = "no line matched before it ended" if job.ending is not None else f"no line matched within {wait_s:g} s"
    return replace(report, text=f"{report.text}[{note}]\n")


def job_report(job: Job, services: ToolServices) -> CallResult:
    """Returns new output and the state of a job."""
    output = job.spool.read_new()
    shown = clip(output)
    job.is_reported = job.ending is not None
    notes = [f"{job.name}: {job.state}"]
    if job.ending is None or shown.is_cut or len(output) < job.spool.size_bytes:
        path = job.spool.path
        if job.ending is not None and not job.is_detached:  # the output of an ended job moves to the files of the session
            with suppress(OSError, SessionError):
                path = services.save_output(f"job-{job.id}.txt", path.read_bytes())
        notes.append(f"all it {'prints' if job.ending is None else 'printed'}: {path} — page it with read")
    text = shown.text or "(nothing new was printed)\n"
    if job.ending is not None and job.ending.shell_code:
        text_of_job = f"{job.command}\n{shown.text}"
        notes += services.variables.explain(text_of_job, is_outside=not job.confined, more=services.session_env)
    lines = [text if text.endswith("\n") else f"{text}\n", *(f"[{note}]\n" for note in notes)]
    code = None if job.ending is None else job.ending.shell_code
    return CallResult("".join(lines), Output(job.command, shown.text, code, job.seconds))
