"""/tasks: lists, shows and cancels background tasks."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.conversation.subagents.background_tasks import BackgroundTask, BackgroundTasks
from wolo.errors import UsageError
from wolo.messages.terminal_text import clean

_HINT = "/tasks, /tasks output N, /tasks cancel N"


async def _run(context: CommandContext, rest: str) -> Outcome:
    if (tasks := context.conversation.subagents.background) is None:
        return ShowText("No background tasks.")
    action, _, which = rest.partition(" ")
    match action:
        case "" | "list":
            return ShowText("\n".join(map(_line, tasks.all)))
        case "output":
            task = _find(tasks, which)
            text = task.result.text if task.result is not None else "\n".join(task.run.calls[-40:])
            return ShowText("\n".join(filter(None, (clean(text), _line(task), f"session: {task.run.session_id}"))))
        case "cancel" | "stop":
            task = _find(tasks, which)
            await tasks.cancel([task])
            return ShowText(_line(task))
        case _:
            raise UsageError(f"Unknown action: {action}.", hint=_HINT)


def _find(tasks: BackgroundTasks, which: str) -> BackgroundTask:
    """By number, or the only task."""
    if not which and len(tasks.all) == 1:
        return tasks.all[0]
    if not which.strip().isdecimal():
        raise UsageError(f"{which or 'An empty word'} is not a task number.", hint=_HINT)
    return tasks.find(int(which))


def _line(task: BackgroundTask) -> str:
    run = task.run
    cost = f" · ${run.usage.cost.total:.4f}" if run.usage.cost is not None and run.usage.cost.total else ""
    state = task.ended or clean(run.doing)
    return f"{task.name}: {state} · {run.so_far}{cost} · {run.seconds:.0f} s"


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    if (tasks := context.conversation.subagents.background) is None:
        return []
    return [(f"{action} {task.number}", _line(task)) for task in tasks.all for action in ("output", "cancel")]


COMMANDS = (
    Command(
        "tasks",
        "tasks of agents running in the background",
        _run,
        usage="[output|cancel N]",
        more="output shows the result, or the calls so far; cancel interrupts a task.",
        group="Conversation",
        arguments=_arguments,
        while_working=True,
    ),
)
