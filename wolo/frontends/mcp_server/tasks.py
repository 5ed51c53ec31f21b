"""Tasks of the server: each runs an agent of its own, side by side with the others."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from wolo.agent.events import ApprovalAsked
from wolo.api import run_events
from wolo.api.agent import Agent
from wolo.conversation.phrasing import argument_lines
from wolo.errors import SessionError, UsageError, WoloError
from wolo.frontends.mcp_server.resources import find_session
from wolo.frontends.question_forms import form_properties, form_text, limit_modes, replies_of
from wolo.guard.modes import MODES, find_mode
from wolo.messages.call_arguments import call_line, shorten
from wolo.messages.parts import ToolPart
from wolo.messages.terminal_text import clean, clean_line, escaped_line
from wolo.places import find_places
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store
from wolo.tools.tool_values import Question, Reply

MOST_OF_CALL = 1_000_000
"""Characters of the arguments that a form shows; a call with more can only be denied."""
_DECISION = "decision"


class Form:
    """A form that waits for its answer."""

    def __init__(self, id: str, message: str, properties: Mapping[str, Any], required: Sequence[str] = ()) -> None:
        self.id, self.message = id, message
        self.schema: dict[str, Any] = {"type": "object", "properties": dict(properties), "required": list(required)}
        self.answer: asyncio.Future[Mapping[str, Any] | None] = asyncio.get_running_loop().create_future()

    def fill(self, content: Mapping[str, Any] | None) -> None:
        """None: it was closed without an answer; empty: the user declined."""
        if not self.answer.done():
            self.answer.set_result(content)


def approval_form(id: str, asked: ApprovalAsked) -> Form:
    arguments = argument_lines(asked.arguments)
    is_whole = len(arguments) <= MOST_OF_CALL
    choices = {"once": "Allow once"} if is_whole else {}
    if is_whole and not asked.only_once:
        choices["session"] = "Allow for the rest of this task"
        if asked.rule:
            choices["always"] = f"Always allow {clean(asked.rule)} in this workspace"
    choices["no"] = "Deny"
    if asked.denial:
        choices["never"] = f"Never allow {clean(asked.denial)} in this workspace"
    agent = f" (agent {asked.agent})" if asked.agent else ""
    message = f"wolo{agent} wants to run: {escaped_line(asked.part.tool)}"
    if arguments:
        message += f"\n{shorten(arguments, MOST_OF_CALL)}"
    if not is_whole:
        message += "\nThat is too long for a form, so it can only be denied here."
    if asked.reason:
        message += f"\n{clean(asked.reason)}"
    titled = [{"const": value, "title": title} for value, title in choices.items()]
    return Form(id, message, {_DECISION: {"type": "string", "title": "Decision", "oneOf": titled}}, [_DECISION])


def decision_of(form: Form, content: Mapping[str, Any] | None) -> str:
    """A form that was closed decides nothing; one sent without a decision that it offers denies the call."""
    if content is None:
        return "dismiss"
    decision = content.get(_DECISION)
    offered = [each["const"] for each in form.schema["properties"][_DECISION]["oneOf"]]
    return decision if isinstance(decision, str) and decision in offered else "no"


ANSWER_S = 600.0
"""Time for the answer to a form before it counts as declined."""
ANSWERED_S = 0.4
CLOSE_S = 1.2
"""Time for running tasks to save and close at the end of the server."""
MOST_OF_LINE = 300
LOOSEST = "auto"
"""Loosest mode that a client may ask for, unless the server was started in another."""
_LOG = logging.getLogger(__name__)


class ServerTask:
    """One run of an agent. It outlives the request that started it while the client answers a form."""

    def __init__(self, *, cwd: Path, mode: str, loosest: str, model: str, session: str = "", has_forms: bool) -> None:
        """`loosest`: the last mode in which a plan may start. `has_forms`: the client shows forms; otherwise what needs an
        approval is denied.
        """
        self._modes = [name for name in MODES if _looseness(name) <= _looseness(loosest)]
        self.token = secrets.token_urlsafe(16)
        """Names the task to the client that started it, and to no other."""
        self.updates: asyncio.Queue[str | Form | None] = asyncio.Queue()
        """What it does, and what it asks; None: it has ended."""
        self.forms: dict[str, Form] = {}
        """Not answered yet."""
        self.steps = 0
        """Updates that the client was told."""
        self.result: run_events.RunResult | None = None
        self.error: WoloError | None = None
        self._session = session
        self._agent = Agent(
            model,
            cwd=cwd,
            mode=mode,
            session=session or None,
            on_approval=self._approve if has_forms else None,
            on_question=self._answer if has_forms else None,
        )
        self._running: asyncio.Task[None] | None = None

    @property
    def session_id(self) -> str:
        return self._agent.session_id or self._session

    def start(self, prompt: str) -> asyncio.Task[None]:
        self._running = asyncio.create_task(self._run(prompt))
        return self._running

    def interrupt(self) -> None:
        """Its result still comes, unless it has not begun."""
        for form in tuple(self.forms.values()):
            form.fill(None)
        if not self._agent.interrupt() and self._running is not None:
            self._running.cancel()

    async def _run(self, prompt: str) -> None:
        announced = False
        try:
            async with aclosing(self._agent.run_stream(prompt)) as events:
                async for event in events:
                    if not announced:
                        announced = True
                        self.updates.put_nowait(f"session {self.session_id}")
                    if line := progress_line(event):
                        self.updates.put_nowait(line)
                    if isinstance(event, run_events.Result):
                        self.result = event.result
        except asyncio.CancelledError:
            self.error = UsageError("The task was cancelled before it began.")
        except run_events.RunError:
            pass  # the result tells it
        except WoloError as error:
            self.error = error
        except Exception as error:
            _LOG.exception("a task failed")
            self.error = WoloError(f"wolo crashed ({type(error).__name__}); the session is saved.")
        finally:
            try:
                await self._agent.close()
            finally:
                self.updates.put_nowait(None)

    async def _approve(self, asked: ApprovalAsked) -> str:
        form = approval_form(asked.id, asked)
        return decision_of(form, await self._ask(form))

    async def _answer(self, questions: Sequence[Question]) -> list[Reply] | None:
        questions = limit_modes(questions, self._modes)
        return replies_of(
            questions, await self._ask(Form(secrets.token_hex(8), form_text(questions), form_properties(questions)))
        )

    async def _ask(self, form: Form) -> dict[str, object] | None:
        self.forms[form.id] = form
        self.updates.put_nowait(form)
        try:
            content = await asyncio.wait_for(form.answer, ANSWER_S)
            return None if content is None else dict(content)
        except TimeoutError:
            return None
        finally:
            del self.forms[form.id]


class ServerTasks:
    """All tasks of the server."""

    def __init__(self, *, mode: str = "", model: str = "") -> None:
        """`mode`: of tasks that name none, and the loosest that they may name. Raises UsageError for an unknown one."""
        self._mode = find_mode(mode).name if mode else ""
        self._model = model
        self._cwd = Path.cwd()
        self._tasks: dict[str, ServerTask] = {}
        """By token."""
        self._running: set[asyncio.Task[None]] = set()
        self.brief: set[asyncio.Task[Any]] = set()
        """Calls that run no task, so their answers can be waited for."""

    def run(self, prompt: str, *, cwd: str, mode: str, has_forms: bool) -> ServerTask:
        """Raises UsageError for a directory or a mode that cannot be had."""
        mode, loosest = self._allowed_mode(mode), self._mode or LOOSEST
        return self._start(
            prompt, ServerTask(cwd=self.directory(cwd), mode=mode, loosest=loosest, model=self._model, has_forms=has_forms)
        )

    async def resume(self, session_id: str, prompt: str, *, has_forms: bool) -> ServerTask:
        """Raises SessionError for an unknown session, or one that is in use."""
        info = await asyncio.to_thread(self._find, session_id, needs_directory=True)
        if self.of_session(info.id) is not None:
            raise SessionError(
                f"A task of session {info.id} is running.", hint="Wait for its result, or cancel it; then continue the session."
            )
        loosest = self._mode or LOOSEST
        mode = info.mode if info.mode in MODES and _looseness(info.mode) <= _looseness(loosest) else loosest
        return self._start(
            prompt,
            ServerTask(cwd=Path(info.cwd), mode=mode, loosest=loosest, model=self._model, session=info.id, has_forms=has_forms),
        )

    def of_token(self, token: str) -> ServerTask | None:
        return self._tasks.get(token)

    def is_running(self, session_id: str) -> bool:
        return self.of_session(session_id) is not None

    def of_session(self, session_id: str) -> ServerTask | None:
        """The running task of a session."""
        return next((task for task in self._tasks.values() if task.session_id == session_id), None)

    async def cancel(self, session_id: str) -> str:
        """Returns the full id once the task has ended. Raises SessionError if none is running there."""
        if (task := self.of_session(session_id)) is None:
            info = await asyncio.to_thread(self._find, session_id)
            if (task := self.of_session(info.id)) is None:
                raise SessionError(
                    f"No task of session {info.id} is running here.", hint="list_sessions shows which are running."
                )
        task.interrupt()
        return task.session_id

    async def wait_for_answers(self) -> None:
        """Returns when the brief calls have their answers, after `ANSWERED_S` at the latest."""
        if self.brief:
            await asyncio.wait(self.brief, timeout=ANSWERED_S)

    async def close(self) -> None:
        """Interrupts what is running; returns when all of it is saved, after `CLOSE_S` at the latest."""
        for task in tuple(self._tasks.values()):
            task.interrupt()
        if self._running:
            await asyncio.wait(self._running, timeout=CLOSE_S)

    def directory(self, cwd: str) -> Path:
        path = self._cwd / Path(cwd).expanduser()
        if not path.is_dir():
            raise UsageError(f"There is no directory {clean_line(str(path))}.", hint="Give the path of an existing directory.")
        return path

    def _start(self, prompt: str, task: ServerTask) -> ServerTask:
        self._tasks[task.token] = task
        running = task.start(prompt)
        self._running.add(running)

        def forget(run: asyncio.Task[None]) -> None:
            self._running.discard(run)
            self._tasks.pop(task.token, None)

        running.add_done_callback(forget)
        return task

    def _allowed_mode(self, mode: str) -> str:
        """Raises UsageError for a mode looser than the server's."""
        if not mode:
            return self._mode
        name, loosest = find_mode(mode).name, self._mode or LOOSEST
        if _looseness(name) > _looseness(loosest):
            raise UsageError(
                f"This server runs tasks in mode {loosest} at most, not {name}.",
                hint=f"Start it with `wolo mcp serve --mode {name}`.",
            )
        return name

    def _find(self, session_id: str, *, needs_directory: bool = False) -> SessionInfo:
        with Store.open_to_read(find_places().data) as store:
            info = find_session(store, session_id)
        if needs_directory and not Path(info.cwd).is_dir():
            raise SessionError(f"The directory of session {info.id} is gone: {clean_line(info.cwd)}.")
        return info


def _looseness(mode: str) -> int:
    return list(MODES).index(mode)


def progress_line(event: run_events.RunEvent) -> str:
    """Text of a progress notification; empty: none is sent."""
    match event:
        case run_events.ToolUse():
            part = ToolPart(id=event.id, tool=event.name, input=dict(event.input))
            return call_line(part, most_chars=MOST_OF_LINE, most_of_change=0)
        case run_events.ToolResult(is_error=True):
            return f"failed: {_line(event.content)}"
        case run_events.Denied():
            return f"denied: {event.tool}: {_line(event.reason)}"
        case run_events.Retry():
            return f"trying again: {_line(event.error.message)}"
        case run_events.Fallback():
            return f"{event.model} answers now: {_line(event.error.message)}"
        case run_events.Compaction():
            return "compacted the conversation"
        case run_events.Notice():
            return _line(event.text)
    return ""


def _line(text: str) -> str:
    return clean_line(text.strip().split("\n")[0])[:MOST_OF_LINE]
