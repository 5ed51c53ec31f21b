"""/jobs: the commands that run in the background, what one has printed, and its end or its freedom."""

from __future__ import annotations

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.errors import UsageError
from wolo.messages.terminal_text import clean
from wolo.tools.background.jobs import Job, Jobs

_HINT = "/jobs, /jobs output ID, /jobs stop ID, /jobs detach ID"
_MOST_LINES = 40


async def run(desk: CommandContext, rest: str) -> Outcome:
    jobs = desk.conversation.jobs
    if jobs is None or not jobs.all:
        return ShowText("No command runs in the background.")
    action, _, which = rest.partition(" ")
    match action:
        case "" | "list":
            return ShowText("\n".join(f"{job.name}: {job.state}" for job in jobs.all))
        case "output":
            return ShowText(_printed(_find(jobs, which)))
        case "stop":
            job = _find(jobs, which)
            await jobs.stop(job)
            return ShowText(f"{job.name}: {job.state}")
        case "detach":
            job = _find(jobs, which)
            jobs.detach(job)
            return ShowText(f"{job.name} goes on when wolo ends; what it prints: {job.spool.path}")
        case _:
            raise UsageError(f"/jobs does not know {action}.", hint=_HINT)


def _find(jobs: Jobs, which: str) -> Job:
    """By its number; without one, the only one there is."""
    if which and not which.isdecimal():
        raise UsageError(f"{which} is no number of a job.", hint=_HINT)
    return jobs.find(int(which) if which else None)


def _printed(job: Job) -> str:
    """Its last lines; the model's own look is not disturbed."""
    lines = map(clean, job.spool.newest.decode(errors="replace").splitlines()[-_MOST_LINES:])
    return "\n".join([*lines, f"{job.name}: {job.state}; all it prints: {job.spool.path}"])


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    jobs = desk.conversation.jobs
    if jobs is None:
        return []
    return [(f"{action} {job.id}", f"{job.name}: {job.state}") for job in jobs.all for action in ("output", "stop", "detach")]
