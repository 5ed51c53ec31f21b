"""Reduce a JSON schema to the OpenAPI subset that the field `parameters` accepts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from wolo.formats.encoding.wire_forms import adapt_schema

TYPES = ("string", "number", "integer", "boolean", "array", "object")
FORMATS = {"string": ("date-time", "enum"), "number": ("float", "double"), "integer": ("int32", "int64")}

_TEXTS = ("title", "description", "pattern")
_COUNTS = ("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength")
_BOUNDS = ("minimum", "maximum")

Schema = dict[str, Any]


def reduce_schema(schema: Mapping[str, Any]) -> Schema:
    """Preserve as much meaning as the allowed keys can express; idempotent."""
    root = _reduce(adapt_schema(schema))
    return _as_object(root) if root.get("type") != "object" else root


def _reduce(schema: Any) -> Schema:
    if not isinstance(schema, Mapping):
        return {"type": "string"}
    merged = _merge(schema)
    reduced = _plain_keys(merged)
    if isinstance(properties := merged.get("properties"), Mapping) and properties:
        reduced["properties"] = {str(name): _reduce(each) for name, each in properties.items()}
    declared = merged.get("type")
    names = [str(each).lower() for each in (declared if isinstance(declared, list) else [declared]) if isinstance(each, str)]
    kinds = [kind for kind in dict.fromkeys(names) if kind in TYPES]
    if "null" in names or merged.get("nullable") is True:
        reduced["nullable"] = True
    _enumerate(merged, kinds, reduced)
    offered = [each for name in ("anyOf", "oneOf") for each in _list_at(merged, name)]
    choices = [_reduce(each) for each in offered if not (isinstance(each, Mapping) and each.get("type") == "null")]
    if len(choices) < len(offered):
        reduced["nullable"] = True
    if len(kinds) > 1 and not choices:
        choices = [_add_type({}, kind, merged) for kind in kinds]
    if choices:
        # `anyOf` must stand alone: shared keys are copied into each choice. An object that merely varies stays one object.
        if "properties" in reduced or "enum" in reduced or "array" in kinds:
            kind = "object" if "properties" in reduced else kinds[0]
            return _as_object({**reduced, "anyOf": choices}) if kind == "object" else _add_type(reduced, kind, merged)
        spread = {name: value for name, value in reduced.items() if name in ("title", "description", "nullable")}
        flat = [{**spread, **each} for choice in choices for each in choice.get("anyOf", [choice])]
        unique = [each for at, each in enumerate(flat) if each not in flat[:at]]
        return unique[0] if len(unique) == 1 else {"anyOf": unique}
    return _add_type(reduced, kinds[0] if kinds else "", merged)


def _merge(schema: Mapping[str, Any]) -> Schema:
    """Merge `allOf` into one schema."""
    merged = {name: value for name, value in schema.items() if name != "allOf"}
    parts = schema.get("allOf")
    for part in parts if isinstance(parts, list) else ():
        if not isinstance(part, Mapping):
            continue
        inner = _merge(part)
        properties = {**_mapping(inner, "properties"), **_mapping(merged, "properties")}
        required = [*_list_at(merged, "required"), *_list_at(inner, "required")]
        merged = {**inner, **merged}
        merged |= {"properties": properties} if properties else {}
        merged |= {"required": required} if required else {}
    return merged


def _plain_keys(merged: Mapping[str, Any]) -> Schema:
    kept: Schema = {name: merged[name] for name in _TEXTS if isinstance(merged.get(name), str)}
    kept |= {name: merged[name] for name in _COUNTS if _is_number(merged.get(name)) and float(merged[name]).is_integer()}
    kept |= {name: merged[name] for name in _BOUNDS if _is_number(merged.get(name))}
    for bound, name, step in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        if _is_number(merged.get(name)) and bound not in kept:
            kept[bound] = merged[name] + (step if merged.get("type") == "integer" else 0)
    kept |= {name: merged[name] for name in ("default", "example") if merged.get(name) is not None}
    return kept


def _enumerate(merged: Mapping[str, Any], kinds: list[str], reduced: Schema) -> None:
    """Enums must be strings: other values become text, booleans become a type."""
    values = [merged["const"]] if "const" in merged else merged.get("enum")
    if not isinstance(values, list):
        return
    if None in values:
        reduced["nullable"] = True
    values = [value for value in values if value is not None]
    if values and all(isinstance(value, bool) for value in values):
        kinds[:] = ["boolean"]
        return
    texts = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str) for value in values)
    if unique := list(dict.fromkeys(filter(None, texts))):
        kinds[:] = ["string"]
        reduced["enum"] = unique
        for name in (*_BOUNDS, *_COUNTS):
            reduced.pop(name, None)


def _add_type(reduced: Schema, kind: str, merged: Mapping[str, Any]) -> Schema:
    """Add the type and everything it requires."""
    kind = kind or ("object" if "properties" in reduced else "array" if "items" in merged else "string")
    typed = {"type": kind, **{name: value for name, value in reduced.items() if name != "type"}}
    if merged.get("format") in FORMATS.get(kind, ()):
        typed["format"] = merged["format"]
    if kind == "array":
        typed["items"] = _reduce(merged.get("items") or next(iter(_list_at(merged, "prefixItems")), None))
    if kind != "object":
        typed.pop("properties", None)
        return typed
    known = typed.get("properties", {})
    for name in ("required", "propertyOrdering"):
        if kept := list(dict.fromkeys(each for each in _list_at(merged, name) if isinstance(each, str) and each in known)):
            typed[name] = kept
    return typed


def _as_object(reduced: Schema) -> Schema:
    """Merge the properties of all choices into one object; required are those that every choice requires."""
    choices = [each for each in reduced.get("anyOf", []) if each.get("properties")]
    properties = {name: each for choice in choices for name, each in choice["properties"].items()} | reduced.get("properties", {})
    demanded = [name for name in properties if choices and all(name in choice.get("required", []) for choice in choices)]
    kept: Schema = {name: reduced[name] for name in ("title", "description", "nullable", "required") if name in reduced}
    merged: Schema = {**kept, "type": "object"}
    merged |= {"properties": properties} if properties else {}
    required = list(dict.fromkeys([*kept.get("required", []), *demanded]))
    return merged | ({"required": required} if required else {})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mapping(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = schema.get(name)
    return value if isinstance(value, Mapping) else {}


def _list_at(schema: Mapping[str, Any], name: str) -> list[Any]:
    value = schema.get(name)
    return value if isinstance(value, list) else []
