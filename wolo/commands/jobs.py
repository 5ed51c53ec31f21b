"""/jobs: lists, stops and detaches background commands."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.errors import UsageError
from wolo.messages.terminal_text import clean
from wolo.tools.background.background_jobs import BackgroundJobs, Job

_HINT = "/jobs, /jobs output ID, /jobs stop ID, /jobs detach ID"
_MOST_LINES = 40


async def _run(context: CommandContext, rest: str) -> Outcome:
    if (jobs := context.conversation.jobs) is None or not jobs.all:
        return ShowText("No background jobs.")
    action, _, which = rest.partition(" ")
    match action:
        case "" | "list":
            return ShowText("\n".join(f"{job.name}: {job.state}" for job in jobs.all))
        case "output":
            job = _find(jobs, which)
            # Does not consume what the model reads next
            lines = map(clean, job.spool.newest.decode(errors="replace").splitlines()[-_MOST_LINES:])
            return ShowText("\n".join([*lines, f"{job.name}: {job.state}; full output: {job.spool.path}"]))
        case "stop":
            job = _find(jobs, which)
            await jobs.stop(job)
            return ShowText(f"{job.name}: {job.state}")
        case "detach":
            job = _find(jobs, which)
            jobs.detach(job)
            return ShowText(f"{job.name} keeps running after you quit; output: {job.spool.path}")
        case _:
            raise UsageError(f"Unknown action: {action}.", hint=_HINT)


def _find(jobs: BackgroundJobs, which: str) -> Job:
    """By number, or the only job."""
    if which and not which.isdecimal():
        raise UsageError(f"{which} is not a job number.", hint=_HINT)
    return jobs.find(int(which) if which else None)


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    if (jobs := context.conversation.jobs) is None:
        return []
    return [(f"{action} {job.id}", f"{job.name}: {job.state}") for job in jobs.all for action in ("output", "stop", "detach")]


COMMANDS = (
    Command(
        "jobs",
        "commands running in the background",
        _run,
        usage="[output|stop|detach ID]",
        more="output shows the last lines, stop ends a job, detach keeps it running after you quit.",
        group="Conversation",
        arguments=_arguments,
        while_working=True,
    ),
)
