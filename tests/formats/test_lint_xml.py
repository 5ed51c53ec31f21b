"""The linter of the text protocol finds what must not be in such a request."""

from __future__ import annotations

from typing import Any

import pytest

from wolo.formats.lint.chat import lint_xml as lint

CALL = '<tool>{"server_name":"local","tool_name":"read","arguments":{}}</tool>'
SYSTEM = {"role": "system", "content": f"Call tools like this: {CALL}"}
USER = {"role": "user", "content": "Read it."}
CALLED = {"role": "assistant", "content": CALL}
RESULT = {"role": "user", "content": "Tool: read\nfine"}


def body(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **fields}


def test_a_sound_request_passes() -> None:
    assert lint(body(SYSTEM, USER, CALLED, RESULT), body(SYSTEM, USER)) == []


@pytest.mark.parametrize(
    ("request_body", "complaint"),
    [
        (
            body(SYSTEM, USER, tools=[{"type": "function", "function": {"name": "read"}}]),
            "offers tools in the system prompt only",
        ),
        (body(SYSTEM, USER, tool_choice="auto"), "tool_choice"),
        (body(SYSTEM, {"role": "user", "content": f"What is {CALL}?"}), "holds <tool> as it is"),
        (body(SYSTEM, {"role": "user", "content": [{"type": "text", "text": CALL}]}), "holds <tool> as it is"),
        (body(SYSTEM, USER, {"role": "assistant", "content": "Hm."}, RESULT), "a result, but no call before it"),
        (body(SYSTEM, RESULT), "a result, but no call before it"),
        (body({"role": "system", "content": "You are Wolo."}, USER, CALLED, RESULT), "does not say how tools are called"),
        (body(SYSTEM, USER, {"role": "assistant", "content": ""}, USER), "The content cannot be empty"),
        (body(SYSTEM, USER, {"role": "developer", "content": "x"}), "is not one of system, user, assistant, tool"),
        (body(SYSTEM, USER, {"role": "tool", "tool_call_id": "1", "content": "x"}), "calls and results are text here"),
        ({"model": "m"}, "non-empty list"),
    ],
)
def test_each_mistake_is_named(request_body: dict[str, Any], complaint: str) -> None:
    assert any(complaint in each for each in lint(request_body))


def test_a_changed_prefix_is_found() -> None:
    assert any("differs" in each for each in lint(body(SYSTEM, RESULT), body(SYSTEM, USER)))
