"""C1: messages of our own, and the messages of the API they become. Each test bears the number of the promise it shows."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from wolo import Message, Part, TextPart, ToolPart, to_llm_messages

ToolStatus = Literal["pending", "running", "completed", "failed"]


def user(text: str) -> Message:
    return Message(role="user", parts=[TextPart(text=text)], finished=True)


def system(text: str) -> Message:
    return Message(role="system", parts=[TextPart(text=text)], finished=True)


def assistant(*parts: Any, **fields: Any) -> Message:
    return Message(role="assistant", parts=parts, **fields)


def read_call(status: ToolStatus = "completed", **fields: Any) -> ToolPart:
    return ToolPart(id="tool_abc123", tool="read", input={"path": "config.json"}, status=status, **fields)


def test_c1_01_internal_values_and_api_dicts_are_separate() -> None:
    said = user("hi")
    (wire,) = to_llm_messages([said], system="")
    assert type(wire) is dict
    assert wire == {"role": "user", "content": "hi"}
    assert {"id", "timestamp", "parts"} <= set(Message.__struct_fields__)


def test_c1_02_parts_have_promised_fields_and_defaults() -> None:
    spoken, called = TextPart(), ToolPart(tool="write")
    assert isinstance(spoken, Part)
    assert (spoken.type, spoken.text, bool(spoken.id)) == ("text", "", True)
    assert (called.type, called.tool, called.input, called.output, called.status) == ("tool", "write", {}, "", "pending")
    assert (called.start_time, called.end_time) == (0.0, 0.0)


def test_c1_04_a_message_has_the_fields_promised() -> None:
    said = assistant(TextPart(text="x"), reasoning_content="hm", metadata={"a": 1}, finished=True, finish_reason="stop")
    assert (said.role, said.finished, said.finish_reason, said.reasoning_content, said.metadata) == (
        *("assistant", True, "stop", "hm"),
        {"a": 1},
    )
    assert said.id != assistant().id
    assert said.timestamp > 0
    assert (assistant().finished, assistant().finish_reason, assistant().reasoning_content) == (False, "", "")


def test_c1_05_to_llm_messages_gives_dicts() -> None:
    wire = to_llm_messages([user("hi"), assistant(read_call())])
    assert isinstance(wire, list)
    assert all(type(each) is dict for each in wire)
    assert json.loads(json.dumps(wire)) == wire


def test_c1_06_user_message_texts_are_one_string() -> None:
    said = Message(role="user", parts=(TextPart(text="one, "), TextPart(text="two")))
    assert to_llm_messages([said], system="") == [{"role": "user", "content": "one, two"}]


def test_c1_07_assistant_message_has_content_and_json_calls() -> None:
    wire = to_llm_messages([assistant(TextPart(text="I'll read."), read_call())], system="")
    (made,) = wire[0]["tool_calls"]
    assert wire[0]["content"] == "I'll read."
    assert (made["type"], made["function"]["name"]) == ("function", "read")
    assert isinstance(made["function"]["arguments"], str)
    assert json.loads(made["function"]["arguments"]) == {"path": "config.json"}


def test_c1_08_part_call_and_result_share_an_id() -> None:
    wire = to_llm_messages([assistant(read_call(output="{}"))], system="")
    assert wire[0]["tool_calls"][0]["id"] == wire[1]["tool_call_id"] == "tool_abc123"


def test_c1_09_results_follow_right_behind_their_answer() -> None:
    calls = [ToolPart(tool="read", call_id=f"c{n}", status="completed", output=f"result {n}") for n in range(3)]
    wire = to_llm_messages([assistant(*calls), user("next")], system="")
    assert [(each["role"], each.get("tool_call_id"), each["content"]) for each in wire[1:]] == [
        *(("tool", f"c{n}", f"result {n}") for n in range(3)),
        ("user", None, "next"),
    ]


def test_c1_10_a_system_message_passes() -> None:
    assert to_llm_messages([system("Be kind."), user("hi")])[0] == {"role": "system", "content": "Be kind."}


@pytest.mark.parametrize("status", ["pending", "running", "completed", "failed"])
def test_c1_11_every_call_has_an_explaining_result(status: ToolStatus) -> None:
    """`docs/decisions/0002-message-model.md`: a failed call goes out with its error, an open one with what is known."""
    told = {"completed": "fine", "failed": "no such file"}.get(status, "")
    wire = to_llm_messages([assistant(read_call(status, output=told))], system="")
    assert [call["id"] for call in wire[0]["tool_calls"]] == ["tool_abc123"]
    expected = {"pending": "never started", "running": "interrupted"}.get(status, told)
    assert expected in wire[1]["content"]


def test_c1_12_empty_answer_is_left_out() -> None:
    empty = (assistant(), assistant(TextPart(text="")), assistant(reasoning_content="only thought"))
    assert to_llm_messages([user("hi"), *empty], system="") == [{"role": "user", "content": "hi"}]


def test_c1_13_reasoning_is_copied() -> None:
    said = assistant(TextPart(text="It is right."), reasoning_content="Let me see")
    assert to_llm_messages([said], system="")[0]["reasoning_content"] == "Let me see"
    assert "reasoning_content" not in to_llm_messages([assistant(TextPart(text="x"))], system="")[0]


def test_c1_14_missing_system_prompt_is_injected() -> None:
    assert to_llm_messages([user("hi")])[0]["content"].startswith("You are Wolo, an AI coding agent")
    assert [each["role"] for each in to_llm_messages([system("x"), user("hi")])] == ["system", "user"]


def test_c1_15_the_display_name_replaces_wolo() -> None:
    wire = to_llm_messages([user("What is Wolo?")], agent_display_name="CodeHelper")
    assert wire[0]["content"].startswith("You are CodeHelper, an AI coding agent")
    assert "Wolo" not in wire[0]["content"]
    assert wire[1]["content"] == "What is Wolo?"
