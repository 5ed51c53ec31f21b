"""Makes the OpenAPI document from the routes and the types of their bodies."""

from __future__ import annotations

from typing import Any

import msgspec

from wolo import __version__
from wolo.frontends.server.routes import ROUTES, Route

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
        "operationId": route.run.__name__.strip("_"),
        "parameters": parameters,
        "responses": responses,
    }
    if route.body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": by_kind[route.body]}}}
    return operation
