"""C1: messages of our own, and the messages of the API they become. Promises inside the rooms, each with its number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

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
from wolo.messages.message import Message, user
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart, ToolStatus
from wolo.models.headers import HeaderSettings, introduce
from wolo.sessions import replay_entries
from wolo.sessions.store import Store


def assistant(*parts: Any, **fields: Any) -> Message:
    return Message(role="assistant", parts=parts, **fields)


def read_call(status: ToolStatus = "completed", **fields: Any) -> ToolPart:
    return ToolPart(id="tool_abc123", tool="read", input={"path": "config.json"}, status=status, **fields)


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
    conversation = await open_conversation(StartOptions(flags=given, attended=False))
    async for event in conversation.prompt(typed("hi")):
        if isinstance(event, TextStreamed):
            conversation.interrupt()
    hold.release()
    await conversation.close()
    with Store.open(isolated / "wolo" / "data") as store:
        kept = replay_entries.messages(store.load(conversation.info.session_id).entries)
    assert [message.role for message in kept] == ["user", "assistant"]
    assert kept[1].text == "Half an "
    again = await open_conversation(StartOptions(flags={**given, "resume": conversation.info.session_id}, attended=False))
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
