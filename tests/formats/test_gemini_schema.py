"""Schemas reduced to what the old field takes: only allowed keys, the same when reduced again, safe on cycles."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.formats.gemini import reduce_schema
from wolo.formats.lint.gemini import lint

names = st.sampled_from(["a", "b", "c d", "ü"])
types = st.sampled_from(
    ["string", "number", "integer", "boolean", "array", "object", "null", "any", ["string", "null"], ["integer", "string"], [], 7]
)
words = st.sampled_from(["", "a text", 3, None])
references = st.sampled_from(["#", "#/$defs/node", "#/$defs/missing", "https://x/y", 4])
values = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "x", "y"]))
EXTRA = ("additionalProperties", "not", "if", "contains", "prefixItems", "patternProperties", "uniqueItems", "$schema", "$id")


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    schemas = st.lists(inner, max_size=3)
    by_name = st.dictionaries(names, inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": types,
            "description": words,
            "title": words,
            "format": st.sampled_from(["date-time", "uuid", "int32"]),
            "enum": st.lists(values, max_size=3),
            "const": values,
            "default": values,
            "minimum": st.integers(-5, 5),
            "exclusiveMinimum": st.one_of(st.integers(-5, 5), st.booleans()),
            "minItems": st.sampled_from([1, 2.0, True, "3"]),
            "nullable": st.booleans(),
            "properties": st.one_of(by_name, st.just([])),
            "required": st.lists(st.one_of(names, st.just(3)), max_size=3),
            "propertyOrdering": st.lists(names, max_size=3),
            "items": st.one_of(inner, st.booleans()),
            "anyOf": schemas,
            "oneOf": schemas,
            "allOf": schemas,
            "$ref": references,
            "$defs": st.fixed_dictionaries({"node": inner}),
            **dict.fromkeys(EXTRA, inner),
        },
    )


anything: st.SearchStrategy[Any] = st.recursive(st.one_of(st.just({}), st.booleans()), grown, max_leaves=12)
schemas = grown(anything)


def complaints(schema: dict[str, Any]) -> list[str]:
    declared = {"name": "f", "parameters": schema} if schema.get("properties") else {"name": "f"}
    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    return lint({"contents": contents, "tools": [{"functionDeclarations": [declared]}]})


@given(schemas)
def test_any_schema_reduces_to_allowed_keys_and_stays(schema: dict[str, Any]) -> None:
    before = json.dumps(schema)
    reduced = reduce_schema(schema)
    assert complaints(reduced) == []
    assert reduced["type"] == "object"
    assert reduce_schema(reduced) == reduced
    assert json.dumps(schema) == before


def of(schema: dict[str, Any]) -> Any:
    """What becomes of the schema of one argument."""
    return reduce_schema({"type": "object", "properties": {"a": schema}})["properties"]["a"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": "x"}, {"type": "string", "enum": ["x"]}),
        ({"type": "integer", "enum": [1, 2], "minimum": 1}, {"type": "string", "enum": ["1", "2"]}),
        ({"enum": ["x", None]}, {"type": "string", "nullable": True, "enum": ["x"]}),
        ({"enum": [True, False]}, {"type": "boolean"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string", "nullable": True}),
        ({"oneOf": [{"type": "string"}, {"type": "number"}]}, {"anyOf": [{"type": "string"}, {"type": "number"}]}),
        (
            {"description": "d", "oneOf": [{"type": "string"}, {"type": "number"}]},
            {"anyOf": [{"description": "d", "type": "string"}, {"description": "d", "type": "number"}]},
        ),
        (
            {"allOf": [{"properties": {"x": {"type": "string"}}, "required": ["x"]}, {"properties": {"y": {"type": "integer"}}}]},
            {"type": "object", "properties": {"y": {"type": "integer"}, "x": {"type": "string"}}, "required": ["x"]},
        ),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "number", "exclusiveMaximum": 9}, {"type": "number", "maximum": 9}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "string", "format": "uuid"}, {"type": "string"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        (
            {"type": "string", "minLength": 1, "pattern": "^a", "$comment": "c"},
            {"type": "string", "pattern": "^a", "minLength": 1},
        ),
        ({"type": "object", "additionalProperties": {"type": "string"}, "patternProperties": {}}, {"type": "object"}),
        (
            {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x", "z"]},
            {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
        ),
        (
            {
                "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
                "anyOf": [{"required": ["x"]}, {"required": ["y"]}],
            },
            {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}},
        ),
        (True, {"type": "string"}),
    ],
)
def test_schema_keywords_are_reduced(schema: Any, expected: dict[str, Any]) -> None:
    assert of(schema) == expected


def test_a_choice_at_the_root_becomes_one_object() -> None:
    first = {"type": "object", "properties": {"x": {"type": "string"}, "z": {"type": "string"}}, "required": ["x", "z"]}
    second = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    reduced = reduce_schema({"anyOf": [first, second]})
    assert set(reduced["properties"]) == {"x", "z"}
    assert reduced["required"] == ["x"]


def test_a_cycle_of_references_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "name": {"type": "string"}}}
    reduced = reduce_schema({"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
    assert reduced["properties"]["tree"]["properties"]["next"] == {"type": "object"}
    assert complaints(reduced) == []
