"""The linter that judges every request: each rule can be broken, and is noticed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from wolo.formats.lint.chat import lint

CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
USER = {"role": "user", "content": "hi"}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "done"}
TOOL = {"type": "function", "function": {"name": "read", "description": "", "parameters": {"type": "object", "properties": {}}}}
GOOD: list[dict[str, Any]] = [{"role": "system", "content": "s"}, USER, CALLING, RESULT]


def test_a_good_request_passes() -> None:
    assert lint({"messages": GOOD, "tools": [TOOL]}, {"messages": GOOD[:2], "tools": [TOOL]}, strict_template=True) == []


def calling(**call: Any) -> dict[str, Any]:
    return {**CALLING, "tool_calls": [{**CALL, **call}]}


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([], "non-empty"),
        ([{"content": "x"}], "known role"),
        ([USER, CALLING], "without a result"),
        ([USER, CALLING, USER], "before the results"),
        ([USER, RESULT], "without its call"),
        ([USER, CALLING, RESULT, RESULT], "without its call"),
        ([USER, CALLING, RESULT, CALLING, RESULT], "used twice"),
        ([USER, calling(id=""), RESULT], "without an id"),
        ([USER, calling(function={"name": "read", "arguments": '{"a"'}), RESULT], "JSON object"),
        ([USER, calling(function={"name": "read", "arguments": "[]"}), RESULT], "JSON object"),
        ([USER, calling(function={"name": "read", "arguments": {}}), RESULT], "JSON object"),
        ([USER, calling(function={"name": "read", "arguments": '{"a": NaN}'}), RESULT], "JSON object"),
        ([USER, calling(function={"name": "a.b", "arguments": "{}"}), RESULT], "tool name"),
        ([USER, calling(type="custom"), RESULT], "no function"),
        ([USER, {"role": "assistant", "content": ""}], "neither content nor calls"),
        ([USER, {"role": "assistant", "content": "x", "tool_calls": []}], "leave the key out"),
        ([USER, {"role": "assistant", "tool_calls": [CALL]}, RESULT], "content key is missing"),
        ([{"role": "user", "content": []}], "empty content list"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "empty text part"),
        ([USER, CALLING, {**RESULT, "content": None}], "must be text"),
        ([{"role": "assistant", "content": "x"}], "no user message"),
        ([USER, {"role": "system", "content": "s"}], "not the first"),
        ([USER, {"role": "assistant", "content": "x"}], "nothing to answer"),
        ([{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}] * 5}], "5 cache marks"),
    ],
)
def test_a_broken_rule_is_noticed(messages: list[dict[str, Any]], complaint: str) -> None:
    assert any(complaint in each for each in lint({"messages": messages}))


def test_two_user_messages_trouble_only_strict_templates() -> None:
    assert lint({"messages": [USER, USER]}) == []
    assert lint({"messages": [USER, USER]}, strict_template=True) != []


@pytest.mark.parametrize(
    "tools",
    [
        [],
        [TOOL, TOOL],
        [{"type": "function", "function": {"name": "a b", "parameters": {"type": "object"}}}],
        [{"type": "function", "function": {"name": "a", "parameters": {"type": "string"}}}],
    ],
)
def test_bad_tools_are_noticed(tools: list[dict[str, Any]]) -> None:
    assert lint({"messages": [USER], "tools": tools}) != []


def test_a_changed_prefix_is_noticed() -> None:
    changed = copy.deepcopy(GOOD)
    changed[1]["content"] = "ho"
    assert "messages[1] differs" in lint({"messages": changed}, {"messages": GOOD})[0]
    assert lint({"messages": GOOD[:2]}, {"messages": GOOD}) != []
    assert lint({"messages": GOOD, "tools": [TOOL]}, {"messages": GOOD}) != []
    other = {"type": "function", "function": {"name": "other", "parameters": TOOL["function"]["parameters"]}}
    assert lint({"messages": GOOD, "tools": [other, TOOL]}, {"messages": GOOD, "tools": [TOOL]}) != []
    assert lint({"messages": GOOD, "tools": [TOOL, other]}, {"messages": GOOD, "tools": [TOOL]}) == []
    reordered = [{"content": "s", "role": "system"}, *GOOD[1:]]
    assert lint({"messages": reordered}, {"messages": GOOD}) != []


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({"type": "string"}, "no object schema"),
        ({"properties": {}}, "no object schema"),
        ({"type": "object", "properties": {"a": {"$ref": "#/x"}}}, "$ref"),
        ({"type": "object", "$schema": "x"}, "$schema"),
        ({"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}]}}}, "array without items"),
        ({"type": "object", "required": "a"}, "malformed"),
    ],
)
def test_a_schema_that_costs_the_request_is_noticed(schema: dict[str, Any], complaint: str) -> None:
    tool = {"type": "function", "function": {"name": "read", "parameters": schema}}
    assert any(complaint in each for each in lint({"messages": [USER], "tools": [tool]}))


def test_a_property_may_be_called_like_a_keyword() -> None:
    schema = {"type": "object", "properties": {"$ref": {"type": "string"}, "definitions": {"type": "string"}}}
    assert lint({"messages": [USER], "tools": [{"type": "function", "function": {"name": "read", "parameters": schema}}]}) == []
