"""The linter of the Responses API: each rule can be broken, and is noticed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from wolo.formats.lint.responses import lint

USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
    "phase": "commentary",
}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
TOOL = {"type": "function", "name": "read", "description": "", "parameters": {"type": "object"}, "strict": False}
GOOD: list[dict[str, Any]] = [USER, THOUGHT, SAID, CALL, OUTPUT]
BODY: dict[str, Any] = {
    "model": "m",
    "instructions": "s",
    "input": GOOD,
    "tools": [TOOL],
    "store": False,
    "reasoning": {"effort": "high", "summary": "auto"},
    "max_output_tokens": 16,
    "prompt_cache_key": "s-1",
}


def content(*pieces: dict[str, Any]) -> dict[str, Any]:
    return {**USER, "content": list(pieces)}


def without(item: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != name}


def test_a_good_request_passes() -> None:
    assert lint(BODY, {**BODY, "input": GOOD[:1]}, strict_template=True) == []


def test_the_easy_form_of_a_message_passes() -> None:
    assert (
        lint(
            {"input": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]}
        )
        == []
    )


@pytest.mark.parametrize(
    ("items", "complaint"),
    [
        ([], "non-empty"),
        ([{"content": "x"}], "known type"),
        ([{"type": "web_search_call"}], "known type"),
        ([{"type": "message", "role": "tool", "content": "x"}], "known type"),
        ([USER, CALL], "without an output"),
        ([USER, CALL, USER], "before the outputs"),
        ([USER, OUTPUT], "without its call"),
        ([USER, CALL, OUTPUT, OUTPUT], "without its call"),
        ([USER, CALL, OUTPUT, {**CALL, "id": "fc_2"}, OUTPUT], "used twice"),
        ([USER, CALL, OUTPUT, {**CALL, "call_id": "call_2"}, {**OUTPUT, "call_id": "call_2"}], "used twice"),
        ([USER, {**CALL, "call_id": "a" * 65}, {**OUTPUT, "call_id": "a" * 65}], "illegal call id"),
        ([USER, {**CALL, "call_id": "a_"}, {**OUTPUT, "call_id": "a_"}], "illegal call id"),
        ([USER, {**CALL, "id": "call_1"}, OUTPUT], "illegal item id"),
        ([USER, {**CALL, "id": "fc_" + "a" * 62}, OUTPUT], "illegal item id"),
        ([USER, {**CALL, "name": "a.b"}, OUTPUT], "tool name"),
        ([USER, {**CALL, "arguments": '{"a"'}, OUTPUT], "JSON object"),
        ([USER, {**CALL, "arguments": {}}, OUTPUT], "JSON object"),
        ([USER, {**CALL, "arguments": '{"a": NaN}'}, OUTPUT], "JSON object"),
        ([USER, CALL, {**OUTPUT, "output": ""}], "empty output"),
        ([USER, CALL, {**OUTPUT, "output": {}}], "neither text nor a list"),
        ([USER, CALL, {**OUTPUT, "output": []}], "empty content list"),
        ([USER, CALL, {**OUTPUT, "output": [{"type": "output_text", "text": "x"}]}], "here stand"),
        ([USER, THOUGHT], "without the item it led to"),
        ([USER, THOUGHT, USER], "without the item it led to"),
        ([USER, THOUGHT, without(CALL, "id"), OUTPUT], "lost its id"),
        ([USER, without(THOUGHT, "encrypted_content"), CALL, OUTPUT], "no encrypted content"),
        ([USER, without(THOUGHT, "id"), CALL, OUTPUT], "without an id"),
        ([USER, {**THOUGHT, "summary": "x"}, CALL, OUTPUT], "summary"),
        ([USER, SAID], "nothing to answer"),
        ([SAID, {**USER, "role": "developer"}], "no user message"),
        ([USER, {**USER, "role": "developer"}], "not the first"),
        ([{**USER, "content": ""}], "empty user message"),
        ([{**USER, "content": None}], "neither text nor a list"),
        ([{**USER, "id": "msg_1"}], "only the assistant's"),
        ([{**USER, "phase": "commentary"}], "phase"),
        ([content()], "empty content list"),
        ([content({"type": "input_text", "text": ""})], "empty text"),
        ([content({"type": "text", "text": "x"})], "here stand"),
        ([content({"type": "input_image", "image_url": "https://x/y.png"})], "detail"),
        ([content({"type": "input_file", "filename": "x"})], "a file without"),
        ([USER, {**SAID, "content": [{"type": "input_text", "text": "x"}]}, USER], "here stand"),
    ],
)
def test_a_broken_rule_is_noticed(items: list[dict[str, Any]], complaint: str) -> None:
    assert any(complaint in each for each in lint({"input": items, "store": False}))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"tools": []}, "leave the key out"),
        ({"tools": [TOOL, TOOL]}, "offered twice"),
        ({"tools": [{"type": "function", "function": TOOL}]}, "flat"),
        ({"tools": [without(TOOL, "parameters")]}, "object schema"),
        ({"tools": [{**TOOL, "parameters": {"type": "string"}}]}, "object schema"),
        ({"tools": [{**TOOL, "name": "a b"}]}, "illegal name"),
        ({"previous_response_id": "resp_1"}, "not stored"),
        ({"instructions": " "}, "empty instructions"),
        ({"reasoning": {"effort": "off"}}, "illegal reasoning"),
        ({"max_output_tokens": 15}, "below 16"),
        ({"prompt_cache_key": "k" * 65}, "64 characters"),
        ({"max_tokens": 5}, "another format"),
        ({"messages": []}, "another format"),
    ],
)
def test_a_broken_field_is_noticed(change: dict[str, Any], complaint: str) -> None:
    assert any(complaint in each for each in lint({**BODY, **change}))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"input": GOOD[1:]}, "before, only"),
        ({"input": [content({"type": "input_text", "text": "other"}), *GOOD[1:]]}, "input[0] differs"),
        ({"tools": [{**TOOL, "description": "x"}]}, "tools differ"),
        ({"instructions": "other"}, "instructions differ"),
    ],
)
def test_a_changed_prefix_is_noticed(change: dict[str, Any], complaint: str) -> None:
    assert any(complaint in each for each in lint({**copy.deepcopy(BODY), **change}, BODY))


def test_two_user_messages_trouble_only_strict_templates() -> None:
    assert lint({"input": [USER, USER]}) == []
    assert lint({"input": [USER, USER]}, strict_template=True) != []
