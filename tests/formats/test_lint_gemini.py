"""The linter of Gemini requests: each rule can be broken, and is noticed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from wolo.formats.lint.gemini import lint

SIGNATURE, PLACEHOLDER = "c2lnbmF0dXJl", "skip_thought_signature_validator"
USER = {"role": "user", "parts": [{"text": "hi"}]}
MODEL = {"role": "model", "parts": [{"text": "Yes."}]}
CALL = {"functionCall": {"id": "c1", "name": "read", "args": {}}}
SIGNED = {**CALL, "thoughtSignature": SIGNATURE}
OTHER = {"functionCall": {"name": "look", "args": {}}}
RESPONSE = {"functionResponse": {"id": "c1", "name": "read", "response": {"output": "x"}}}
OTHER_RESPONSE = {"functionResponse": {"name": "look", "response": {"output": "x"}}}
TOOL = {"functionDeclarations": [{"name": "read", "description": "Reads.", "parametersJsonSchema": {"type": "object"}}]}
GOOD: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "s"}]},
    "contents": [USER, {"role": "model", "parts": [SIGNED, OTHER]}, {"role": "user", "parts": [RESPONSE, OTHER_RESPONSE]}],
    "tools": [TOOL],
    "generationConfig": {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"}},
}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def said(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def declared(**fields: Any) -> dict[str, Any]:
    return {"contents": [USER], "tools": [{"functionDeclarations": [{"name": "read", **fields}]}]}


def test_a_good_request_passes() -> None:
    before = {**GOOD, "contents": GOOD["contents"][:1]}
    assert lint(GOOD, before, strict_template=True) == []


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        ([], "non-empty"),
        ([{"role": "assistant", "parts": []}], "no object with a role"),
        ([{"role": "user", "parts": "hi"}], "no object with a role"),
        ([MODEL, USER], "first content"),
        ([USER, MODEL], "nothing to answer"),
        ([USER, USER], "in a row"),
        ([said()], "empty parts"),
        ([said({"text": ""})], "empty text"),
        ([said({"text": "a", "inlineData": {}})], "exactly one"),
        ([said({"words": "a"})], "unknown field 'words'"),
        ([said({"text": "a", "thoughtSignature": SIGNATURE})], "only the model thinks"),
        ([USER, model({"text": "a", "thoughtSignature": "?"}), USER], "not base64"),
        ([said(CALL)], "only the model calls"),
        ([USER, model({"functionCall": {"name": "read", "args": "{}"}}), said(OTHER_RESPONSE)], "no object"),
        ([USER, model({"functionCall": {"name": "3d"}}), said({"functionResponse": {"name": "3d", "response": {}}})], "illegal"),
        ([USER, model({"functionCall": {"name": "read", "arguments": {}}}), USER], "unknown field 'arguments'"),
        ([USER, model(CALL), said({"functionResponse": {"id": "c1", "name": "read", "response": "x"}})], "no object"),
        ([USER, model(CALL), USER], "0 function responses to 1"),
        ([USER, model(CALL)], "without a response"),
        ([said(RESPONSE)], "1 function responses to 0"),
        ([USER, model(CALL, OTHER), said(OTHER_RESPONSE, RESPONSE)], "in name, id and order"),
        ([USER, model(CALL), said(RESPONSE), model(CALL), said(RESPONSE)], "used twice"),
        ([USER, model(OTHER, {**CALL, "thoughtSignature": PLACEHOLDER}), said(OTHER_RESPONSE, RESPONSE)], "other than the first"),
        ([USER, model({"text": "a", "thoughtSignature": PLACEHOLDER}), USER], "other than the first"),
        (
            [USER, model({**OTHER, "thoughtSignature": PLACEHOLDER}), said(OTHER_RESPONSE), model(CALL), said(RESPONSE)],
            "is missing a thoughtSignature",
        ),
        ([said({"inlineData": {"data": "eA=="}})], "without a mimeType"),
        ([said({"inlineData": {"mimeType": "image/png", "data": ""}})], "not base64"),
        ([said({"fileData": {}})], "without fileUri"),
    ],
)
def test_bad_contents_are_noticed(contents: list[Any], complaint: str) -> None:
    assert any(complaint in found for found in lint({"contents": contents})), lint({"contents": contents})


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"contents": [USER], "messages": []}, "unknown field 'messages'"),
        ({"contents": [USER], "systemInstruction": {"parts": []}}, "systemInstruction"),
        ({"contents": [USER], "tools": []}, "leave the key out"),
        (declared(name="a b"), "illegal function name"),
        ({"contents": [USER], "tools": [TOOL, TOOL]}, "offered twice"),
        (declared(parametersJsonSchema={"type": "string"}), "is no object"),
        (declared(parametersJsonSchema={"type": "object"}, parameters={"type": "object"}), "two schemas"),
        (declared(parameters={"type": "object"}), "leave them out"),
        (declared(parameters={"type": "object", "properties": {"a": {"$ref": "#"}}}), "'$ref' is not allowed"),
        (declared(parameters={"type": "object", "properties": {"a": {}}}), "without a type"),
        (declared(parameters={"type": "object", "properties": {"a": {"type": "array"}}}), "without items"),
        (declared(parameters={"type": "object", "properties": {"a": {"type": "string", "enum": [1]}}}), "enum"),
        (declared(parameters={"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}), "no properties"),
        ({"contents": [USER], "generationConfig": {"thinkingConfig": {"thinkingBudget": 1, "thinkingLevel": "LOW"}}}, "exclude"),
        (
            {"contents": [USER], "generationConfig": {"thinkingConfig": {"thinkingBudget": 0, "includeThoughts": True}}},
            "without any",
        ),
        ({"contents": [USER], "generationConfig": {"responseJsonSchema": {}}}, "responseMimeType"),
        ({"contents": [USER], "generationConfig": {"stopSequences": list("abcdef")}}, "stopSequences"),
    ],
)
def test_a_bad_body_is_noticed(body: dict[str, Any], complaint: str) -> None:
    assert any(complaint in found for found in lint(body)), lint(body)


def test_thinking_level_requires_signatures_in_current_turn_only() -> None:
    unsigned = [USER, model(CALL), said(RESPONSE)]
    strict = {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}
    assert lint({"contents": unsigned}) == []
    assert any("missing a thoughtSignature" in found for found in lint({"contents": unsigned, **strict}))
    assert lint({"contents": [*unsigned, MODEL, USER], **strict}) == []


def test_sent_parts_must_come_again_unchanged() -> None:
    changed = copy.deepcopy(GOOD)
    changed["contents"][0]["parts"][0]["text"] = "ho"
    changed["systemInstruction"]["parts"][0]["text"] = "t"
    changed["tools"] = [{"functionDeclarations": [{"name": "other"}]}]
    found = lint(changed, GOOD)
    for part in ("contents[0] differs", "systemInstruction differs", "tools differs"):
        assert any(part in each for each in found), found
    assert any("only 1 now" in each for each in lint({**GOOD, "contents": GOOD["contents"][:1]}, GOOD))
