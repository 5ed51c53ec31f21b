"""The MCP server: answers calls of its tools, with progress, and forms where the client shows them."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator, Mapping
from typing import Any, Final, TypeVar

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from msgspec import Struct
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from wolo import __version__
from wolo.errors import UsageError, WoloError
from wolo.frontends.mcp_server import tool_values
from wolo.frontends.mcp_server.resources import (
    get_prompt,
    list_prompts,
    list_resources,
    list_sessions,
    list_templates,
    list_text,
    read_resource,
    read_session,
    session_text,
)
from wolo.frontends.mcp_server.tasks import Form, ServerTask, ServerTasks
from wolo.frontends.streams import error_text, flush, print_line
from wolo.operating_system import EXIT_BY_SIGNAL, on_signal

INSTRUCTIONS = (
    "wolo is a coding agent. run_task gives it a task and returns its answer and the id of its session; continue_task goes on "
    "in that session. Tasks in different directories can run at the same time."
)
T = TypeVar("T")
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
        on_list_resources=lambda _, params: _await_work(asyncio.to_thread(list_resources, params.cursor if params else None)),
        on_list_resource_templates=list_templates,
        on_read_resource=lambda _, params: _await_work(asyncio.to_thread(read_resource, params.uri, tasks.is_running)),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


async def _await_work(work: Awaitable[T]) -> T:
    """Raises MCPError for a WoloError."""
    try:
        return await work
    except WoloError as error:
        raise MCPError(code=types.INVALID_PARAMS, message=error_text(error)) from error


async def _list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    tools = [
        types.Tool(
            name=name,
            description=" ".join((arguments.__doc__ or "").split()),
            input_schema=tool_values.schema_of(arguments),
            output_schema=tool_values.schema_of(result),
            title=tool_values.TITLES[name],
            annotations=types.ToolAnnotations(
                title=tool_values.TITLES[name],
                read_only_hint=name in tool_values.READING,
                destructive_hint=name in ("run_task", "continue_task"),
                open_world_hint=name not in tool_values.READING,
            ),
        )
        for name, (arguments, result) in tool_values.TOOLS.items()
    ]
    return types.ListToolsResult(tools=tools)


class _Calls:
    def __init__(self, tasks: ServerTasks) -> None:
        self._tasks = tasks

    async def call(self, context: Context, params: types.CallToolRequestParams) -> Answer:
        if params.name not in tool_values.TOOLS:
            raise MCPError(code=types.INVALID_PARAMS, message=f"There is no tool {params.name}.")
        try:
            if params.request_state is not None:
                # the client repeats a call with the forms that it was given, filled in
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
            arguments = tool_values.read_arguments(params.name, params.arguments)
            if (
                not isinstance(arguments, tool_values.RunTask | tool_values.ContinueTask)
                and (call := asyncio.current_task()) is not None
            ):
                self._tasks.brief.add(call)
                call.add_done_callback(self._tasks.brief.discard)
            match arguments:
                case tool_values.RunTask(prompt=prompt, cwd=cwd, mode=mode):
                    task = self._tasks.run(prompt, cwd=cwd, mode=mode, has_forms=_shows_forms(context))
                    return await self._follow(context, task)
                case tool_values.ContinueTask(session_id=session_id, prompt=prompt):
                    task = await self._tasks.resume(session_id, prompt, has_forms=_shows_forms(context))
                    return await self._follow(context, task)
                case tool_values.ListSessions():
                    directory = self._tasks.directory(arguments.cwd) if arguments.cwd else None
                    sessions = await asyncio.to_thread(list_sessions, arguments, directory, self._tasks.is_running)
                    return _result(sessions, list_text(sessions))
                case tool_values.ReadSession():
                    content = await asyncio.to_thread(read_session, arguments, self._tasks.is_running)
                    return _result(content, session_text(content))
                case _:
                    session_id = await self._tasks.cancel(arguments.session_id)
                    return _result(
                        tool_values.CancelResult(session_id=session_id, cancelled=True),
                        f"Cancelled the task of session {session_id}.",
                    )
        except WoloError as error:
            return _error_result(error)

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
                    return types.InputRequiredResult(
                        input_requests={
                            id: types.ElicitRequest(
                                params=types.ElicitRequestFormParams(message=form.message, requested_schema=form.schema)
                            )
                            for id, form in task.forms.items()
                            if not form.answer.done()
                        },
                        request_state=task.token,
                    )
        except asyncio.CancelledError:
            task.interrupt()
            raise
        finally:
            for each in asking:
                each.cancel()
        if task.result is None:
            return _error_result(task.error or WoloError("The task ended without a result."))
        result = tool_values.as_result(task.result, task.session_id)
        texts = [result.text] if result.text else []
        if task.result.error is not None:
            texts.append(error_text(task.result.error))
        elif task.result.is_error:
            texts.append(f"The task ended early: {task.result.stop_reason}.")
        return _result(result, *texts, f"session_id: {result.session_id}", is_error=task.result.is_error)


async def _ask(context: Context, form: Form) -> None:
    """A client that fails to answer has declined."""
    try:
        response = await context.session.elicit_form(form.message, form.schema, related_request_id=context.request_id)
        form.fill(_content(response))
    except Exception as error:
        logging.getLogger(__name__).debug("the client did not answer: %s", error)
        form.fill(None)


def _content(response: types.ElicitResult) -> Mapping[str, Any] | None:
    return {"accept": response.content or {}, "decline": {}}.get(response.action)


def _shows_forms(context: Context) -> bool:
    """A client that names no kind of elicitation means forms."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _result(value: Struct, *texts: str, is_error: bool = False) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=text) for text in texts]
    return types.CallToolResult(content=content, structured_content=tool_values.as_json(value), is_error=is_error)


def _error_result(error: WoloError) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=error_text(error))], is_error=True)


LAST_CALLS_S: Final = 0.05
"""Time for the last requests to begin."""
HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")


async def serve_stdio(tasks: ServerTasks) -> int:
    """Returns the exit status at the end of input."""
    return await _until_stopped(_over_stdio(make_server(tasks), tasks), tasks)


async def serve_http(tasks: ServerTasks, port: int) -> int:
    """Prints the address with its token; returns the exit status after a signal. Raises UsageError for a port in use."""
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise UsageError(
            f"Cannot listen on port {port}: {os.strerror(error.errno or 0)}.", hint="Choose another one: --port N"
        ) from error
    port, token = listener.getsockname()[1], secrets.token_urlsafe(32)
    app = make_server(tasks).streamable_http_app()
    config = uvicorn.Config(  # h11 removes blanks around the values of headers, as clients may send them
        Guard(app, token, port),
        http="h11",
        log_level="error",
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=1,
        ws="none",
    )
    print_line(f"http://127.0.0.1:{port}/mcp?token={token}")
    flush()
    with listener:
        return await _until_stopped(_HttpServer(config).serve(sockets=[listener]), tasks)


class _HttpServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves them to wolo."""
        yield


class Guard:
    """Refuses requests from other sites (403) and without the token (401)."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._hosts = frozenset(f"{host}:{port}" for host in HOSTS)
        self._origins = frozenset(f"http://{host}" for host in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(Request(scope)) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, request: Request) -> PlainTextResponse | None:
        headers: Headers = request.headers
        if headers.get("host", "") not in self._hosts:
            return PlainTextResponse("This host is not served.\n", 403)
        if "origin" in headers and headers["origin"] not in self._origins:
            return PlainTextResponse("Requests of this origin are refused.\n", 403)
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if not given and not scheme:
            given, scheme = request.query_params.get("token", ""), "bearer"
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
            return PlainTextResponse("Authorization: Bearer TOKEN is missing.\n", 401, {"WWW-Authenticate": "Bearer"})
        return None


async def _over_stdio(server: Server[Any], tasks: ServerTasks) -> None:
    """The SDK drops what is unanswered at the end of input, so the server hears of the end later."""
    send, receive = anyio.create_memory_object_stream[SessionMessage | Exception]()

    async def relay(incoming: AsyncIterator[SessionMessage | Exception]) -> None:
        async with send:
            async for message in incoming:
                await send.send(message)
            await asyncio.sleep(LAST_CALLS_S)
            await tasks.wait_for_answers()

    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as group:
        group.start_soon(relay, incoming)
        await server.run(receive, outgoing, server.create_initialization_options())


async def _until_stopped(serving: Coroutine[Any, Any, None], tasks: ServerTasks) -> int:
    """Ends with the input or a signal. Tasks are saved first; then the process ends, whatever its threads still wait for."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # errors are answered
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    for number, code in EXIT_BY_SIGNAL.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            on_signal(loop, number, stop, code)
    served = asyncio.ensure_future(serving)
    either: set[asyncio.Future[Any]] = {served, stopped}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    await tasks.close()
    if served.done():
        served.result()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(stopped.result() if stopped.done() else 0)
