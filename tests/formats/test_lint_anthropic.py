"""The linter of the Messages API: each rule can be broken, and is noticed."""

from __future__ import annotations

from typing import Any

import pytest

from wolo.formats.lint.anthropic import lint

TEXT = {"type": "text", "text": "hi"}
CALL = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "done"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
TOOL = {"name": "read", "description": "", "input_schema": {"type": "object", "properties": {}}}
MARK = {"cache_control": {"type": "ephemeral"}}
LONG_MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def said(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


USER, CALLING, ANSWERING = said("user", TEXT), said("assistant", CALL), said("user", RESULT)
GOOD = [USER, said("assistant", THOUGHT, TEXT, CALL), ANSWERING]


def body(messages: Any = None, **fields: Any) -> dict[str, Any]:
    return {"max_tokens": 4096, "messages": GOOD if messages is None else messages, "tools": [TOOL], **fields}


def test_a_good_request_passes() -> None:
    marked = body(
        [*GOOD[:2], said("user", {**RESULT, **MARK})],
        system=[{**TEXT, **LONG_MARK}],
        thinking={"type": "enabled", "budget_tokens": 1024},
    )
    assert lint(marked, body(GOOD[:1], system=[{**TEXT, **MARK}]), strict_template=True) == []
    assert lint({"max_tokens": 1, "messages": [{"role": "user", "content": "hi"}, said("assistant", TEXT)]}) == []


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([], "non-empty"),
        ([said("system", TEXT)], "no user or assistant"),
        ([said("assistant", TEXT), USER], "must speak first"),
        ([USER, USER], "two user messages"),
        ([USER, CALLING], "without a tool_result"),
        ([USER, CALLING, USER], "without tool_result blocks immediately after"),
        ([USER, CALLING, said("user", TEXT, RESULT)], "must come first"),
        ([USER, CALLING, said("user", RESULT, RESULT)], "answered twice"),
        ([said("user", RESULT)], "unexpected tool_use_id"),
        ([USER, CALLING, ANSWERING, CALLING, ANSWERING], "used twice"),
        ([USER, said("assistant", {**CALL, "id": "a:b"}), said("user", {**RESULT, "tool_use_id": "a:b"})], "illegal tool_use id"),
        ([USER, said("assistant", {**CALL, "input": "{}"}), ANSWERING], "must be an object"),
        ([USER, said("assistant", {**CALL, "name": "a.b"}), ANSWERING], "illegal tool name"),
        ([said("user")], "must be non-empty"),
        ([said("user", {"type": "text", "text": " \n"})], "text content blocks must be non-empty"),
        ([said("user", CALL)], "in a message of the user"),
        ([USER, said("assistant", TEXT, THOUGHT), USER], "final block"),
        ([USER, said("assistant", {"type": "thinking", "thinking": "hm"}, TEXT), USER], "a signature"),
        ([USER, said("assistant", {"type": "redacted_thinking", "data": ""}, TEXT), USER], "without data"),
        ([USER, CALLING, said("user", {**RESULT, "content": [CALL]})], "in a tool_result"),
        ([USER, CALLING, said("user", {**RESULT, "content": {}})], "neither text nor a list"),
        (
            [USER, CALLING, said("user", {**RESULT, "is_error": True, "content": [{"type": "image"}]})],
            "takes text only",
        ),
        ([said("user", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}})], "is empty"),
        ([said("user", {"type": "image", "source": {"type": "base64", "media_type": "image/x", "data": "A"}})], "no image type"),
        ([said("user", {"type": "image", "source": {}})], "no known type"),
    ],
)
def test_a_broken_rule_is_noticed(messages: list[dict[str, Any]], complaint: str) -> None:
    assert any(complaint in each for each in lint(body(messages)))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"stop_sequences": [" "]}, "stop_sequences"),
        ({"system": [{"type": "text", "text": ""}]}, "system"),
        ({"system": ""}, "system"),
        ({"temperature": float("nan")}, "no JSON"),
        ({"thinking": {"type": "maybe"}}, "unknown type"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1023}}, "budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, "budget_tokens"),
        ({"thinking": {"type": "adaptive"}, "temperature": 1.0}, "together with thinking"),
        ({"thinking": {"type": "adaptive"}, "tool_choice": {"type": "any"}}, "forced tool_choice"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}, "messages": [USER, CALLING, ANSWERING]}, "Expected thinking"),
        ({"tools": [{**TOOL, **MARK}] * 5}, "5 cache_control marks"),
        ({"tools": [{**TOOL, **MARK}], "system": [{**TEXT, **LONG_MARK}]}, "1h behind"),
        ({"system": [{**TEXT, "cache_control": {"type": "ephemeral", "ttl": "2h"}}]}, "unknown ttl"),
        ({"messages": [USER, said("assistant", {**THOUGHT, **MARK}, CALL), ANSWERING]}, "on thinking"),
        ({"tools": None}, "tools must be present"),
        ({"tools": []}, "leave the key out"),
        ({"tools": [TOOL, TOOL]}, "offered twice"),
        ({"tools": [{**TOOL, "name": "a.b"}]}, "illegal name"),
        ({"tools": [{"name": "read", "input_schema": {"type": "object", "anyOf": []}}]}, "not a plain object schema"),
    ],
)
def test_a_broken_rule_beside_the_messages_is_noticed(fields: dict[str, Any], complaint: str) -> None:
    assert any(complaint in each for each in lint(body(**fields)))


@pytest.mark.parametrize(
    ("now", "complaint"),
    [
        (body(tools=[{**TOOL, "description": "new"}]), "tools differs"),
        (body(system=[TEXT]), "system differs"),
        (body(GOOD[:1]), "only 1 now"),
        (body([said("user", {"type": "text", "text": "other"}), *GOOD[1:]]), "messages[0] differs"),
    ],
)
def test_a_changed_prefix_is_noticed(now: dict[str, Any], complaint: str) -> None:
    assert any(complaint in each for each in lint(now, body()))
