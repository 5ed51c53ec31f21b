"""Schemas of tools, bent to what servers take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.formats.encoding.wire_forms import adapt_schema


def bent(properties: dict[str, Any], **more: Any) -> Any:
    return adapt_schema({"type": "object", "properties": properties, **more})["properties"]


def test_an_ordinary_schema_stays_as_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Which"}, "n": {"type": ["integer", "null"], "default": None}},
        "required": ["path"],
        "additionalProperties": False,
    }
    assert adapt_schema(schema) == schema


@pytest.mark.parametrize(
    ("strange", "plain"),
    [
        ({"$schema": "x", "$id": "y", "type": "string"}, {"type": "string"}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"items": {"type": "string"}}, {"type": "array", "items": {"type": "string"}}),
        ({"anyOf": [{"not": {}}, {"type": "string"}]}, {"type": "string"}),
        ({"anyOf": [False, {"type": "string"}], "description": "d"}, {"type": "string", "description": "d"}),
        ({"type": "object", "additionalProperties": {}}, {"type": "object"}),
        ({"properties": {"a": {}}}, {"properties": {"a": {}}, "type": "object"}),
        ({"type": ["string"]}, {"type": "string"}),
        ({"type": []}, {}),
        (True, {}),
        ({"type": "object", "properties": [], "required": "x"}, {"type": "object"}),
        (
            {"type": "object", "properties": {"a": {}}, "required": ["a", "b", 3]},
            {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        ),
        ({"enum": ["a", "b"]}, {"enum": ["a", "b"]}),
    ],
)
def test_keyword_refused_by_servers_is_rephrased(strange: Any, plain: Any) -> None:
    assert bent({"x": strange}) == {"x": plain}


def test_references_are_put_in_place() -> None:
    definitions = {"P": {"type": "object", "properties": {"q": {"$ref": "#/$defs/Q"}}}, "Q": {"type": "integer"}}
    assert bent({"p": {"$ref": "#/$defs/P", "description": "d"}}, **{"$defs": definitions}) == {
        "p": {"type": "object", "properties": {"q": {"type": "integer"}}, "description": "d"}
    }


def test_a_reference_to_itself_ends() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/N"}, "all": {"type": "array", "items": {"$ref": "#/$defs/N"}}},
    }
    sent = bent({"n": {"$ref": "#/$defs/N"}}, **{"$defs": {"N": node}})
    assert sent["n"]["properties"]["next"] == {"type": "object"}
    assert adapt_schema({"$ref": "#"}) == {"type": "object", "properties": {}}
    assert bent({"x": {"$ref": "https://elsewhere"}}) == {"x": {}}


def test_references_that_multiply_are_bounded() -> None:
    definitions: dict[str, Any] = {
        f"L{n}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/L{n + 1}"} for k in "abcdef"}} for n in range(20)
    }
    definitions["L20"] = {"type": "string"}
    assert len(json.dumps(adapt_schema({"$ref": "#/$defs/L0", "$defs": definitions}))) < 400_000


@pytest.mark.parametrize(
    "root", [{}, {"type": "string"}, {"type": "array", "items": {}}, {"properties": {}}, {"type": ["object", "null"]}]
)
def test_the_root_is_always_an_object(root: dict[str, Any]) -> None:
    assert adapt_schema(root)["type"] == "object"
    assert isinstance(adapt_schema(root)["properties"], dict)


def test_a_root_of_choices_keeps_them() -> None:
    root = {"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}]}
    assert adapt_schema(root) == {**root, "type": "object", "properties": {}}


def test_null_is_removed_for_servers_not_knowing_it() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}, "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
    }
    assert adapt_schema(schema, null_types=False)["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}


KEYS = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "$ref",
        "anyOf",
        "allOf",
        "not",
        "required",
        "additionalProperties",
        "$defs",
        "enum",
        "a",
        "description",
    ]
)
VALUES = st.sampled_from(["object", "array", "string", "#/$defs/a", "#", "null", True, False, None, 3])
SCHEMAS = st.recursive(
    st.dictionaries(KEYS, VALUES, max_size=4),
    lambda inner: st.dictionaries(
        KEYS, inner | st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2), max_size=4
    ),
    max_leaves=12,
)


@given(SCHEMAS, st.booleans())
def test_any_schema_is_bent_once_and_for_all(schema: dict[str, Any], null_types: bool) -> None:
    before = json.dumps(schema)
    once = adapt_schema(schema, null_types=null_types)
    assert once["type"] == "object"
    assert "$ref" not in _keywords(once)
    assert adapt_schema(once, null_types=null_types) == once
    assert json.dumps(schema) == before


def _keywords(schema: Any) -> set[str]:
    """Names of keywords anywhere; the names of properties are no keywords."""
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for name in ("items", "not", "additionalProperties"):
        found |= _keywords(schema.get(name))
    for each in (schema.get("properties") or {}).values() if isinstance(schema.get("properties"), dict) else ():
        found |= _keywords(each)
    for name in ("anyOf", "allOf"):
        for each in schema.get(name) or () if isinstance(schema.get(name), list) else ():
            found |= _keywords(each)
    return found
