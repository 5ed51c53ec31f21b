"""Makes the OpenAPI document of the HTTP API from its routes and types."""

from __future__ import annotations

from typing import Any

import msgspec

from wolo import __version__
from wolo.frontends.server.response_types import EVENT_TYPES, ErrorAnswer
from wolo.frontends.server.routes import EVENT_STREAM, ROUTES, Route

REF = "#/components/schemas/{name}"
ERRORS = {
    "400": "The body is not JSON.",
    "401": "The token is missing or wrong.",
    "403": "Another Host or Origin, or a file that may not be read.",
    "404": "There is no such session, approval, question or file.",
    "409": "A turn is running, or the session is in use.",
    "413": "The body is too large.",
    "422": "The request does not fit.",
    "502": "The model cannot be reached.",
    "507": "The session cannot be saved.",
}


def document() -> dict[str, Any]:
    sent = [route.body for route in ROUTES if route.body is not None]
    kinds = [*sent, *(route.returns for route in ROUTES if route.returns is not None), *EVENT_TYPES, ErrorAnswer]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
    by_kind = dict(zip(map(repr, kinds), schemas, strict=True))
    for name in msgspec.json.schema_components(sent)[1]:
        for field in components[name]["properties"].values():
            field.pop("default", None)  # some generators require fields that have one
    names = [kind.__name__ for kind in EVENT_TYPES]
    components["Event"] = {"oneOf": [{"$ref": REF.format(name=name)} for name in names], "title": "Event"}
    messages = components["SessionMessages"]["properties"]["messages"]
    messages["items"] = {"$ref": REF.format(name="Event")}
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {"title": "wolo serve", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": _with_constants(components),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _with_constants(schema: Any) -> Any:
    """Generators of clients make a type of its own for each `enum`, and a literal for `const`."""
    if isinstance(schema, list):
        return [_with_constants(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if list(schema) == ["enum"] and len(schema["enum"]) == 1:
        return {"const": schema["enum"][0]}
    return {name: _with_constants(value) for name, value in schema.items()}


def _operation(route: Route, by_kind: dict[str, dict[str, Any]]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": each.name, "in": "query", "required": each.required, "description": each.about, "schema": dict(each.schema)}
        for each in route.query
    ]
    if "{id}" in route.path:
        parameters.append({"name": "id", "in": "path", "required": True, "schema": {"type": "string"}})
    content: dict[str, Any] = {kind: {"schema": {"type": "string"}} for kind in route.produces}
    if route.returns is not None:
        content = {"application/json": {"schema": by_kind[repr(route.returns)]}}
    if EVENT_STREAM in route.produces:
        parameters.append({"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"}})
        content[EVENT_STREAM] = {"schema": {"$ref": REF.format(name="Event")}}
    bad = {"application/json": {"schema": by_kind[repr(ErrorAnswer)]}}
    responses: dict[str, Any] = {str(route.status): {"description": route.summary, "content": content}}
    responses |= {status: {"description": about, "content": bad} for status, about in ERRORS.items()}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.name,
        "parameters": parameters,
        "responses": responses,
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": by_kind[repr(route.body)]}}}
    return operation
