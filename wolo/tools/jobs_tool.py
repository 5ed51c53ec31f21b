"""The tool `jobs`, which manages commands in the background."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from wolo.errors import SessionError, ToolError
from wolo.guard.denial_detection import PREFIX
from wolo.guard.intents import Intent, RunIntent
from wolo.messages.parts import ToolKind
from wolo.tools.background.background_jobs import Job
from wolo.tools.background.job_output import read_pattern
from wolo.tools.clipping import clip
from wolo.tools.command_tracking import ChangeTracking, paths_of
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import CallResult, Listing, Output

if TYPE_CHECKING:
    from wolo.tools.background.job_terminal import JobTerminal

MAX_WAIT_S = 600.0
_PATIENCE_S = 1.0
"""Seconds to wait for new output when no time is given; polling costs a request each."""
_WAIT_S = 60.0
"""Seconds to wait for a line when no time is given."""
_SHOWN_LINE_CHARS = 300


class JobsArgs(Struct, frozen=True):
    action: Literal["list", "output", "wait", "watch", "input", "screen", "stop"] = "list"
    id: int | None = None
    text: Annotated[str | None, Meta(description="\\n is Enter, \\u0003 Ctrl-C")] = None
    wait_s: float | None = None
    pattern: Annotated[str | None, Meta(description="of a line: text, `|`, `.*`")] = None


class Jobs:
    """Manage background commands: `output` returns what is new; `wait` does so when a line matches, `watch` sends such lines as
    they come; `stop` ends it with all it started; with `pty`, `input` types and `screen` shows. You are notified of an end."""

    name: ClassVar[str] = "jobs"
    Args: ClassVar[type[Struct]] = JobsArgs
    aliases: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("job_id", "job", "task_id", "bash_id"), "id"),
        **dict.fromkeys(("input", "keys"), "text"),
        "timeout_s": "wait_s",
    }
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "execute"

    def intents(self, args: JobsArgs, services: ToolServices) -> Sequence[Intent]:
        """Only of what is typed: the commands were judged when they started."""
        if args.wait_s is not None and not 0 <= args.wait_s <= MAX_WAIT_S:
            raise ToolError(f"wait_s is in seconds, {MAX_WAIT_S:g} at most.")
        if (args.action in ("wait", "watch")) != (args.pattern is not None):
            needs = f"`{args.action}` needs a `pattern`."
            raise ToolError(needs if args.pattern is None else "`pattern` is for the actions `wait` and `watch`.")
        if (args.action == "input") != (args.text is not None):
            raise ToolError("`input` needs a `text`." if args.text is None else "`text` is for the action `input`.")
        if args.pattern is not None:
            read_pattern(args.pattern)
        if args.text is None:
            return ()
        from wolo.tools.background.job_terminal import explain_keys, read_keys  # noqa: PLC0415  # few jobs have a terminal

        keys = read_keys(args.text, services.secrets)
        job, terminal = _find_terminal(args.id, services)
        earlier, concern = explain_keys(terminal, job.command, args.text)
        # Judged as the same text in a pipe to the same command
        return (RunIntent(f"printf '%b' {shlex.quote(earlier + keys)} | {job.command}", job.cwd, concern),)

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
        elif args.action in ("input", "screen"):
            return await _use_terminal(args, call)
        elif args.action == "watch" and args.pattern is not None:
            _refuse_detached(job)
            if job.ending is not None:
                raise ToolError(f"Job {job.id} has ended: {job.ending}.")
            call.services.shell.jobs.watch(job, read_pattern(args.pattern))
            return CallResult(f"Lines of {job.name} that match are sent to you as they come.\n")
        elif args.pattern is not None:
            return await _wait_for_line(job, args.pattern, _WAIT_S if args.wait_s is None else args.wait_s, call.services)
        elif args.wait_s is not None:
            await job.wait(args.wait_s)
        elif not job.spool.has_unread:
            await job.wait(_PATIENCE_S)
        return job_report(job, call.services)


async def _wait_for_line(job: Job, pattern: str, wait_s: float, services: ToolServices) -> CallResult:
    _refuse_detached(job)
    line = await job.wait_for_line(read_pattern(pattern), wait_s)
    report = job_report(job, services)
    if line is not None:
        note = f"a line matches: {line if len(line) <= _SHOWN_LINE_CHARS else line[:_SHOWN_LINE_CHARS] + '…'}"
    else:
        note = "no line matched before it ended" if job.ending is not None else f"no line matched within {wait_s:g} s"
    return replace(report, text=f"{report.text}[{note}]\n")


def _refuse_detached(job: Job) -> None:
    if job.is_detached:
        raise ToolError(f"Job {job.id} was detached, so its lines are not followed; read {job.spool.path}.")


def _find_terminal(id: int | None, services: ToolServices) -> tuple[Job, JobTerminal]:
    if services.shell.jobs is None:
        raise ToolError("Nothing can run in the background here.")
    job = services.shell.jobs.find(id)
    if job.terminal is None:
        raise ToolError(f"Job {job.id} has no terminal: start it with `background` and `pty`.")
    return job, job.terminal


async def _use_terminal(args: JobsArgs, call: CallContext) -> CallResult:
    """Types if there is a text, and shows the screen when the program pauses."""
    job, terminal = _find_terminal(args.id, call.services)
    if args.text is None:
        if args.wait_s:
            await terminal.wait(args.wait_s)
        return screen_report(job, terminal)
    if job.ending is not None:
        raise ToolError(f"Job {job.id} has ended: {job.ending}. Nothing was typed.")
    if job.is_detached:
        raise ToolError(f"Job {job.id} was detached, so nothing can be typed.")
    if call.confined and not job.confined:
        return CallResult(f"{PREFIX} Job {job.id} runs outside the sandbox, and so would what is typed.\n", is_error=True)
    looks = ChangeTracking(call)
    await looks.before()
    try:
        num_typed = await terminal.type(args.text)
        await terminal.wait(_PATIENCE_S if args.wait_s is None else args.wait_s)
        report = screen_report(job, terminal)
        if num_typed < len(args.text):
            note = f"only {num_typed:,} of {len(args.text):,} characters were typed: the program does not read"
            report = replace(report, text=f"{report.text}[{note}]\n", is_error=True)
        return replace(report, files_changed=paths_of(await looks.find_changes(runs_on=True)))
    finally:
        looks.after()


def screen_report(job: Job, terminal: JobTerminal) -> CallResult:
    """Returns the screen and the state of a job."""
    screen = terminal.show()
    job.is_reported = job.ending is not None
    notes = f"[{job.name}: {job.state}]\n[all it prints: {job.spool.path} — page it with read]\n"
    code = None if job.ending is None else job.ending.shell_code
    return CallResult(screen + notes, Output(job.command, screen, code, job.seconds))


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
