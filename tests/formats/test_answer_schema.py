"""The schema of a typed answer in the subset that each vendor enforces."""

from __future__ import annotations

from typing import Any

import pytest

from wolo.formats.encoding.answer_schema import ANTHROPIC, GEMINI, OPENAI, strict_schema, without_fillers
from wolo.formats.lint.checks import answer_problems

PLACE = {
    "type": "object",
    "properties": {"x": {"type": "integer", "minimum": 0, "default": 1}, "note": {"type": ["string", "null"]}},
    "required": ["note"],
}
TREE = {
    "type": "object",
    "properties": {"inner": {"$ref": "#"}, "kind": {"const": "tree"}},
    "required": ["kind"],
}


def test_openai_requires_every_property() -> None:
    properties = strict_schema(PLACE, OPENAI)
    assert properties == {
        "type": "object",
        "properties": {
            "x": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["x", "note"],
        "additionalProperties": False,
    }


def test_anthropic_takes_no_bounds() -> None:
    strict = strict_schema(PLACE, ANTHROPIC)
    assert strict is not None
    assert strict["properties"]["x"] == {"type": "integer"}
    assert strict["required"] == ["note"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"any": {}}},
        {"type": "object", "properties": {"map": {"type": "object", "additionalProperties": {"type": "integer"}}}},
        {"type": "object", "properties": {"pair": {"type": "array", "prefixItems": [{"type": "integer"}]}}},
        {"type": "object", "properties": {"list": {"type": "array"}}},
        {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "properties": {"a": {"type": "integer"}}},
        TREE,
    ],
)
def test_inexpressible_schema_is_not_strict(schema: dict[str, Any]) -> None:
    assert strict_schema(schema, OPENAI) is None
    assert strict_schema(schema, ANTHROPIC) is None
    assert strict_schema(schema, GEMINI) is not None


def test_gemini_gets_constants_as_enums() -> None:
    strict = strict_schema(TREE, GEMINI)
    assert strict is not None
    assert strict["properties"]["kind"] == {"enum": ["tree"], "type": "string"}


@pytest.mark.parametrize("subset", [OPENAI, ANTHROPIC])
def test_strict_schema_passes_the_linter(subset: Any) -> None:
    nested = {
        "type": "object",
        "properties": {
            "places": {"type": "array", "items": PLACE, "minItems": 1},
            "one": {"oneOf": [PLACE, {"type": "null"}], "discriminator": {"propertyName": "x"}},
            "several": {
                "type": ["object", "array", "null"],
                "properties": {"a": {"type": "number"}},
                "items": {"type": "string"},
            },
            "empty": {"type": "object", "additionalProperties": False},
        },
    }
    strict = strict_schema(nested, subset)
    assert list(answer_problems(strict, requires_all=subset.requires_all)) == []


def test_nulls_of_optional_properties_are_left_out() -> None:
    schema = {"type": "object", "properties": {"places": {"type": "array", "items": PLACE}}, "required": ["places"]}
    assert without_fillers({"places": [{"x": None, "note": None}], "other": None}, schema) == {
        "places": [{"note": None}],
        "other": None,
    }
