"""/todo, /jobs, /tasks: the task list, and the commands and tasks that run in the background."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.conversation.subagents.background_tasks import BackgroundTask, BackgroundTasks
from wolo.errors import UsageError
from wolo.messages.terminal_text import clean
from wolo.tools.background.background_jobs import BackgroundJobs, Job
from wolo.tools.todo import as_text


async def _todo(context: CommandContext, rest: str) -> Outcome:
    return ShowText(as_text(context.conversation.todos()) or "No tasks.")


_JOBS_HINT = "/jobs, /jobs output ID, /jobs stop ID, /jobs detach ID"
_MOST_LINES = 40


async def _jobs(context: CommandContext, rest: str) -> Outcome:
    if (jobs := context.conversation.jobs) is None or not jobs.all:
        return ShowText("No background jobs.")
    action, _, which = rest.partition(" ")
    match action:
        case "" | "list":
            return ShowText("\n".join(f"{job.name}: {job.state}" for job in jobs.all))
        case "output":
            job = _find_job(jobs, which)
            # Does not consume what the model reads next
            lines = map(clean, job.spool.newest.decode(errors="replace").splitlines()[-_MOST_LINES:])
            return ShowText("\n".join([*lines, f"{job.name}: {job.state}; full output: {job.spool.path}"]))
        case "stop":
            job = _find_job(jobs, which)
            await jobs.stop(job)
            return ShowText(f"{job.name}: {job.state}")
        case "detach":
            job = _find_job(jobs, which)
            jobs.detach(job)
            return ShowText(f"{job.name} keeps running after you quit; output: {job.spool.path}")
        case _:
            raise UsageError(f"Unknown action: {action}.", hint=_JOBS_HINT)


def _find_job(jobs: BackgroundJobs, which: str) -> Job:
    """By number, or the only job."""
    if which and not which.isdecimal():
        raise UsageError(f"{which} is not a job number.", hint=_JOBS_HINT)
    return jobs.find(int(which) if which else None)


def _job_arguments(context: CommandContext) -> list[tuple[str, str]]:
    if (jobs := context.conversation.jobs) is None:
        return []
    return [(f"{action} {job.id}", f"{job.name}: {job.state}") for job in jobs.all for action in ("output", "stop", "detach")]


_TASKS_HINT = "/tasks, /tasks output N, /tasks cancel N"


async def _tasks(context: CommandContext, rest: str) -> Outcome:
    if (tasks := context.conversation.subagents.background) is None:
        return ShowText("No background tasks.")
    action, _, which = rest.partition(" ")
    match action:
        case "" | "list":
            return ShowText("\n".join(map(_task_line, tasks.all)))
        case "output":
            task = _find_task(tasks, which)
            text = task.result.text if task.result is not None else "\n".join(task.run.calls[-40:])
            return ShowText("\n".join(filter(None, (clean(text), _task_line(task), f"session: {task.run.session_id}"))))
        case "cancel" | "stop":
            task = _find_task(tasks, which)
            await tasks.cancel([task])
            return ShowText(_task_line(task))
        case _:
            raise UsageError(f"Unknown action: {action}.", hint=_TASKS_HINT)


def _find_task(tasks: BackgroundTasks, which: str) -> BackgroundTask:
    """By number, or the only task."""
    if not which and len(tasks.all) == 1:
        return tasks.all[0]
    if not which.strip().isdecimal():
        raise UsageError(f"{which or 'An empty word'} is not a task number.", hint=_TASKS_HINT)
    return tasks.find(int(which))


def _task_line(task: BackgroundTask) -> str:
    run = task.run
    cost = f" · ${run.usage.cost.total:.4f}" if run.usage.cost is not None and run.usage.cost.total else ""
    state = task.ended or clean(run.doing)
    return f"{task.name}: {state} · {run.so_far}{cost} · {run.seconds:.0f} s"


def _task_arguments(context: CommandContext) -> list[tuple[str, str]]:
    if (tasks := context.conversation.subagents.background) is None:
        return []
    return [(f"{action} {task.number}", _task_line(task)) for task in tasks.all for action in ("output", "cancel")]


COMMANDS = (
    Command("todo", "task list", _todo, aliases=("todos",), group="Conversation", while_working=True),
    Command(
        "jobs",
        "commands running in the background",
        _jobs,
        usage="[output|stop|detach ID]",
        more="output shows the last lines, stop ends a job, detach keeps it running after you quit.",
        group="Conversation",
        arguments=_job_arguments,
        while_working=True,
    ),
    Command(
        "tasks",
        "tasks of agents running in the background",
        _tasks,
        usage="[output|cancel N]",
        more="output shows the result, or the calls so far; cancel interrupts a task.",
        group="Conversation",
        arguments=_task_arguments,
        while_working=True,
    ),
)
