"""Runs the MCP server over stdin and stdout, or over HTTP on this machine alone."""

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
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, Final

import anyio
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from wolo.errors import UsageError
from wolo.frontends.mcp_server.server import make_server
from wolo.frontends.mcp_server.tasks import ServerTasks
from wolo.frontends.streams import flush, print_line

LAST_CALLS_S: Final = 0.05
"""Time for the last requests to begin."""
HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")
_SIGNALS: Final = {signal.SIGHUP: 129, signal.SIGINT: 130, signal.SIGTERM: 143}


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
        self._app = app
        self._token = token
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
            await tasks.answered()

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

    for number, code in _SIGNALS.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop, code)
    served = asyncio.ensure_future(serving)
    either: set[asyncio.Future[Any]] = {served, stopped}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    await tasks.close()
    if served.done():
        served.result()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(stopped.result() if stopped.done() else 0)
