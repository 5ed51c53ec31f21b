"""The `jobs` tool: lists, reads and stops background jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from wolo.errors import SessionError, ToolError
from wolo.guard.intents import Intent
from wolo.messages.parts import ToolKind
from wolo.tools import background_jobs as background
from wolo.tools.background_jobs import Job
from wolo.tools.clipping import clip
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import CallResult, Listing, Output

MAX_WAIT_S = 600.0
_PATIENCE_S = 1.0
"""Seconds to wait for new output when no time is given; polling costs a request each."""


class JobsArgs(Struct, frozen=True):
    action: Literal["list", "output", "stop"] = "list"
    id: Annotated[int | None, Meta(description="of the job")] = None
    wait_s: Annotated[float | None, Meta(description=f"output: seconds to wait for its end, {MAX_WAIT_S:g} at most")] = None


class Jobs:
    """Manage commands that run in the background: `list` shows them; `output` returns what one has printed since the last
    call, and how it ended; `stop` ends it with everything it started. You are notified when one ends. All end with this
    conversation."""

    name: ClassVar[str] = "jobs"
    Args: ClassVar[type[Struct]] = JobsArgs
    aliases: ClassVar[Mapping[str, str]] = {"job_id": "id", "job": "id", "task_id": "id", "bash_id": "id", "timeout_s": "wait_s"}
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "execute"

    def intents(self, args: JobsArgs, services: ToolServices) -> Sequence[Intent]:
        """Returns none, because the commands were judged when they started."""
        if args.wait_s is not None and not 0 <= args.wait_s <= MAX_WAIT_S:
            raise ToolError(f"wait_s is in seconds, {MAX_WAIT_S:g} at most.")
        return ()

    async def run(self, args: JobsArgs, call: CallContext) -> CallResult:
        if call.services.shell.jobs is None:
            raise ToolError("Nothing can run in the background here.")
        if args.action == "list":
            return _listed(call.services.shell.jobs)
        job = call.services.shell.jobs.find(args.id)
        if args.action == "stop":
            await call.services.shell.jobs.stop(job)
        elif args.wait_s is not None:
            await job.wait(args.wait_s)
        elif not job.spool.has_unread:
            await job.wait(_PATIENCE_S)
        return job_report(job, call.services)


def job_report(job: Job, services: ToolServices) -> CallResult:
    """Returns new output and the state of a job."""
    output = job.spool.read_new()
    shown = clip(output)
    job.is_reported = job.ending is not None
    notes = [f"{job.name}: {job.state}"]
    if job.ending is None or shown.is_cut or len(output) < job.spool.size_bytes:
        notes.append(f"all it {'prints' if job.ending is None else 'printed'}: {_file(job, services)} — page it with read")
    text = shown.text or "(nothing new was printed)\n"
    lines = [text if text.endswith("\n") else f"{text}\n", *(f"[{note}]\n" for note in notes)]
    code = None if job.ending is None else job.ending.shell_code
    return CallResult("".join(lines), Output(job.command, shown.text, code, job.seconds))


def _file(job: Job, services: ToolServices) -> Path:
    """Moves the output of an ended job to the session's files."""
    if job.ending is not None and not job.is_detached:
        with suppress(OSError, SessionError):
            return services.save_output(f"job-{job.id}.txt", job.spool.path.read_bytes())
    return job.spool.path


def _listed(jobs: background.BackgroundJobs) -> CallResult:
    for job in jobs.all:
        job.is_reported = job.ending is not None
    lines = tuple(f"{job.name}: {job.state}" for job in jobs.all)
    return CallResult("".join(f"{line}\n" for line in lines) or "There are no jobs.\n", Listing("jobs", lines, len(lines)))
