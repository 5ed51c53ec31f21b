"""Uses of messages as the documents of the message formats write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from wolo import (
    Agent,
    AssistantMessage,
    AudioPart,
    ConversationMemory,
    ImagePart,
    Message,
    Part,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolMessage,
    ToolPart,
    ToolResult,
    Usage,
    UsageCost,
    UserMessage,
    estimate_message,
    format_conversation_for_cache,
    is_cached_block,
    to_llm_messages,
    to_messages,
    validate_message,
    validate_tool_call,
    without_embedded_results,
)

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
MP3 = b"ID3\x03" + b"\0" * 8

user_message = Message(
    id="msg_001",
    role="user",
    parts=[TextPart(id="text_001", text="Create a Python file with a hello world function")],
    timestamp=1704067200.0,
    finished=True,
)
assistant_message = Message(
    id="msg_002",
    role="assistant",
    parts=[
        TextPart(id="text_002", text="I'll create a Python file with a hello world function for you."),
        ToolPart(
            id="tool_001",
            tool="write",
            input={"path": "hello.py", "contents": "def hello_world():\n    print('Hello, World!')"},
            status="completed",
            output="File written successfully",
        ),
    ],
    finished=True,
    finish_reason="stop",
)


def test_messages_of_parts_become_api_messages() -> None:
    wire = to_llm_messages([user_message, assistant_message])
    assert [each["role"] for each in wire] == ["system", "user", "assistant", "tool"]
    assert wire[0]["content"].startswith("You are Wolo, an AI coding agent")
    (call,) = wire[2]["tool_calls"]
    assert (call["id"], call["type"], call["function"]["name"]) == ("tool_001", "function", "write")
    assert json.loads(call["function"]["arguments"])["path"] == "hello.py"
    assert (wire[3]["tool_call_id"], wire[3]["content"]) == ("tool_001", "File written successfully")
    assert all(isinstance(part, Part) for part in assistant_message.parts)


def test_agent_display_name_replaces_wolo() -> None:
    wire = to_llm_messages([user_message], agent_display_name="CodeHelper")
    assert wire[0]["content"].startswith("You are CodeHelper, an AI coding agent")


def test_reasoning_content_is_an_argument_and_a_field() -> None:
    message = Message(
        role="assistant",
        parts=[TextPart(text="The configuration looks correct.")],
        reasoning_content="Let me analyze this config file...",
    )
    assert to_llm_messages([message], system="") == [
        {
            "role": "assistant",
            "content": "The configuration looks correct.",
            "reasoning_content": "Let me analyze this config file...",
        }
    ]


SEARCH = {"id": "tooluse_1", "type": "function", "function": {"name": "web_search", "arguments": '{"query": "Larry Ellison"}'}}
ROUND = [
    {"role": "user", "content": "research about larry ellison"},
    {"role": "assistant", "content": "I'll conduct...", "tool_calls": [SEARCH]},
    {"role": "tool", "tool_call_id": "tooluse_1", "name": "web_search", "content": '{"answer": "Oracle"}'},
]


def test_conversation_of_dicts_becomes_a_cached_dict() -> None:
    block = format_conversation_for_cache(ROUND)
    assert (block["role"], is_cached_block(block)) == ("user", True)
    (part,) = block["content"]
    assert (part["type"], part["cache_control"]) == ("text", {"type": "ephemeral"})
    opening, answer, result = part["text"].split("\n\n")
    assert (opening, answer) == ("User: research about larry ellison", "Assistant: I'll conduct...")
    assert json.loads(result.removeprefix("Tool: ")) == {
        "name": "web_search",
        "arguments": {"query": "Larry Ellison"},
        "result": '{"answer": "Oracle"}',
    }
    values = to_messages(
        [
            UserMessage.text("research about larry ellison"),
            AssistantMessage(
                contents=(
                    TextPart(text="I'll conduct..."),
                    ToolPart(tool="web_search", call_id="tooluse_1", input={"query": "Larry Ellison"}),
                )
            ),
            ToolMessage.from_result(ToolResult(id="tooluse_1", content='{"answer": "Oracle"}')),
        ]
    )
    assert format_conversation_for_cache(values).text == part["text"]


def test_elided_conversation_of_dicts_becomes_a_block() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "research about larry ellison"},
        {"role": "assistant", "content": "I'll conduct...", "tool_calls": [...]},
        {"role": "tool", "tool_call_id": "...", "content": "..."},
    ]
    (part,) = format_conversation_for_cache(messages)["content"]
    assert part["text"].startswith("User: research about larry ellison\n\nAssistant: I'll conduct...\n\nTool: {")


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([{"role": "robot", "content": "x"}], r"messages\[0\] has the role 'robot'"),
        ([*ROUND[:1], {}], r"messages\[1\] has the role None"),
        ([*ROUND, user_message], "all values or all dicts"),
    ],
)
def test_dicts_of_another_form_are_refused(messages: list[Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        format_conversation_for_cache(messages)


def test_dicts_are_no_messages_to_convert() -> None:
    with pytest.raises(TypeError, match="not a dict"):
        to_llm_messages([{"role": "user", "content": "x"}])  # type: ignore[list-item]


def test_listed_content_and_repeated_call_ids_keep_order() -> None:
    pictured = {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}]}
    again = {**ROUND[2], "content": "second"}
    (part,) = format_conversation_for_cache([pictured, *ROUND[1:], ROUND[1], again])["content"]
    assert part["text"].startswith("User: see[image_url]")
    results = [json.loads(line[6:])["result"] for line in part["text"].split("\n\n") if line.startswith("Tool: ")]
    assert results == ['{"answer": "Oracle"}', "second"]


def test_bedrock_filter_keeps_blocks_only() -> None:
    block = {"role": "user", "content": [{"type": "text", "text": "Tool: {...}", "cache_control": {"type": "ephemeral"}}]}
    assert without_embedded_results([block, {"role": "user", "content": "Tool: {...}"}]) == [block]


def test_image_factories_accept_files_and_addresses(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(PNG)
    part = ImagePart.from_file(path)
    assert (part.type, part.media_type, part.name, part.to_base64()[0][1]) == ("image", "image/png", "picture.png", "image/png")
    assert ImagePart.from_file(str(path)).data == PNG
    assert ImagePart.from_url("https://x/y.png").to_base64() == [("https://x/y.png", "")]
    assert [each.type for each in UserMessage.with_images("describe this", [PNG, PNG]).contents] == ["text", "image", "image"]
    with pytest.raises(FileNotFoundError):
        ImagePart.from_file(tmp_path / "missing.png")


def test_audio_factories_accept_files_and_base64(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp3"
    path.write_bytes(MP3)
    part = AudioPart.from_file(path)
    ((packed, kind),) = part.to_base64()
    assert (kind, part.name) == ("audio/mpeg", "clip.mp3")
    assert AudioPart.from_base64(packed).data == MP3
    assert UserMessage.with_audio("Transcribe this", [Path(path).read_bytes()]).contents[1].type == "audio"


def test_role_messages_have_the_documented_methods() -> None:
    answer = AssistantMessage(
        contents=[TextPart(text="I read."), ThinkingPart(text="hm"), ToolPart(id="c1", tool="read", input={"path": "a"})],  # type: ignore[arg-type]
        usage=Usage(input_tokens=3, output_tokens=2, cost=UsageCost(total=0.1)),
        stop_reason="tool_calls",
    )
    assert (answer.text_content(), len(answer.tool_calls()), len(answer.thinking())) == ("I read.", 1, 1)
    result = ToolResult(id="c1", content="x", is_error=False, metadata={"a": 1}, terminate=True)
    history = [
        SystemMessage.text("You are a helpful assistant."),
        UserMessage.text("hello"),
        answer,
        ToolMessage.from_results([result]),
    ]
    assert [each["role"] for each in to_llm_messages(history)] == ["system", "user", "assistant", "tool"]


def test_memory_and_estimate_follow_the_formula() -> None:
    assert estimate_message(UserMessage.text("Hello")) == 5
    memory: ConversationMemory[Any] = ConversationMemory(8000)
    assert memory.add(UserMessage.text("Message 1")) == ()


def test_validations_name_the_first_mistake() -> None:
    validate_message(SystemMessage.text("You are a helpful math tutor"))
    validate_message({"role": "assistant", "content": "", "tool_calls": [SEARCH]})
    with pytest.raises(ValueError, match="invalid role"):
        validate_message({"role": "robot", "content": "x"})
    with pytest.raises(ValueError, match="content cannot be empty"):
        validate_message({"role": "user", "content": ""})
    validate_tool_call('<tool>\n{"server_name": "local", "tool_name": "calculator", "arguments": {"a": 5}}\n</tool>')
    with pytest.raises(ValueError, match="<tool> tag"):
        validate_tool_call("5 + 3")


async def test_agent_gives_new_messages_and_takes_history(provider: ProviderServer) -> None:
    provider.script(text("Hi! How can I help?"), text("2+2 equals 4"))
    async with Agent("test-model", base_url=provider.base_url, api_key="key", session="memory", tools=[]) as agent:
        result1 = await agent.run("Hello")
        result2 = await agent.run("What is 2+2?", history=result1.messages)
    assert (result1.output, result2.output) == ("Hi! How can I help?", "2+2 equals 4")
    assert [message.role for message in (*result1.messages, *result2.messages)] == ["user", "assistant"] * 2
