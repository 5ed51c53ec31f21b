"""Call ids that are longer than some servers take, at every provider of Chat Completions."""

from __future__ import annotations

import json

import pytest

from wolo.formats.format import Request
from wolo.messages.message import Message, Producer, user
from wolo.messages.parts import ToolPart
from wolo.models.catalog_files import PROVIDERS, in_format, load
from wolo.models.format_selection import format_of
from wolo.models.provider import Model, ModelChoice

LONG = "functions.read:0__thought__" + "x" * 300


@pytest.mark.parametrize("name", PROVIDERS)
def test_no_id_is_longer_than_forty_characters(name: str) -> None:
    choice = ModelChoice(provider=in_format(load(name), "openai-chat"), model=Model(id="any"), base_url="https://example.com/v1")
    calls = [
        ToolPart(tool="read", call_id=each, status="completed", outcome="ok", output="x") for each in (LONG, LONG + "y", "call_1")
    ]
    messages = (user("go"), Message(role="assistant", parts=tuple(calls), finished=True))
    body = json.loads(
        format_of(choice).encode(Request(model="any", producer=Producer("p", "openai-chat", "any"), messages=messages))
    )
    asked = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    assert asked == answered
    assert len(set(asked)) == 3
    assert all(len(each) <= 40 for each in asked)
    assert name == "mistral" or asked[2] == "call_1"
