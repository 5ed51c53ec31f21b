"""C1: messages of our own, and the messages of the API they become. Each test bears the number of the promise it shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.agent.conftest import AgentHarness
from tests.fakes.prompts import typed
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, text
from tests.formats.histories import request
from wolo.agent.compaction.compactor import Compactor, Fixed
from wolo.agent.events import AnswerEnded, CallEnded, CallStarted, RequestStarted, TextStreamed, TurnEnded, TurnStarted
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.formats.encoding.encoder import EncodedHistory
from wolo.formats.openai_chat import ChatDialect, OpenAIChat, to_llm_messages
from wolo.formats.openai_chat.encode import ChatEncoder
from wolo.messages.deltas import Assembler
from wolo.messages.message import FinishReason, Message, Role, system, user
from wolo.messages.parts import Part, TextPart, ThinkingPart, ToolPart, ToolStatus
from wolo.models.headers import HeaderSettings, introduce
from wolo.sessions import replay_entries
from wolo.sessions.store import Store


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


async def test_c1_03_call_states_have_times_until_the_end(harness: AgentHarness) -> None:
    assert set(get_args(ToolStatus)) == {"pending", "running", "completed", "failed"}
    Path("a.txt").write_text("x")
    harness.provider.script(call("read", {"path": "a.txt"}), text("Done."))
    await harness.turn()
    (answer, _), (begun,), (ended,) = harness.told(AnswerEnded), harness.told(CallStarted), harness.told(CallEnded)
    assert [each.status for each in (answer.message.calls[0], begun.part, ended.part)] == ["pending", "running", "completed"]
    assert 0 < ended.part.start_time <= ended.part.end_time
    harness.provider.script(call("read", {"path": "missing"}), text("Done."))
    await harness.turn()
    assert harness.told(CallEnded)[-1].part.status == "failed"


def test_c1_04_a_message_has_the_fields_promised() -> None:
    assert {"user", "assistant", "system"} <= set(get_args(Role))
    assert {"stop", "length", "tool_calls"} <= set(get_args(FinishReason))
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


@pytest.mark.parametrize("status", get_args(ToolStatus))
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
    wire = to_llm_messages([user("What is Wolo?")], display_name="CodeHelper")
    assert wire[0]["content"].startswith("You are CodeHelper, an AI coding agent")
    assert "Wolo" not in wire[0]["content"]
    assert wire[1]["content"] == "What is Wolo?"


def test_c1_16_requests_carry_the_opencode_headers() -> None:
    sent = introduce(HeaderSettings(), project="my-project", session_id="session_123", prompt_id="user")
    assert sent["user-agent"].startswith("opencode/1.0.0 (")
    assert {name: value for name, value in sent.items() if name.startswith("x-")} == {
        "x-opencode-project": "my-project",
        "x-opencode-session": "session_123",
        "x-opencode-request": "user",
        "x-opencode-client": "cli",
    }


def test_c1_17_stream_events_become_parts() -> None:
    decoder = OpenAIChat(ChatDialect()).decoder(request(()))
    builder = Assembler()
    events = (
        {"delta": {"reasoning_content": "hm"}},
        {"delta": {"content": "I "}},
        {"delta": {"content": "read."}},
        {"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": '{"path":'}}]}},
        {"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '"a"}'}}]}},
        {"delta": {}, "finish_reason": "tool_calls"},
    )
    for event in events:
        builder.add(decoder.feed(json.dumps({"choices": [{"index": 0, **event}]}).encode()))
    builder.add(decoder.close())
    message = builder.message()
    assert [type(part) for part in message.parts] == [ThinkingPart, TextPart, ToolPart]
    assert (message.reasoning_content, message.text, message.calls[0].input) == ("hm", "I read.", {"path": "a"})
    assert (message.finished, message.finish_reason) == (True, "tool_calls")


async def test_c1_18_turn_goes_through_its_steps(harness: AgentHarness) -> None:
    harness.provider.script(text("Hello."))
    await harness.turn("hi")
    order = list(dict.fromkeys(type(event) for event in harness.events))
    assert order == [TurnStarted, RequestStarted, TextStreamed, AnswerEnded, TurnEnded]
    assert [message["role"] for message in harness.provider.requests[0].messages] == ["system", "user"]
    long = ToolPart(tool="read", status="completed", outcome="ok", output="x" * 20_000)
    history = [said for number in range(6) for said in (user(str(number)), assistant(long, finished=True))]
    shown, cut = Compactor().view(history, Fixed("", (), 30_000))
    assert cut is not None  # outputs are pruned first, and only then messages are summed up
    assert (cut.outputs_shortened > 0, cut.messages_left_out, len(shown)) == (True, 0, len(history))


def test_c1_19_compacted_remainder_is_kept_in_metadata() -> None:
    history = [said for number in range(40) for said in (user(f"{number} {'y' * 600}"), assistant(TextPart(text="ok" * 300)))]
    shown, cut = Compactor().view(history, Fixed("", (), 3_000))
    assert cut is not None
    assert shown[0].role == "compaction_summary"
    assert shown[0].metadata["compressed"] is True
    assert shown[0].metadata["compressed_content"] == shown[0].text


async def test_c1_20_interrupted_stream_leaves_a_usable_session(provider: ProviderServer, isolated: Path) -> None:
    hold = Hold()
    provider.script(sse(delta("Half an "), hold, delta("answer."), finish("stop")), text("Whole."))
    given = {"base_url": provider.base_url, "model": "test-model", "api_key": "key"}
    conversation = await open_conversation(StartOptions(given=given, attended=False))
    async for event in conversation.prompt(typed("hi")):
        if isinstance(event, TextStreamed):
            conversation.interrupt()
    hold.release()
    await conversation.close()
    with Store.open(isolated / "wolo" / "data") as store:
        kept = replay_entries.messages(store.load(conversation.info.session_id).entries)
    assert [message.role for message in kept] == ["user", "assistant"]
    assert kept[1].text == "Half an "
    again = await open_conversation(StartOptions(given={**given, "resume": conversation.info.session_id}, attended=False))
    async for _ in again.prompt(typed("go on")):
        pass
    await again.close()
    assert [each["content"] for each in provider.requests[-1].messages if each["role"] == "user"] == ["hi", "go on"]


def test_c1_21_converted_message_is_not_converted_again() -> None:
    history = tuple(each for number in range(5) for each in (user(str(number)), assistant(TextPart(text="ok"))))
    encoder = ChatEncoder(history=EncodedHistory())
    first = to_llm_messages(history, encoder=encoder)
    second = to_llm_messages((*history, user("more")), encoder=encoder)
    assert all(before is after for before, after in zip(first, second, strict=False))
    assert [each["content"] for each in second[len(first) :]] == ["more"]
