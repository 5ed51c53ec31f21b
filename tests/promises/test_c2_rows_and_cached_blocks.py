"""C2: thread rows, the messages they become, and cached blocks. Promises inside the rooms, each with its number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.histories import request
from tests.sessions.exchange.histories_kept import keep, said
from tests.sessions.exchange.test_row_origin import ROWS, SHORT, kept, row, rows_out
from tests.sessions.exchange.test_shapes import CALL, conversation, exported
from tests.tools.test_expand_message import LINES, expand
from wolo.agent.compaction.history_cut import shorten
from wolo.formats.encoding.cached_blocks import (
    without_embedded_results,
)
from wolo.formats.lint.chat import lint
from wolo.formats.openai_chat import ChatDialect, OpenAIChat, to_llm_messages
from wolo.messages.message import Message, system, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.messages.roles import SystemMessage, to_messages
from wolo.sessions.entries import CompactionEntry
from wolo.sessions.store import Store

FIELDS = {
    *("message_id", "thread_id", "type", "content", "is_llm_message", "metadata"),
    *("agent_id", "agent_version_id", "created_at", "updated_at"),
}
DONE = ToolPart(tool="search", input={"query": "x"}, call_id="c1", status="completed", outcome="ok", output="found", end_time=1.0)
ANSWERED = Message(role="assistant", parts=(TextPart(text="I look it up."), DONE), finished=True)


def read(folder: Path, *rows: dict[str, Any]) -> tuple[Message, ...]:
    return conversation(folder, list(rows)).messages


def test_c2_01_a_row_has_the_fields_promised(store: Store) -> None:
    session_id = keep(store, Path.cwd(), said(system("x"), user("hi"), ANSWERED))
    rows = rows_out(store, session_id)
    assert [each["type"] for each in rows] == ["system", "user", "assistant", "tool"]
    assert all(set(each) == FIELDS for each in rows)


def test_c2_02_content_is_text_json_or_object(store: Store, tmp_path: Path) -> None:
    session_id = keep(store, Path.cwd(), said(first := user("Hello " + "long " * 200), ANSWERED))
    store.append(session_id, [CompactionEntry(left_out=(first.id,))])
    short, spoken, result = rows_out(store, session_id)
    assert short["content"] == short["metadata"]["compressed_content"]
    assert json.loads(spoken["content"])["role"] == "assistant"
    assert isinstance(result["content"], dict)
    contents = ('{"role": "user", "content": "a"}', "a", {"role": "user", "content": "a"}, [{"type": "text", "text": "a"}])
    assert [message.text for message in read(tmp_path, *(row("m", "user", each) for each in contents))] == ["a"] * 4


def test_c2_03_model_messages_alone_are_sent_with_ids(store: Store, tmp_path: Path) -> None:
    hidden = row("m2", "user", "not for you", is_llm_message=False)
    messages = read(tmp_path, row("m1", "user", '{"role": "user", "content": "Hello"}'), hidden)
    assert [message.id for message in messages] == ["m1", "m2"]
    assert to_llm_messages(messages, system="") == [{"role": "user", "content": "Hello"}]


def test_c2_04_compressed_content_of_a_row_counts(tmp_path: Path) -> None:
    long = json.dumps({"role": "user", "content": "all of it"})
    metadata = {"compressed": True, "compressed_content": SHORT}
    assert [(m.role, m.text) for m in read(tmp_path, row("m", "user", long, metadata=metadata))] == [("user", SHORT)]
    assert read(tmp_path, row("m", "assistant", SHORT, metadata=metadata))[0].role == "assistant"


def test_c2_05_compressed_text_ends_with_id_and_hint(store: Store) -> None:
    session_id = keep(store, Path.cwd(), said(first := user("Hello " + "long " * 200)))
    store.append(session_id, [CompactionEntry(left_out=(first.id,))])
    (compressed,) = rows_out(store, session_id)
    assert compressed["content"].endswith(f'\n\nmessage_id "{first.id}"\nUse expand-message tool to see full content')
    (call,) = shorten(Message(role="assistant", parts=(ToolPart(tool="read", output="x" * 5000),))).calls
    assert call.output.endswith(f'\n\nmessage_id "{call.id}"\nUse expand_message to see the full content')


async def test_c2_06_expand_message_gives_the_full_original(tmp_path: Path) -> None:
    whole = await expand(tmp_path, id="part_log", unit="characters", limit=12_000)
    assert whole.startswith(LINES[:11_000])
    assert "Use tabs, never blanks." in await expand(tmp_path, query="tabs")


def test_c2_07_status_rows_never_reach_the_model(tmp_path: Path) -> None:
    messages = read(tmp_path, *ROWS)
    wire = json.dumps(to_llm_messages(messages))
    assert not any(word in wire for word in ("thread_run_start", "tool_started", "prompt_tokens"))


def test_c2_08_message_content_may_be_a_list(tmp_path: Path) -> None:
    """Ids stay ours: `docs/decisions/0037-message-ids.md`."""
    listed = json.dumps({"role": "system", "content": [{"type": "text", "text": "Be kind."}]})
    assert to_llm_messages(read(tmp_path, row("m", "system", listed))) == [{"role": "system", "content": "Be kind."}]
    assert to_llm_messages(to_messages([SystemMessage.text("x")])) == [{"role": "system", "content": "x"}]
    body = json.loads(OpenAIChat(ChatDialect(cache_marks=True)).encode(request((user("hi"),))))
    assert body["messages"][0]["content"][0]["type"] == "text"


def test_c2_09_answer_has_several_calls_with_text_arguments() -> None:
    calls = tuple(ToolPart(tool="search", input={"n": n}, call_id=f"c{n}", status="completed") for n in range(2))
    spoken = to_llm_messages([Message(role="assistant", parts=calls)], system="")[0]
    assert [type(call["function"]["arguments"]) for call in spoken["tool_calls"]] == [str, str]
    wrong = {**CALL, "function": {"name": "f", "arguments": {"query": "x"}}}
    sent = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": [wrong]}]}
    assert any("arguments are no text" in complaint for complaint in lint(sent))


def test_c2_10_result_names_call_and_tool_afterwards() -> None:
    wire = to_llm_messages([ANSWERED], system="")
    assert wire[1] == {"role": "tool", "tool_call_id": "c1", "name": "search", "content": "found"}
    assert wire[0]["tool_calls"][0]["id"] == wire[1]["tool_call_id"]
    assert wire[0]["tool_calls"][0]["function"]["name"] == wire[1]["name"]
    assert json.loads(OpenAIChat(ChatDialect()).encode(request((user("a"), ANSWERED))))["messages"][-1]["name"] == "search"


def test_c2_11_tool_row_names_its_call(store: Store, tmp_path: Path) -> None:
    rows = rows_out(store, keep(store, Path.cwd(), said(user("a"), ANSWERED)))
    assert rows[2]["metadata"]["tool_call_id"] == rows[2]["content"]["tool_call_id"] == "c1"
    asked = row("a", "assistant", {"role": "assistant", "content": "", "tool_calls": [CALL]})
    bare = row("t", "tool", {"role": "tool", "content": "one"}, metadata={"tool_call_id": "tooluse_1"})
    assert read(tmp_path, asked, bare)[0].calls[0].output == "one"


def test_c2_16_results_without_a_call_are_removed(tmp_path: Path) -> None:
    orphan = row("t", "tool", {"role": "tool", "tool_call_id": "gone", "content": "x"})
    told = conversation(tmp_path, [row("m", "user", "hi"), orphan])
    assert ([message.text for message in told.messages], told.skipped) == (["hi"], 1)


@pytest.mark.parametrize("content", ["a", [{"type": "text", "text": "a"}], {"type": "text", "text": "a"}, ["a"]])
def test_c2_17_content_may_be_text_list_or_object(tmp_path: Path, content: Any) -> None:
    as_row = row("m", "user", json.dumps({"role": "user", "content": content}))
    as_message = {"role": "user", "content": content}
    for given in ([as_row], [as_message, {"role": "assistant", "content": "b"}]):
        assert conversation(tmp_path, given).messages[0].text == "a"
    assert without_embedded_results([as_message]) == [as_message]


def test_c2_rows_of_other_programs_stay_unchanged(store: Store, tmp_path: Path) -> None:
    assert rows_out(store, kept(store, tmp_path, ROWS)) == ROWS
    assert exported(store, "thread-1", "rows")
