"""Tracks tasks that run in the background, and makes messages of their results, also of those that an earlier process ran."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from wolo.agent.budget import NOTHING, add
from wolo.conversation.subagents.subagent_run import SubagentRun
from wolo.errors import SessionError, ToolError, WoloError
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.message import TASK_ENDED, Message, Usage, nudge
from wolo.messages.parts import TASK
from wolo.messages.terminal_text import clean_line
from wolo.sessions.replay_entries import messages as messages_of
from wolo.sessions.store import Store
from wolo.tools.tool_values import CallResult

MOST_RUNNING = 6
_SHOWN_CHARS = 60


class BackgroundTask:
    def __init__(self, run: SubagentRun) -> None:
        self.number, self.run = run.number, run
        self.result: CallResult | None = None
        """None: it runs."""
        self.work: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """`task 1 (explore: where are retries decided?)`"""
        line = clean_line(self.run.prompt)
        return f"task {self.number} ({self.run.agent}: {line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + '…'})"

    @property
    def ended(self) -> str:
        """`done`, `interrupted`, …; empty while it runs."""
        return "" if self.result is None else str(self.result.metadata.get(TASK, {}).get("ended", "failed"))


class BackgroundTasks:
    def __init__(self, secrets: Secrets) -> None:
        self.all: list[BackgroundTask] = []
        self._secrets = secrets
        self._unreported: list[BackgroundTask] = []
        self._changed = asyncio.Event()

    @property
    def running(self) -> list[BackgroundTask]:
        return [task for task in self.all if task.result is None]

    @property
    def has_news(self) -> bool:
        return bool(self._unreported)

    def start(self, run: SubagentRun, work: Coroutine[Any, Any, CallResult]) -> BackgroundTask:
        task = BackgroundTask(run)
        self.all.append(task)
        task.work = asyncio.get_running_loop().create_task(self._finish(task, work))
        return task

    def find(self, number: int) -> BackgroundTask:
        """Raises ToolError."""
        for task in self.all:
            if task.number == number:
                return task
        there = ", ".join(str(task.number) for task in self.all) or "none"
        raise ToolError(f"There is no task {number}; there are: {there}.")

    def take_news(self) -> list[Message]:
        """A message for each task that ended since the last call."""
        ended, self._unreported = self._unreported, []
        messages = []
        for task in ended:
            assert task.result is not None  # only ended tasks are reported
            text = f"[Background {task.name} has ended: {task.ended}]\n{task.result.text}"
            messages.append(ended_message(self._secrets.hide(text), task.run.part_id, task.run.session_id, task.run.used))
        return messages

    async def wait(self) -> None:
        """Returns when a task has ended."""
        self._changed.clear()
        if self.running and not self._unreported:
            await self._changed.wait()

    async def cancel(self, tasks: Sequence[BackgroundTask]) -> None:
        """Interrupts tasks and waits for their clean end."""
        works = [task.work for task in tasks if task.work is not None and not task.work.done()]
        for task in tasks:
            task.run.interrupt()
        if works:
            await asyncio.wait(works)

    async def _finish(self, task: BackgroundTask, work: Coroutine[Any, Any, CallResult]) -> None:
        try:
            task.result = await work
        except WoloError as error:
            task.result = CallResult(f"It failed: {error.message}", is_error=True)
        self._unreported.append(task)
        self._changed.set()


def ended_message(text: str, part_id: str, session_id: str, usage: Usage | None) -> Message:
    """`usage` counts for the session of the parent."""
    return replace(nudge(text, TASK_ENDED, **{TASK: {"call": part_id, "session": session_id}}), usage=usage)


def unreported_calls(messages: Sequence[Message]) -> list[tuple[str, Mapping[str, Any]]]:
    """Part id and metadata of background tasks whose result never became a message: wolo ended before."""
    started = {
        part.id: metadata
        for message in messages
        for part in message.calls
        if isinstance(metadata := part.metadata.get(TASK), dict) and metadata.get("background") and part.outcome == "ok"
    }
    for message in messages:
        metadata = message.metadata.get(TASK)
        if isinstance(metadata, dict):
            started.pop(str(metadata.get("call")), None)
    return list(started.items())


FINISHED = frozenset(("stop", ""))


def agent_of(id: str, data: Path, session_id: str) -> str:
    """The agent of a task that worked for this session. Raises ToolError."""
    with Store.open(data) as store:
        try:
            info = store.find(id)
        except SessionError as error:
            raise ToolError(f"There is no task {id}.") from error
    if info.id != id or info.task_of != session_id:
        raise ToolError(f"There is no task {id} of this session.")
    return info.agent


def lost_results(messages: Sequence[Message], data: Path | None, here: Collection[str]) -> list[Message]:
    """Messages about background tasks that no message reported because wolo ended; `here` are calls of this process."""
    lost = [(part_id, told) for part_id, told in unreported_calls(messages) if part_id not in here]
    return [_report(part_id, str(told.get("agent")), str(told.get("session")), data) for part_id, told in lost]


def _report(part_id: str, agent: str, session_id: str, data: Path | None) -> Message:
    said = _load(session_id, data)
    used = reduce(add, (message.usage or Usage() for message in said if message.role == "assistant"), NOTHING)
    last: Any = said[-1] if said else None
    if last is not None and last.role == "assistant" and not last.calls and last.finish_reason in FINISHED:
        text = f"[The background task {session_id} ({agent}) had ended before wolo quit]\n{last.text}"
    else:
        text = f"[The background task {session_id} ({agent}) was interrupted: wolo ended before it did. `resume` continues it.]"
    return ended_message(text, part_id, session_id, used)


def _load(session_id: str, data: Path | None) -> tuple[Message, ...]:
    """Empty for a session that was not saved or is gone."""
    if data is None:
        return ()
    try:
        with Store.open(data) as store:
            return messages_of(store.load(session_id).entries)
    except SessionError:
        return ()
