"""The MCP server: answers calls of its tools, with progress, and forms where the client shows them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from wolo import __version__
from wolo.errors import WoloError
from wolo.frontends.mcp_server.forms import Form
from wolo.frontends.mcp_server.session_reading import list_sessions, list_text, read_session, session_text
from wolo.frontends.mcp_server.tasks import ServerTask, ServerTasks
from wolo.frontends.mcp_server.tool_values import (
    READING,
    TOOLS,
    Cancel,
    CancelResult,
    ContinueTask,
    ListSessions,
    ReadSession,
    RunTask,
    as_json,
    as_result,
    read_arguments,
    schema_of,
)

INSTRUCTIONS = (
    "wolo is a coding agent. run_task gives it a task and returns its answer and the id of its session; continue_task goes on "
    "in that session. Tasks in different directories can run at the same time."
)
Context = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult


def make_server(tasks: ServerTasks) -> Server[Any]:
    return Server(
        "wolo",
        version=__version__,
        title="wolo",
        description="A coding agent.",
        instructions=INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=_Calls(tasks).call,
    )


async def _list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[_tool(name, *both) for name, both in TOOLS.items()])


def _tool(name: str, arguments: type[Struct], result: type[Struct]) -> types.Tool:
    return types.Tool(
        name=name,
        description=" ".join((arguments.__doc__ or "").split()),
        input_schema=schema_of(arguments),
        output_schema=schema_of(result),
        annotations=types.ToolAnnotations(
            read_only_hint=name in READING,
            destructive_hint=name in ("run_task", "continue_task"),
            open_world_hint=name not in READING,
        ),
    )


class _Calls:
    def __init__(self, tasks: ServerTasks) -> None:
        self._tasks = tasks
        self._answering: dict[type[Struct], Callable[[Context, Any], Awaitable[Answer]]] = {
            RunTask: self._run,
            ContinueTask: self._continue,
            ListSessions: self._list,
            ReadSession: self._read,
            Cancel: self._cancel,
        }

    async def call(self, context: Context, params: types.CallToolRequestParams) -> Answer:
        if params.name not in TOOLS:
            raise MCPError(code=types.INVALID_PARAMS, message=f"There is no tool {params.name}.")
        try:
            if params.request_state is not None:
                return await self._go_on(context, params)
            arguments = read_arguments(params.name, params.arguments)
            if not isinstance(arguments, RunTask | ContinueTask) and (call := asyncio.current_task()) is not None:
                self._tasks.brief.add(call)
                call.add_done_callback(self._tasks.brief.discard)
            return await self._answering[type(arguments)](context, arguments)
        except WoloError as error:
            return _failed(error)

    async def _run(self, context: Context, asked: RunTask) -> Answer:
        task = self._tasks.run(asked.prompt, cwd=asked.cwd, mode=asked.mode, has_forms=_shows_forms(context))
        return await self._follow(context, task)

    async def _continue(self, context: Context, asked: ContinueTask) -> Answer:
        task = await self._tasks.resume(asked.session_id, asked.prompt, has_forms=_shows_forms(context))
        return await self._follow(context, task)

    async def _go_on(self, context: Context, params: types.CallToolRequestParams) -> Answer:
        """The client repeats a call with the forms that it was given, filled in."""
        task = self._tasks.of_token(params.request_state or "")
        if task is None:
            raise MCPError(code=types.INVALID_PARAMS, message="The task of this request state has ended.")
        for id, response in (params.input_responses or {}).items():
            if id in task.forms and isinstance(response, types.ElicitResult):
                task.forms[id].fill(_content(response))
        for form in task.forms.values():
            if not form.answer.done():
                task.updates.put_nowait(form)
        return await self._follow(context, task)

    async def _list(self, _: Context, asked: ListSessions) -> Answer:
        cwd = self._tasks.directory(asked.cwd) if asked.cwd else None
        found = await asyncio.to_thread(list_sessions, asked, cwd, self._is_running)
        return _done(found, list_text(found))

    async def _read(self, _: Context, asked: ReadSession) -> Answer:
        found = await asyncio.to_thread(read_session, asked, self._is_running)
        return _done(found, session_text(found))

    async def _cancel(self, _: Context, asked: Cancel) -> Answer:
        session_id = await self._tasks.cancel(asked.session_id)
        return _done(CancelResult(session_id=session_id, cancelled=True), f"Cancelled the task of session {session_id}.")

    def _is_running(self, session_id: str) -> bool:
        return self._tasks.of_session(session_id) is not None

    async def _follow(self, context: Context, task: ServerTask) -> Answer:
        """Tells the client about the task until it ends, or until it needs an answer that only a repeated call can carry."""
        asking: set[asyncio.Task[None]] = set()
        try:
            while (update := await task.updates.get()) is not None:
                if isinstance(update, str):
                    task.steps += 1
                    await context.session.report_progress(task.steps, None, update)
                elif not update.answer.done() and context.session.can_send_request:
                    asking.add(asyncio.create_task(_ask(context, update)))
                elif not update.answer.done():
                    return types.InputRequiredResult(input_requests=_requests(task.forms), request_state=task.token)
        except asyncio.CancelledError:
            task.interrupt()
            raise
        finally:
            for each in asking:
                each.cancel()
        return _ended(task)


async def _ask(context: Context, form: Form) -> None:
    """A client that fails to answer has declined."""
    try:
        response = await context.session.elicit_form(form.message, form.schema, related_request_id=context.request_id)
        form.fill(_content(response))
    except Exception as error:
        logging.getLogger(__name__).debug("the client did not answer: %s", error)
        form.fill(None)


def _requests(forms: Mapping[str, Form]) -> dict[str, types.InputRequest]:
    return {
        id: types.ElicitRequest(params=types.ElicitRequestFormParams(message=form.message, requested_schema=form.schema))
        for id, form in forms.items()
        if not form.answer.done()
    }


def _content(response: types.ElicitResult) -> Mapping[str, Any] | None:
    return {"accept": response.content or {}, "decline": {}}.get(response.action)


def _shows_forms(context: Context) -> bool:
    """A client that names no kind of elicitation means forms."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _ended(task: ServerTask) -> types.CallToolResult:
    if task.result is None:
        return _failed(task.error or WoloError("The task ended without a result."))
    result = as_result(task.result, task.session_id)
    texts = [result.text] if result.text else []
    if task.result.error is not None:
        texts.append(" ".join(filter(None, (task.result.error.message, task.result.error.hint))))
    elif task.result.is_error:
        texts.append(f"The task ended early: {task.result.stop_reason}.")
    return _done(result, *texts, f"session_id: {result.session_id}", is_error=task.result.is_error)


def _done(value: Struct, *texts: str, is_error: bool = False) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=text) for text in texts]
    return types.CallToolResult(content=content, structured_content=as_json(value), is_error=is_error)


def _failed(error: WoloError) -> types.CallToolResult:
    text = " ".join(filter(None, (error.message, error.hint)))
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
