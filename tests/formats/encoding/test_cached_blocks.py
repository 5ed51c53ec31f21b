"""A stretch of conversation as one cached block of text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.histories import request
from tests.formats.test_every_format import Side
from wolo.formats.encoding.cached_blocks import (
    format_conversation_for_cache,
    is_cached_block,
    without_embedded_results,
)
from wolo.formats.encoding.encoder import CACHED_BLOCK_READ, NO_ANSWER
from wolo.formats.lint.chat import lint
from wolo.formats.openai_chat import ChatDialect, OpenAIChat, to_llm_messages
from wolo.messages.message import Codec, Message, system, user
from wolo.messages.parts import ImagePart, TextPart, ThinkingPart, ToolPart
from wolo.models.format_selection import FORMATS

ASKED = user("research the founder")
ANSWERED = Message(
    role="assistant",
    parts=(
        ThinkingPart(text="hm"),
        TextPart(text="I look it up."),
        ToolPart(tool="search", input={"query": "founder"}, call_id="c1", status="completed", outcome="ok", output="found"),
    ),
)


def test_several_messages_become_one_block_of_the_user() -> None:
    block = format_conversation_for_cache([system("You are x."), ASKED, ANSWERED])
    assert block.role == "user"
    assert block.text == (
        "User: research the founder\n\nAssistant: I look it up.\n\n"
        'Tool: {"name": "search", "arguments": {"query": "founder"}, "result": "found"}'
    )
    assert is_cached_block(block)
    assert not is_cached_block(ASKED)


def test_attachment_is_named() -> None:
    block = format_conversation_for_cache([user("see", ImagePart(media_type="image/png", data=b"x"))])
    assert block.text == "User: see\n[image image/png]"


def test_order_is_system_then_block_then_new_messages() -> None:
    wire = to_llm_messages([user("before"), format_conversation_for_cache([ASKED, ANSWERED]), user("go on")])
    assert [each["role"] for each in wire] == ["system", "user", "user", "user"]
    [part] = wire[2]["content"]
    assert part["cache_control"] == {"type": "ephemeral"}
    assert part["text"].startswith("User: research the founder")
    assert [is_cached_block(each) for each in wire] == [False, False, True, False]
    assert wire[3]["content"] == "go on"


def test_server_knowing_marks_gets_no_filler_around_blocks() -> None:
    history = (user("before"), format_conversation_for_cache([ASKED]), user("go on"))
    marking, strict, lax = (
        json.loads(OpenAIChat(dialect).encode(request(history)))["messages"]
        for dialect in (ChatDialect(cache_marks=True), ChatDialect(), ChatDialect(alternate_roles=False))
    )
    assert [each["role"] for each in marking] == ["system", "user", "user", "user"]
    assert [each["role"] for each in lax] == ["system", "user", "user", "user"]
    assert [each["role"] for each in strict] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert strict[2]["content"] == NO_ANSWER
    assert strict[4]["content"] == CACHED_BLOCK_READ


def test_requests_around_a_block_keep_their_first_bytes() -> None:
    history = (user("before"), format_conversation_for_cache([ASKED]), user("go on"), ANSWERED, user("more"))
    for dialect in (ChatDialect(), ChatDialect(cache_marks=True)):
        growing, previous = OpenAIChat(dialect), None
        for count in (2, 3, 2, 3, 5):
            sent = growing.encode(request(history[:count]))
            assert sent == OpenAIChat(dialect).encode(request(history[:count]))
            body = json.loads(sent)
            assert lint(body, previous if count > 2 else None) == []
            previous = body


def test_kept_block_is_still_one_after_disk() -> None:
    codec = Codec(Message)
    assert is_cached_block(codec.decode(codec.encode(format_conversation_for_cache([ASKED]))))


def test_spelled_result_is_dropped_unless_cached_or_answering() -> None:
    cached: dict[str, Any] = {
        "role": "user",
        "content": [{"type": "text", "text": 'Tool: {"a": 1}', "cache_control": {"type": "ephemeral"}}],
    }
    calling = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": {}}]}
    answering = {"role": "user", "content": 'Tool: {"tool_call_id": "c1", "content": "x"}'}
    stray = {"role": "user", "content": 'Tool: {"tool_call_id": "c9"}'}
    stray_list = {"role": "user", "content": [{"type": "text", "text": 'Tool: {"b": 2}'}]}
    words = {"role": "user", "content": "Tool: which one do you mean?"}
    of_assistant = {"role": "assistant", "content": 'Tool: {"c": 3}'}
    odd = {"role": "user", "content": None}
    kept = without_embedded_results([cached, answering, calling, answering, stray, stray_list, words, of_assistant, odd])
    assert kept == [cached, calling, answering, words, of_assistant, odd]


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_claims_a_missing_answer_behind_block(name: str) -> None:
    side = Side(name)
    history = (format_conversation_for_cache([ASKED]), user("go on"))
    assert NO_ANSWER not in side.format().encode(side.request(history)).decode()
    growing = side.format()
    for count in (1, 2, 1, 2):
        assert growing.encode(side.request(history[:count])) == side.format().encode(side.request(history[:count]))
