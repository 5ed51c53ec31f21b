"""The web application: routes, page files, and errors as JSON."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route as HttpRoute
from starlette.types import ASGIApp

from wolo import __version__
from wolo.errors import WoloError
from wolo.frontends.server.access import PUBLIC, Access, error_response
from wolo.frontends.server.http_errors import HttpError, as_http
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
            found = await route.run(RouteCall(hub, request, body))
            return found if isinstance(found, Response) else JSONResponse(found, route.status)
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


ERRORS = {
    "400": "The body is not JSON.",
    "401": "The token is missing or wrong.",
    "403": "Another Host or Origin.",
    "404": "There is no such session, approval or question.",
    "409": "A turn is running, or the session is in use.",
    "413": "The body is too large.",
    "422": "The request does not fit.",
    "502": "The model cannot be reached.",
    "507": "The session cannot be saved.",
}


def document() -> dict[str, Any]:
    kinds = [route.body for route in ROUTES if route.body is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    by_kind = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind)
    error = {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["status", "message", "hint"],
                "properties": {"status": {"type": "integer"}, "message": {"type": "string"}, "hint": {"type": "string"}},
            }
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "wolo serve", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": error},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route, by_kind: dict[type[Any], dict[str, Any]]) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "query", "required": required, "description": about, "schema": {"type": "string"}}
        for name, required, about in route.query
    ]
    if "{id}" in route.path:
        parameters.append({"name": "id", "in": "path", "required": True, "schema": {"type": "string"}})
    if "text/event-stream" in route.produces:
        parameters.append({"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"}})
    good = {"description": route.summary, "content": {kind: {"schema": {}} for kind in route.produces}}
    bad = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    responses: dict[str, Any] = {str(route.status): good}
    responses |= {status: {"description": about, "content": bad} for status, about in ERRORS.items()}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.name,
        "parameters": parameters,
        "responses": responses,
    }
    if route.body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": by_kind[route.body]}}}
    return operation
