"""The schema of a typed answer in the subset of JSON schema that a vendor enforces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from wolo.formats.encoding.wire_forms import adapt_schema

Schema = dict[str, Any]


class Subset(Struct, frozen=True):
    keywords: frozenset[str]
    """Others are left out: the answer is checked against the whole schema when it is there."""
    formats: frozenset[str] = frozenset()
    is_closed: bool = True
    """Objects have only the properties that the schema names."""
    requires_all: bool = False
    """Optional properties are required too, and may be null."""


_STRUCTURE = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "title", "description"}
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_BOUNDS = frozenset({"minimum", "maximum", "minItems", "maxItems"})
OPENAI = Subset(
    keywords=_STRUCTURE | _BOUNDS | {"pattern", "format", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"},
    formats=_FORMATS,
    requires_all=True,
)
ANTHROPIC = Subset(keywords=_STRUCTURE | {"format"}, formats=_FORMATS | {"uri"})
GEMINI = Subset(
    keywords=_STRUCTURE | _BOUNDS | {"format", "prefixItems"}, formats=frozenset({"date-time", "date", "time"}), is_closed=False
)
_UNIONS = ("anyOf", "oneOf")
_KINDS: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class _Inexpressible(Exception):
    """The subset has no words for a part of the schema that shapes the value."""


def strict_schema(schema: Mapping[str, Any], subset: Subset) -> Schema | None:
    """References are resolved. None: the subset cannot express it, such as maps, values of any kind, and recursion."""
    try:
        return _restrict(adapt_schema(schema), subset)
    except _Inexpressible:
        return None


def without_fillers(value: Any, schema: Mapping[str, Any]) -> Any:
    """Leaves out nulls in place of optional properties, which strict subsets require; `schema` is the original one."""
    return _without_fillers(value, adapt_schema(schema))


def _without_fillers(value: Any, schema: Mapping[str, Any]) -> Any:
    for name in (*_UNIONS, "allOf"):
        for choice in schema.get(name, ()):
            value = _without_fillers(value, choice)
    if isinstance(value, list):
        items = schema.get("items")
        return [_without_fillers(each, items) for each in value] if isinstance(items, Mapping) else value
    if not isinstance(value, dict):
        return value
    properties, required = schema.get("properties", {}), schema.get("required", ())
    others = schema.get("additionalProperties")
    kept: Schema = {}
    for name, each in value.items():
        inner = properties.get(name, others if isinstance(others, Mapping) else {})
        if each is not None or name not in properties or name in required or _takes_null(inner):
            kept[name] = _without_fillers(each, inner)
    return kept


def _takes_null(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    if kind == "null" or (isinstance(kind, list) and "null" in kind):
        return True
    if "enum" in schema or "const" in schema:
        return None in schema.get("enum", (schema.get("const", ""),))
    choices = [choice for name in _UNIONS for choice in schema.get(name, ())]
    return any(map(_takes_null, choices)) if choices else kind is None


def _restrict(schema: Mapping[str, Any], subset: Subset) -> Schema:
    if isinstance(kinds := schema.get("type"), list):
        rest = {name: value for name, value in schema.items() if name not in ("type", "description", "title")}
        described = {name: schema[name] for name in ("title", "description") if name in schema}
        return {**described, "anyOf": [_restrict({**_fitting(rest, kind), "type": kind}, subset) for kind in kinds]}
    if subset.is_closed and any(name in schema for name in ("allOf", "patternProperties", "prefixItems")):
        raise _Inexpressible
    own = {name: value for name, value in schema.items() if name in subset.keywords}
    if own.get("format") not in subset.formats:
        own.pop("format", None)
    if "const" in schema:
        own["enum"] = [schema["const"]]
    if "type" not in own and (values := own.get("enum")) and len(kinds_of := {_KINDS.get(type(each)) for each in values}) == 1:
        own["type"] = kinds_of.pop()
    if choices := [choice for name in _UNIONS for choice in schema.get(name, ())]:
        own["anyOf"] = [_restrict(choice, subset) for choice in choices]
    if "items" in own:
        own["items"] = _restrict(own["items"], subset)
    if "prefixItems" in own:
        own["prefixItems"] = [_restrict(each, subset) for each in own["prefixItems"]]
    if own.get("type") == "object":
        return _object(own, schema, subset)
    if subset.is_closed and "type" not in own and "anyOf" not in own and "enum" not in own:
        raise _Inexpressible
    return own


def _object(own: Schema, schema: Mapping[str, Any], subset: Subset) -> Schema:
    properties, others = own.pop("properties", {}), own.pop("additionalProperties", None)
    if not subset.is_closed:
        kept = {"additionalProperties": _restrict(others, subset) if isinstance(others, Mapping) else others}
        named = {"properties": {name: _restrict(each, subset) for name, each in properties.items()}}
        return own | (kept if others is not None else {}) | (named if properties else {})
    # An object of any content is meant unless it names properties or forbids others.
    if isinstance(others, Mapping) or (not properties and others is not False):
        raise _Inexpressible
    required = schema.get("required", ())
    restricted = {name: _restrict(each, subset) for name, each in properties.items()}
    if subset.requires_all:
        for name in properties:
            if name not in required and not _takes_null(restricted[name]):
                restricted[name] = {"anyOf": [restricted[name], {"type": "null"}]}
        required = list(properties)
    return own | {"properties": restricted, "required": list(required), "additionalProperties": False}


def _fitting(schema: Mapping[str, Any], kind: str) -> Schema:
    """The keywords that concern values of this type; those of a schema with several types are for all of them."""
    of_others = {"object": ("properties", "required", "additionalProperties"), "array": ("items", "minItems", "maxItems")}
    left_out = {name for other, names in of_others.items() if other != kind for name in names}
    rest = {name: value for name, value in schema.items() if name not in left_out}
    if "enum" in rest:
        rest["enum"] = [each for each in rest["enum"] if _KINDS.get(type(each)) == kind]
    return rest
