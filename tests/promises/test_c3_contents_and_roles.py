"""C3: typed contents and one class for each role. Promises inside the rooms, each with its number."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any, get_args

from tests.agent.conftest import AgentHarness
from tests.fakes.prompts import typed
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text, usage
from tests.formats.test_every_format import Side
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.formats.openai_chat import to_llm_messages
from wolo.messages import roles
from wolo.messages.message import Message, Usage, UsageCost, user
from wolo.messages.parts import AudioPart, Blob, ImagePart, TextPart, ThinkingPart, ToolKind, ToolPart
from wolo.messages.roles import (
    AssistantMessage,
    ToolMessage,
    ToolResult,
    by_role,
    to_messages,
)
from wolo.sessions import replay_entries
from wolo.sessions.entries import BranchEntry, CompactionEntry, MessageEntry
from wolo.sessions.store import Store

HEADS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\0\0\0\0WEBP",
}


def called(*ids: str) -> AssistantMessage:
    return AssistantMessage(contents=tuple(ToolPart(tool="read", call_id=id) for id in ids), stop_reason="tool_calls")


def test_c3_02_each_role_has_its_contents() -> None:
    assert roles.SystemContent is TextPart
    assert {TextPart, ImagePart, AudioPart} <= set(get_args(roles.UserContent))
    assert {TextPart, ThinkingPart, ToolPart} <= set(get_args(roles.AssistantContent))
    assert roles.ToolContent is ToolResult


class Picture:
    """What a Pillow image can do."""

    format = "GIF"

    def save(self, fp: BytesIO, format: str) -> None:
        fp.write(HEADS[f"image/{format.lower()}"])


def test_c3_05_thought_signature_goes_back() -> None:
    side = Side("anthropic")
    thought = ThinkingPart(text="hm", field="thinking", blobs=(Blob("anthropic.signature", "SIG"),))
    said = Message(role="assistant", parts=(thought, TextPart(text="So.")), producer=side.producer, finished=True)
    body = json.loads(side.format().encode(side.request((user("a"), said, user("b")))))
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "SIG"}


async def test_c3_06_call_has_id_name_kind_and_arguments(harness: AgentHarness) -> None:
    assert ToolPart(tool="x").kind is None
    Path("a.txt").write_text("x")
    harness.provider.script(
        call("read", {"path": "a.txt"}), call("grep", {"pattern": "x"}), call("say", {"text": "1"}), text(".")
    )
    turn = await harness.turn()
    calls = [made for message in turn.new for made in message.calls]
    assert [made.kind for made in calls] == ["read", "search", "other"]
    assert {"read", "edit", "execute", "search", "fetch", "think", "other"} <= set(get_args(ToolKind))
    assert (calls[0].tool, calls[0].input, bool(calls[0].wire_id)) == ("read", {"path": "a.txt"}, True)
    assert "kind" not in json.dumps(harness.provider.requests[-1].messages)


async def test_c3_07_unsent_result_metadata_may_end_the_turn(harness: AgentHarness) -> None:
    result = ToolResult(id="c1", content="done", metadata={"secret": 1}, terminate=True)
    history = to_messages([called("c1"), ToolMessage.from_result(result)])
    assert history[0].calls[0].terminate
    assert history[0].calls[0].metadata == {"secret": 1}
    wire = json.dumps(to_llm_messages(history))
    assert "secret" not in wire
    assert "terminate" not in wire
    harness.provider.script(call("finish", {"text": "It is done."}))
    turn = await harness.turn()
    assert turn.ended.answer == "It is done."
    assert len(harness.provider.requests) == 1


async def test_c3_13_custom_message_joins_from_outside(provider: ProviderServer, isolated: Path) -> None:
    provider.script(text("One."), text("Two."))
    given = {"base_url": provider.base_url, "model": "test-model", "api_key": "key"}
    conversation = await open_conversation(StartOptions(flags=given, attended=False))
    async for _ in conversation.prompt(typed("hi")):
        pass
    await conversation.append_custom_message("my-extension", "seen by no model", ImagePart(url="https://x/y.png"))
    assert conversation.history[-1].custom_type == "my-extension"
    async for _ in conversation.prompt(typed("go on")):
        await conversation.append_custom_message("late", "in the middle") if len(provider.requests) == 2 else None
    await conversation.close()
    assert conversation.history[-1].custom_type == "late"
    with Store.open(isolated / "wolo" / "data") as store:
        store.append_custom_message(conversation.info.session_id, "offline", "another")
        kept = replay_entries.messages(store.load(conversation.info.session_id).entries)
    noted = [(message.role, message.custom_type, message.text) for message in kept if message.role == "custom"]
    assert noted[0] == ("custom", "my-extension", "seen by no model")
    assert noted[-1] == ("custom", "offline", "another")
    assert b"seen by no model" not in provider.requests[-1].body
    assert not any(each["role"] == "custom" for each in to_llm_messages(kept))


def test_c3_14_summaries_stay_and_are_sent_as_user() -> None:
    branch = Message(role="branch_summary", parts=(TextPart(text="tried it"),))
    summary = Message(role="compaction_summary", parts=(TextPart(text="so far"),))
    first = user("one")
    entries = [MessageEntry(message=first), BranchEntry(left=1, summary=branch)]
    assert replay_entries.messages(entries) == (first, branch)
    assert replay_entries.compaction([CompactionEntry(summary=summary, left_out=(first.id,))]).summary is summary  # type: ignore[union-attr]
    assert [each.role for each in by_role([branch, summary])] == ["branch_summary", "compaction_summary"]
    assert to_llm_messages([branch, summary], system="") == [
        {"role": "user", "content": "tried it"},
        {"role": "user", "content": "so far"},
    ]


async def test_c3_15_usage_and_cost_come_at_answer_end(harness: AgentHarness) -> None:
    assert {"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost"} <= set(Usage.__struct_fields__)
    assert set(UsageCost.__struct_fields__) == {"input", "output", "cache_read", "cache_write", "total"}
    harness.provider.script(text("Hi.", usage=usage(100, 7, cached=40)))
    spent = (await harness.turn()).new[-1].usage
    assert spent is not None
    assert (spent.input_tokens, spent.cache_read_tokens, spent.output_tokens, spent.context_tokens) == (60, 40, 7, 107)


RESULTS: dict[str, Any] = {
    "openai-chat": lambda body: [each["content"] for each in body["messages"] if each["role"] == "tool"],
    "openai-responses": lambda body: [each["output"] for each in body["input"] if each["type"] == "function_call_output"],
    "anthropic": lambda body: [
        part["content"] for each in body["messages"] for part in each["content"] if part["type"] == "tool_result"
    ],
    "gemini": lambda body: [
        part["functionResponse"]["response"]["output"]
        for each in body["contents"]
        for part in each["parts"]
        if "functionResponse" in part
    ],
    "ollama": lambda body: [each["content"] for each in body["messages"] if each["role"] == "tool"],
}
