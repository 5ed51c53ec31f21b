"""C2: conversations as cached blocks. Each test bears the number of the promise it shows."""

from __future__ import annotations

from typing import Any

from wolo import (
    Message,
    TextPart,
    ToolPart,
    format_conversation_for_cache,
    is_cached_block,
    to_llm_messages,
    without_embedded_results,
)

DONE = ToolPart(tool="search", input={"query": "x"}, call_id="c1", status="completed", outcome="ok", output="found", end_time=1.0)
ANSWERED = Message(role="assistant", parts=(TextPart(text="I look it up."), DONE), finished=True)


def user(text: str) -> Message:
    return Message(role="user", parts=[TextPart(text=text)], finished=True)


def system(text: str) -> Message:
    return Message(role="system", parts=[TextPart(text=text)], finished=True)


def test_c2_12_a_conversation_becomes_one_cached_block() -> None:
    (wire,) = to_llm_messages([format_conversation_for_cache([user("research"), ANSWERED])], system="")
    (part,) = wire["content"]
    assert (wire["role"], part["type"], part["cache_control"]) == ("user", "text", {"type": "ephemeral"})
    assert part["text"].startswith("User: research\n\nAssistant: I look it up.\n\nTool: {")


def test_c2_13_cached_block_is_known_by_its_mark() -> None:
    marked = {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}
    others: list[dict[str, Any]] = [
        {"role": "user", "content": "cache_control"},
        {"role": "user", "content": [{"type": "text", "text": "x"}, "cache_control"]},
        {"role": "user", "content": {"cache_control": 1}},
        {"role": "user"},
    ]
    assert is_cached_block(marked)
    assert not any(map(is_cached_block, others))


def test_c2_14_order_is_system_block_then_new() -> None:
    history = [format_conversation_for_cache([user("old")]), user("New message")]
    wire = to_llm_messages([system("You are x."), *history])
    assert [(each["role"], is_cached_block(each)) for each in wire] == [("system", False), ("user", True), ("user", False)]


def test_c2_15_orphan_spelled_result_is_dropped_block_stays() -> None:
    block = {"role": "user", "content": [{"type": "text", "text": "Tool: {...}", "cache_control": {"type": "ephemeral"}}]}
    stray = {"role": "user", "content": 'Tool: {"a": 1}'}
    assert without_embedded_results([block, stray]) == [block]
