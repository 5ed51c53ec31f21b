"""The web application, and its server: runs on a loopback port until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route as HttpRoute
from starlette.types import ASGIApp

from wolo import __version__
from wolo.config import layers
from wolo.errors import ConfigError, UsageError, WoloError
from wolo.frontends.running_servers import RunningServer, list_server, remove_redirect, write_redirect
from wolo.frontends.server.access import PUBLIC, Access, error_response
from wolo.frontends.server.http_errors import HttpError, as_http
from wolo.frontends.server.openapi import document
from wolo.frontends.server.routes import OLD, ROUTES, VERSION, Route, RouteCall, read_body
from wolo.frontends.server.session_hub import SessionHub
from wolo.frontends.streams import print_message, write
from wolo.operating_system import on_signal
from wolo.places import find_places
from wolo.workspace.root import find_site

Endpoint = Callable[[Request], Awaitable[Response]]
GRACE_S = 1
"""Time for running requests after a signal."""
REDIRECT_S = 60.0
"""Time for a browser to start and read the page that leads it to the server."""


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to `serve`."""
        yield


async def serve(
    port: int,
    exit_codes: Mapping[signal.Signals, int],
    open_page: Callable[[str], object] | None,
    runs: Sequence[Path] = (),
    end_idle_s: float | None = None,
    *,
    has_yolo: bool = False,
    options: Mapping[str, type],
) -> int:
    """Serve, and return the exit code. Port 0: a free one. `end_idle_s`: seconds without use, then it ends. `has_yolo`: clients
    may choose that mode. `options`: the types of those with which they may open a session.

    Raises UsageError for a port in use, and a folder in `runs` without a run.
    """
    shown = None
    if runs:
        from wolo.frontends.server.batch_runs import BatchRuns  # noqa: PLC0415  # few servers show batches

        shown = BatchRuns([folder.absolute() for folder in runs])
    listener = _listen(port)
    port = listener.getsockname()[1]
    running = RunningServer(port, secrets.token_urlsafe(24), os.getpid(), end_idle_s is not None, __version__, has_yolo)
    hub = SessionHub(Path.cwd(), runs=shown, has_yolo=has_yolo)
    hub.port, hub.options = port, options
    origins = layers.load(find_site()).settings.server.cors
    application = make_application(hub, running.token, port, origins)
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    server, ended_by = _Server(config), list[int]()
    closing: list[asyncio.Task[None]] = []

    def stop(number: signal.Signals) -> None:
        if ended_by:
            hub.kill()
            os._exit(exit_codes[number])
        ended_by.append(exit_codes[number])
        closing.append(asyncio.get_running_loop().create_task(_close(hub, server)))

    for number in exit_codes:
        on_signal(asyncio.get_running_loop(), number, stop, number)
    with _announce(running, open_page):
        idle = [asyncio.create_task(hub.let_go_of_idle())]
        if end_idle_s is not None:
            end = lambda: closing.append(asyncio.create_task(_close(hub, server)))  # noqa: E731
            idle.append(asyncio.create_task(hub.end_idle(end_idle_s, end)))
        await server.serve(sockets=[listener])
        for task in idle:
            task.cancel()
        await asyncio.gather(*closing)
    return ended_by[0] if ended_by else 0


@contextlib.contextmanager
def _announce(running: RunningServer, open_page: Callable[[str], object] | None) -> Iterator[None]:
    """Prints the address, lists the server for `wolo attach`, and opens the page."""
    data = find_places().data
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(list_server(data, running))
        except (ConfigError, OSError) as error:
            print_message(f"Cannot save the token for `wolo attach`: {error}", hint="Give it the whole address.")
        write(f"{running.address}\n")
        if open_page is not None:
            _open(data, running, open_page)
        yield


def _open(data: Path, running: RunningServer, open_page: Callable[[str], object]) -> None:
    try:
        redirect = write_redirect(data, running)
    except OSError as error:
        print_message(f"Cannot open the page: {data} cannot be written: {error.strerror}.", hint="Open the printed address.")
        return
    threading.Thread(target=open_page, args=(redirect.as_uri(),), daemon=True).start()  # some browsers stay in the foreground
    asyncio.get_running_loop().call_later(REDIRECT_S, remove_redirect, redirect)


async def _close(hub: SessionHub, server: uvicorn.Server) -> None:
    try:
        await hub.close()
    finally:
        server.should_exit = True


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise UsageError(f"Port {port} cannot be used: {error.strerror}.", hint="Without --port a free one is chosen.") from error
    listener.listen(128)
    return listener


log = logging.getLogger(__name__)
DEPRECATED = "@1795824000"
"""Since when the paths without a version are: 2026-11-28."""
PAGE = Path(__file__).parent / "page"
FILES = frozenset(
    ("index.html", "style.css", "token.js", "markdown.js", "views.js", "server.js", "conversation.js", "composer.js", "app.js")
)
"""All files of the page."""
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def make_application(hub: SessionHub, token: str, port: int, origins: Sequence[str] = ()) -> ASGIApp:
    """`origins`: other sites whose pages may use it."""
    routes = [
        HttpRoute("/", _page_file),
        HttpRoute(f"{PUBLIC}{{file}}", _page_file),
        HttpRoute("/openapi.json", _openapi),
        *(HttpRoute(route.path, _endpoint(hub, route), methods=[route.method]) for route in ROUTES),
        *(
            HttpRoute(OLD + route.path.removeprefix(VERSION), _deprecate(_endpoint(hub, route)), methods=[route.method])
            for route in ROUTES
        ),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_exception})
    app.router.redirect_slashes = False  # an address with one too many is unknown
    return Access(app, token, port, origins)


def _deprecate(endpoint: Endpoint) -> Endpoint:
    """Answers at the path of the release before, with the headers of RFC 9745."""

    async def answer(request: Request) -> Response:
        response = await endpoint(request)
        successor = quote(VERSION + request.url.path.removeprefix(OLD))
        response.headers.update({"Deprecation": DEPRECATED, "Link": f'<{successor}>; rel="successor-version"'})
        return response

    return answer


def _endpoint(hub: SessionHub, route: Route) -> Endpoint:
    async def answer(request: Request) -> Response:
        try:
            hub.used = time.monotonic()
            if unknown := sorted(request.query_params.keys() - {each.name for each in route.query}):
                raise HttpError(422, f"There is no parameter {unknown[0]!r} here.", "/openapi.json describes this address.")
            body = await read_body(request, route.body) if route.body is not None else None
            found = await route.run(RouteCall(hub, request, body))
            return found if isinstance(found, Response) else JSONResponse(msgspec.to_builtins(found), route.status)
        except HttpError as error:
            return error_response(error)
        except WoloError as error:
            return error_response(as_http(error))
        except Exception as error:
            log.exception("a request failed: %s %s", route.method, route.path)
            return error_response(HttpError(500, f"wolo failed: {type(error).__name__}.", "The log file has the details."))

    return answer


async def _page_file(request: Request) -> Response:
    if (name := request.path_params.get("file", "index.html")) not in FILES:
        return error_response(HttpError(404, f"There is no file {name!r}."))
    return FileResponse(PAGE / name, media_type=f"{KINDS[Path(name).suffix]}; charset=utf-8")


async def _openapi(request: Request) -> Response:
    return JSONResponse(document())


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {404: "There is nothing at this address.", 405: f"{request.method} is not supported here."}
    message = known.get(error.status_code, error.detail)
    return error_response(HttpError(error.status_code, message, "/openapi.json lists all routes."), dict(error.headers or {}))
