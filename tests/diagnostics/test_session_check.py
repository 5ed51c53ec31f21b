"""The check of a request finds what is broken: each kind of damage done to a sound request is a finding."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.formats.histories import histories
from wolo.diagnostics.request_preview import NextRequest, RequestPreview
from wolo.diagnostics.session_check import check_request
from wolo.messages.message import Message, Usage, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.models.format_selection import FORMATS, format_of
from wolo.models.prompt_cache import PrefixWatch, prefix_of
from wolo.sessions.listing import SessionInfo

CALL = ToolPart(
    tool="read", call_id="call_1", input={"path": "a"}, raw_input='{"path": "a"}', status="completed", outcome="ok", output="text"
)
SAID = (
    user("look"),
    Message(role="assistant", parts=(TextPart(text="I look."), CALL), finished=True, usage=Usage(input_tokens=10)),
    Message(role="assistant", parts=(TextPart(text="It says text."),), finished=True),
    user("thanks"),
)
SESSION = SessionInfo(
    id="session_1",
    name=None,
    title="",
    cwd="",
    model="custom/m",
    mode="",
    created=0.0,
    updated=0.0,
    turns=1,
    tokens=0,
    cost_usd=None,
    parent=None,
)


def request(format: str, said: tuple[Message, ...] = SAID) -> NextRequest:
    return RequestPreview(SESSION, said).next_request(format)


def damaged(request: NextRequest, damage: Callable[[dict[str, Any]], object]) -> NextRequest:
    body = json.loads(request.body)
    damage(body)
    return replace(request, body=json.dumps(body).encode())


@pytest.mark.parametrize("format", FORMATS)
def test_a_sound_request_has_no_finding(format: str) -> None:
    assert [each for each in check_request(request(format), SAID) if each.severity == "error"] == []


@pytest.mark.parametrize(
    ("format", "damage"),
    [
        ("openai-chat", lambda body: body["messages"].pop(3)),
        ("openai-chat", lambda body: body["messages"].pop(2)),
        ("openai-chat", lambda body: body["messages"][2]["tool_calls"][0]["function"].update(arguments={"path": "a"})),
        ("openai-chat", lambda body: body["messages"].append({"role": "assistant", "content": ""})),
        ("openai-chat", lambda body: body["messages"][1].update(content="something else")),
        ("openai-chat", lambda body: body["messages"].append({"role": "system", "content": "late"})),
        ("anthropic", lambda body: body["messages"].pop(2)),
        ("anthropic", lambda body: body["messages"][0].update(content=[])),
        ("openai-responses", lambda body: body["input"].remove(_of_type(body["input"], "function_call_output"))),
        ("openai-responses", lambda body: body["input"].remove(_of_type(body["input"], "function_call"))),
        ("gemini", lambda body: body["contents"].pop(2)),
        ("ollama", lambda body: body["messages"].pop(3)),
    ],
)
def test_damage_is_found(format: str, damage: Callable[[dict[str, Any]], object]) -> None:
    found = check_request(damaged(request(format), damage), SAID)
    assert any(each.severity == "error" and each.format == format for each in found)


def test_prompt_larger_than_window_is_a_finding() -> None:
    seen = request_for_glm(user("x " * 900_000))
    assert any(each.severity == "error" and "exceed the context window" in each.text for each in check_request(seen, SAID))


def test_long_conversation_shortened_like_runs_is_no_finding() -> None:
    turns = [each for number in range(40) for each in (user("x " * 60_000), replace(SAID[2], id=f"msg_{number}"))]
    found = check_request(request_for_glm(*turns, user("go on")), turns)
    assert [each.severity for each in found] == ["note"]
    assert "exceeds the context window" in found[0].text


def request_for_glm(*said: Message) -> NextRequest:
    return RequestPreview(replace(SESSION, model="zai/glm-4.5"), said).next_request("openai-chat")


def _of_type(items: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(item for item in items if item.get("type") == kind)


@given(said=histories.filter(bool), format=st.sampled_from(FORMATS))
def test_whatever_was_said_is_sound_in_every_format(said: tuple[Message, ...], format: str) -> None:
    found = check_request(request(format, said), said)
    assert [each for each in found if each.severity == "error"] == []


@given(said=histories.filter(bool), format=st.sampled_from(FORMATS))
def test_growing_conversation_never_misses_a_cache(said: tuple[Message, ...], format: str) -> None:
    said = (user("begin"), *said)  # system messages in front are the system prompt: that would change, not grow
    whole = request(format, said)
    form, watch = format_of(whole.choice), PrefixWatch()
    asked: list[Message] = []
    for message in said:
        asked.append(message)
        form.encode(replace(whole.request, messages=tuple(asked)))
        asked[-1] = watch.remember(message, asked, form.blocks())
        prefix = prefix_of(asked[-1])
        assert prefix is not None
        assert prefix.differs == ""
