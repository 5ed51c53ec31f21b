"""Messages with one class for each role, and the way from them to ours and back."""

from __future__ import annotations

from typing import get_args

import pytest

from wolo.formats.openai_chat import to_llm_messages
from wolo.messages.message import Message, user
from wolo.messages.parts import ImagePart, TextPart, ThinkingPart, ToolPart
from wolo.messages.roles import (
    AgentMessage,
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    LLMMessage,
    SystemMessage,
    ToolMessage,
    ToolResult,
    UserMessage,
    by_role,
    to_messages,
)

PNG = b"\x89PNG\r\n\x1a\n"


def called(*ids: str) -> AssistantMessage:
    return AssistantMessage(contents=(TextPart(text="I look."), *(ToolPart(tool="read", call_id=id) for id in ids)))


def test_the_unions_name_the_roles() -> None:
    assert get_args(LLMMessage) == (SystemMessage, UserMessage, AssistantMessage, ToolMessage)
    assert set(get_args(AgentMessage)) - set(get_args(LLMMessage)) == {
        CustomMessage,
        BranchSummaryMessage,
        CompactionSummaryMessage,
    }


def test_results_join_their_calls() -> None:
    results = [ToolResult(id="b", content="no", is_error=True), ToolResult(id="a", content="yes", terminate=True)]
    asked, answer = to_messages([UserMessage.text("look"), called("a", "b"), ToolMessage.from_results(results)])
    assert asked.text == "look"
    assert [(call.output, call.status, call.outcome, call.terminate) for call in answer.calls] == [
        ("yes", "completed", "ok", True),
        ("no", "failed", "error", False),
    ]


def test_results_may_come_in_a_user_message() -> None:
    said = UserMessage(contents=(ToolResult(id="a", content="yes"), TextPart(text="and now?")))
    wire = to_llm_messages(to_messages([called("a"), said]), system="")
    assert [each["role"] for each in wire] == ["assistant", "tool", "user"]
    only = to_messages([called("a"), UserMessage(contents=(ToolResult(id="a", content="yes"),))])
    assert [each["role"] for each in to_llm_messages(only, system="")] == ["assistant", "tool"]


@pytest.mark.parametrize("results", [["x"], ["a", "a"]])
def test_result_without_open_call_is_an_error(results: list[str]) -> None:
    with pytest.raises(ValueError, match=repr(results[-1])):
        to_messages([called("a"), ToolMessage.from_results(ToolResult(id=id) for id in results)])


def test_there_and_back_again() -> None:
    history: list[AgentMessage] = [
        SystemMessage.text("Be kind."),
        UserMessage.with_images("see", [PNG, "https://example.org/a.png"]),
        called("a", "b"),
        ToolMessage.from_results([ToolResult(id="a", content="1"), ToolResult(id="b", content="2")]),
        AssistantMessage(contents=(ThinkingPart(text="hm"), TextPart(text="Done.")), stop_reason="stop"),
        CustomMessage(contents=(TextPart(text="note"),), custom_type="mine"),
        BranchSummaryMessage(contents=(TextPart(text="branch"),)),
        CompactionSummaryMessage(contents=(TextPart(text="sum"),)),
    ]
    built = to_messages(history)
    assert [message.role for message in built] == [each.role for each in history if each.role != "tool"]
    again = list(by_role(built))
    assert [type(each) for each in again] == [type(each) for each in history]
    assert to_messages(again) == built


def test_messages_by_role_can_be_converted_at_once() -> None:
    history = [UserMessage.text("look"), called("a"), ToolMessage.from_result(ToolResult(id="a", content="yes")), user("and?")]
    assert to_llm_messages(history, system="") == to_llm_messages(to_messages(history), system="")
    assert [each["role"] for each in to_llm_messages(history)] == ["system", "user", "assistant", "tool", "user"]


def test_a_picture_is_told_from_an_address() -> None:
    picture, address = UserMessage.with_images("see", [PNG, "https://example.org/a.png"]).contents[1:]
    assert picture == ImagePart(id=picture.id, media_type="image/png", data=PNG)  # type: ignore[union-attr]
    assert address == ImagePart(id=address.id, url="https://example.org/a.png")  # type: ignore[union-attr]


def test_own_message_without_answer_stays_one_message() -> None:
    assert [each.role for each in by_role([user("hi"), Message(role="custom", custom_type="x")])] == ["user", "custom"]
