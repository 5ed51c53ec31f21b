"""The tools `shell`, which runs a command line without a terminal, and `jobs`, which manages those in the background."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from wolo.errors import ToolError
from wolo.guard.intents import Intent, RunIntent
from wolo.guard.sandbox_contract import MOST_TRIES
from wolo.messages.parts import ToolKind
from wolo.tools.clipping import clean, clip_and_keep
from wolo.tools.command_tracking import ChangeTracking, LiveOutput, changes_metadata, paths_of, shell_report
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import CallResult, Interrupted, Output
from wolo.workspace.checkpoints.path_state import ChangedPaths
from wolo.workspace.processes.command_environment import find_program
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import MOST_PROCESSES, Finished, ProgramStart

if TYPE_CHECKING or sys.platform == "win32":
    from wolo.tools.windows_shell import CONCERN, write_script
if TYPE_CHECKING:
    from wolo.tools.web.command_proxy import CommandProxy

FILES = "files"
"""Metadata key of the files that a command created, changed and removed."""
CONNECTIONS = "connections"
"""Metadata key of the hosts that a command in the sandbox connected to, or tried to."""
_MAX_TIMEOUT_S = 3600.0
_MAX_COMMAND_BYTES = 120_000
"""The system limits one argument to 128 KiB."""
TERMINAL = "linux"
"""The kind of terminal that jobs get: what the emulator understands."""
_TAKE_TERMINAL = '{ : <>"$(tty)"; } 2>/dev/null; '
"""Makes the terminal that of the session, so that Ctrl-C in it is a signal."""
FIRST_LOOK_S = 1.0
"""Seconds to wait for the first output of a job."""


class ShellArgs(Struct, frozen=True):
    command: str
    timeout_s: Annotated[float | None, Meta(description=f"seconds, {_MAX_TIMEOUT_S:g} at most")] = None
    background: bool = False
    pty: Annotated[bool, Meta(description="with a keyboard")] = False


class Shell:
    """Run a command line in bash. The working directory persists between calls (`cd` changes it), variables do not. There is
    no keyboard: editors and prompts fail. Long output is cut in the middle and saved in a file. With `background` a
    server or a long build continues as a job; do not use `&` for that."""

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
        return (RunIntent(args.command, _place(services).cwd, CONCERN if sys.platform == "win32" else ""),)

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
        self._has_terminal = args.pty
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
        self._proxy: CommandProxy | None = None
        """The command's way to allowed hosts."""
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
        with shell_report(self._command) as report, self._definitions() as (definitions, fds):
            start = self._start(report.script + definitions, *report.fds, *fds, argv=report.argv)
            try:
                processes, progress = self._services.shell.processes, self._progress.add
                finished = await processes.run(start, self._timeout_s, self._printed, progress, self._is_held)
                self._why_ended = start.why_ended()
                return finished, finished.cause != "exited" or start.has_begun()
            except OSError as error:
                raise _unstartable(error) from error
            finally:
                self._progress.close()
                self._moved_to, self._left_running = report.read()

    def _is_held(self) -> bool:
        return self._proxy is not None and self._proxy.is_asking

    async def as_job(self) -> CallResult:
        """Starts the job and waits a moment, so that early failures are reported at once."""
        if self._services.shell.jobs is None:
            raise ToolError("Nothing can run in the background here.")
        jobs = self._services.shell.jobs
        try:
            with self._definitions() as (definitions, fds):
                script = write_script(self._command) if sys.platform == "win32" else None
                start = self._start(definitions, *fds, in_background=True, argv=script.argv if script else ())
                if script:
                    start = replace(start, cleanup=script.remove)
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
        from wolo.tools.jobs_tool import job_report, screen_report  # noqa: PLC0415  # most commands are no jobs

        begun = screen_report(job, job.terminal) if job.terminal else job_report(job, self._services)
        first = f"[{self._place.vanished} no longer exists; this ran in {self._place.cwd}]\n" if self._place.vanished else ""
        return replace(begun, text=f"{first}{begun.text}", is_error=job.ending is not None and job.ending.exit_code != 0)

    def _definitions(self) -> AbstractContextManager[tuple[str, tuple[int, ...]]]:
        """Code that loads what the login shell defines, and its descriptors."""
        login = self._services.shell.login_shell
        # A command is on the list of safe ones for what its programs do, not for aliases of their names.
        is_without = login is None or self._call.only_reads or sys.platform == "win32"
        return nullcontext(("", ())) if is_without or login is None else login.load()

    def _start(self, first: str = "", *fds: int, in_background: bool = False, argv: tuple[str, ...] = ()) -> ProgramStart:
        """`argv` is a shell with its line, in place of bash."""
        bash = find_program("bash", self._services.workspace)
        shell = [bash, "--noprofile", "--norc", "-c"] if bash else ["/bin/sh", "-c"]
        name = Path(shell[0]).name
        environment = self._call.environment()
        if self._has_terminal:
            environment = {**environment, "TERM": TERMINAL}
            setsid = find_program("setsid", self._services.workspace) if self._call.confined else None
            shell = [*([setsid, "--ctty", "--wait"] if setsid else []), *shell]
            first = f"{_TAKE_TERMINAL}{first}" if not setsid else first
        line = list(argv) or [*shell, f'{first}__wolo=$1; shift; eval "$__wolo"', name, self._command]
        self._proxy = self._call.open_proxy(in_background=in_background)
        enclosed = self._call.enclose(line, self._place.cwd, in_background=in_background, proxy=self._proxy)
        return ProgramStart(
            argv=enclosed.argv,
            cwd=self._place.cwd,
            env=environment,
            pass_fds=(*fds, *enclosed.pass_fds),
            cleanup=enclosed.cleanup,
            has_begun=enclosed.has_begun,
            why_ended=enclosed.why_ended,
            is_alone=enclosed.is_alone,
            has_terminal=self._has_terminal,
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
        denial = f"{self._proxy.denial()}\n".lstrip() if self._proxy else ""
        text = "".join([*(f"[{note}]\n" for note in first), body or "(no output)\n", *(f"[{note}]\n" for note in notes), denial])
        view = Output(self._command, body, code, time.monotonic() - self._started)
        metadata: dict[str, Any] = {FILES: kept} if (kept := changes_metadata(changes)) else {}
        if self._proxy and self._proxy.connections:
            metadata[CONNECTIONS] = self._proxy.connections
        return CallResult(text, view, is_error=code != 0, files_changed=paths_of(changes), metadata=metadata)

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
    if not (hasattr(os, "killpg") or sys.platform == "win32"):
        raise ToolError("No command can run on this system: wolo needs process groups to end it. The user may start wolo in WSL.")
    if "\0" in args.command:
        raise ToolError("The command contains a NUL character.")
    try:
        size = len(os.fsencode(args.command))
    except UnicodeEncodeError as error:
        raise ToolError("The command contains half of a surrogate pair, which no program can receive.") from error
    if size > _MAX_COMMAND_BYTES:
        raise ToolError(f"The command has {size:,} bytes, more than the system accepts; put long text into a file with write.")
    if args.pty and not args.background:
        raise ToolError('`pty` is for jobs: set `background` too, then type with jobs(action="input").')
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
