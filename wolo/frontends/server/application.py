"""The web application: routes, page files, and errors as JSON."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route as HttpRoute
from starlette.types import ASGIApp

from wolo.errors import WoloError
from wolo.frontends.server.access import PUBLIC, Access, error_response
from wolo.frontends.server.http_errors import HttpError, as_http
from wolo.frontends.server.openapi import document
from wolo.frontends.server.routes import ROUTES, Route, RouteCall, read_body
from wolo.frontends.server.session_hub import SessionHub

log = logging.getLogger(__name__)
PAGE = Path(__file__).parent / "page"
TYPES = {
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "token.js": "text/javascript; charset=utf-8",
    "markdown.js": "text/javascript; charset=utf-8",
    "views.js": "text/javascript; charset=utf-8",
    "server.js": "text/javascript; charset=utf-8",
    "conversation.js": "text/javascript; charset=utf-8",
    "composer.js": "text/javascript; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
}
"""All files of the page."""


def make_application(hub: SessionHub, token: str, port: int) -> ASGIApp:
    routes = [
        HttpRoute("/", _index),
        HttpRoute(f"{PUBLIC}{{file}}", _page_file),
        HttpRoute("/openapi.json", _openapi),
        *(HttpRoute(route.path, _endpoint(hub, route), methods=[route.method]) for route in ROUTES),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_exception})
    app.router.redirect_slashes = False  # an address with one too many is unknown
    return Access(app, token, port)


def _endpoint(hub: SessionHub, route: Route) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            body = await read_body(request, route.body) if route.body is not None else None
            return await route.run(RouteCall(hub, request, body))
        except HttpError as error:
            return error_response(error)
        except WoloError as error:
            return error_response(as_http(error))
        except Exception as error:
            log.exception("a request failed: %s %s", route.method, route.path)
            return error_response(HttpError(500, f"wolo failed: {type(error).__name__}.", "The log file has the details."))

    return answer


async def _index(request: Request) -> Response:
    return FileResponse(PAGE / "index.html", media_type=TYPES["index.html"])


async def _page_file(request: Request) -> Response:
    name = request.path_params["file"]
    if name not in TYPES:
        return error_response(HttpError(404, f"There is no file {name!r}."))
    return FileResponse(PAGE / name, media_type=TYPES[name])


async def _openapi(request: Request) -> Response:
    return JSONResponse(document())


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {404: "There is nothing at this address.", 405: f"{request.method} is not supported here."}
    message = known.get(error.status_code, error.detail)
    return error_response(HttpError(error.status_code, message, "/openapi.json lists all routes."), dict(error.headers or {}))
