"""The token estimate."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from tests.clock import clock_counts
from wolo.formats.encoding.cached_blocks import format_conversation_for_cache, is_cached_block
from wolo.formats.format import ToolSpec
from wolo.messages.message import Message, system, user
from wolo.messages.parts import AudioPart, FilePart, ImagePart, TextPart, ThinkingPart, ToolPart
from wolo.messages.roles import (
    AgentMessage,
    AssistantMessage,
    SystemMessage,
    ToolMessage,
    ToolResult,
    UserMessage,
    by_role,
    to_messages,
)
from wolo.models.tokens import ConversationMemory, TokenEstimate, estimate_message, estimate_text, estimate_tools


def test_hello_is_five() -> None:
    assert estimate_message(user("Hello")) == 5


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("Hello", 1), ("a" * 100, 25), ("漢" * 100, 75), ("привет" * 10, 30), ("🙂" * 10, 10), ("\ud800abc", 1)],
)
def test_a_token_is_four_bytes(text: str, tokens: int) -> None:
    assert estimate_text(text) == tokens


def test_call_spelled_in_text_has_a_frame() -> None:
    text = '<tool>\n{\n  "server_name": "local",\n  "tool_name": "calculator",\n  "arguments": {"a": 5, "b": 3}\n}\n</tool>'
    assert estimate_message(Message(role="assistant", parts=[TextPart(text=text)])) == len(text) // 4 + 4 + 10


def test_calls_results_and_thinking_count() -> None:
    call = ToolPart(tool="read", input={"path": "a" * 36}, output="b" * 400, status="completed")
    message = Message(role="assistant", parts=[ThinkingPart(text="c" * 40), call])
    assert estimate_message(message) == 4 + 10 + (10 + (4 + 47) // 4 + 100)


def test_half_character_arguments_are_counted_anyway() -> None:
    assert estimate_message(Message(role="assistant", parts=[ToolPart(tool="read", input={"path": "\ud83d"})])) > 0


def test_media_are_not_counted_by_their_bytes() -> None:
    media = (ImagePart(data=b"x" * 1_000_000), AudioPart(data=b"x" * 5_000), FilePart(data=b"x" * 4_000))
    assert estimate_message(Message(role="user", parts=media)) == 4 + 1_000 + 10 + 100


def test_request_counts_prompt_tools_and_messages() -> None:
    tools = (ToolSpec(name="read", description="d" * 200, parameters={"type": "object"}),)
    estimate = TokenEstimate()
    assert estimate.request([user("Hello")], system="s" * 400, tools=tools) == 104 + estimate_tools(tools) + 5
    assert estimate.request([user("Hello")]) == 5


def test_a_changed_message_is_measured_again() -> None:
    estimate, message = TokenEstimate(), user("Hello")
    assert estimate.message(message) == 5
    assert estimate.message(replace(message, parts=(TextPart(text="Hello" * 10),))) == 16


def test_a_long_session_costs_no_more_per_turn() -> None:
    estimate = TokenEstimate()
    messages: list[Message] = []

    def grow(turns: int) -> float:
        started = time.process_time()
        for _ in range(turns):
            messages.append(user("word " * 2_000))
            estimate.request(messages)
        return time.process_time() - started

    first = grow(100)
    for _ in range(2):
        last = grow(100)
    unmeasured = TokenEstimate()
    started = time.process_time()
    unmeasured.request(messages)
    whole = time.process_time() - started
    assert last < max(first * 10, whole * 20, 0.1) or not clock_counts()


def test_memory_removes_oldest_messages_except_system_ones() -> None:
    memory = ConversationMemory[Message](100)
    memory.add(system("Be kind."))
    added = [user(f"message {number} {'x' * 60}") for number in range(10)]
    removed = [gone for message in added for gone in memory.add(message)]
    assert [message.role for message in memory.messages][:2] == ["system", "user"]
    assert [*removed, *memory.messages[1:]] == added
    assert memory.tokens == sum(map(estimate_message, memory.messages)) <= 100


def test_message_too_large_for_memory_is_named() -> None:
    memory = ConversationMemory[Message](20)
    small, large = user("hi"), user("x" * 1000)
    memory.add(small)
    assert memory.add(large) == (small, large)
    assert memory.messages == ()
    memory.add(system("y" * 1000))
    assert memory.tokens > 20


EXCHANGE: tuple[AgentMessage, ...] = (
    UserMessage.text("Read it, please."),
    AssistantMessage(contents=(ToolPart(tool="read", call_id="call_1", input={"path": "a.txt"}),)),
    ToolMessage.from_result(ToolResult(id="call_1", content="b" * 400)),
    AssistantMessage(contents=(TextPart(text="It says b."),)),
)


def test_role_messages_count_like_stored_ones() -> None:
    assert sum(map(estimate_message, EXCHANGE)) == sum(map(estimate_message, to_messages(EXCHANGE)))


@pytest.mark.parametrize("limit", range(0, 150, 10))
def test_memory_of_role_messages_keeps_no_orphan_result(limit: int) -> None:
    memory = ConversationMemory[AgentMessage](limit)
    memory.add(SystemMessage.text("Be kind."))
    for message in EXCHANGE:
        memory.add(message)
    to_messages(memory.messages)
    assert memory.tokens == sum(map(estimate_message, memory.messages))
    assert memory.messages[0].role == "system"


def test_cached_block_forms_equally_from_both_messages() -> None:
    block = format_conversation_for_cache(EXCHANGE)
    assert block.text == format_conversation_for_cache(to_messages(EXCHANGE)).text
    assert is_cached_block(block)
    assert [is_cached_block(each) for each in by_role([block])] == [True]
    assert not is_cached_block(EXCHANGE[0])
