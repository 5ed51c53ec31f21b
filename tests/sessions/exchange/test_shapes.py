"""The shapes of others: thread rows, messages of Chat Completions and ATIF, out and in again."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings

from tests.formats import histories
from tests.sessions.exchange.histories_kept import SECRET, keep, said, steps
from tests.sessions.samples import tool_turn
from wolo.errors import SessionError, UsageError
from wolo.formats.lint.linters import LINTERS
from wolo.formats.openai_chat import to_llm_messages
from wolo.messages.message import Message, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.models import catalog
from wolo.models.format_selection import format_of
from wolo.models.provider import ModelChoice
from wolo.sessions import replay_entries
from wolo.sessions.entries import AnyEntry, CompactionEntry
from wolo.sessions.exchange import importer
from wolo.sessions.exchange.export_stream import MessageStream
from wolo.sessions.exchange.format_table import EXPORT_FORMATS, export
from wolo.sessions.exchange.json_files import Imported
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.exchange.rows import STATUS
from wolo.sessions.exchange.text_export import is_for_readers
from wolo.sessions.store import Store

NO_SECRETS = Redactor()


def exported(store: Store, session_id: str, format: str, redactor: Redactor | None = NO_SECRETS) -> bytes:
    pieces: list[bytes] = []
    export(store, store.find(session_id), format, pieces.append, redactor)
    return b"".join(pieces)


def read(folder: Path, content: bytes | list[Any], format: str = "") -> importer.ImportSource:
    path = folder / "given"
    path.write_bytes(content if isinstance(content, bytes) else b"\n".join(json.dumps(row).encode() for row in content))
    return importer.read(path, format)


def conversation(folder: Path, content: bytes | list[Any], format: str = "") -> Imported:
    found = read(folder, content, format).imported
    assert found
    return found


def messages_of(store: Store, session_id: str) -> tuple[Message, ...]:
    return replay_entries.messages(store.load(session_id).entries)


# All of them


@settings(max_examples=25)
@given(found=steps())
def test_every_shape_exports_and_reimports_validly(
    found: list[tuple[AnyEntry, int | None]],
) -> None:
    with TemporaryDirectory() as name, Store.open(Path(name) / "a") as store:
        folder = Path(name)
        session_id = keep(store, Path.cwd(), found)
        kept = messages_of(store, session_id)
        assert tuple(MessageStream(store, session_id, None)) == kept
        redacted = [NO_SECRETS.message(message) for message in kept]
        assert json.loads(exported(store, session_id, "openai")) == json.loads(json.dumps(to_llm_messages(redacted, system="")))
        for format in EXPORT_FORMATS:
            try:
                content = exported(store, session_id, format)
            except SessionError:
                assert format not in ("jsonl", "rows", "openai", "markdown", "html")
                continue
            if format in ("claude-code", "codex", "opencode", "pi", "kimi"):
                told = conversation(folder, content)
                assert (told.skipped, told.messages) == (0, tuple(redacted)), format
            elif format in ("rows", "atif"):
                told = conversation(folder, content)
                assert told.skipped == 0
                assert_valid(told.messages)
                assert told.messages == tuple(message for message in redacted if format == "rows" or is_for_readers(message))
            elif format == "openai" and to_llm_messages(redacted, system=""):
                assert_valid(conversation(folder, content).messages)


@cache
def choice_of(format: str) -> ModelChoice:
    provider, model, _ = catalog.Catalog({}).look_up("custom/m-1", api=format)
    return ModelChoice(provider=provider, model=model, base_url="http://localhost", thinking=None)


def assert_valid(messages: tuple[Message, ...]) -> None:
    for format, lint in LINTERS.items():
        body = format_of(choice_of(format)).encode(histories.request(messages))
        assert lint(json.loads(body)) == [], format


def test_secrets_go_into_no_shape_that_others_read(store: Store) -> None:
    session_id = keep(store, Path.cwd(), said(user(f"{SECRET} and known-value-1")))
    for format in EXPORT_FORMATS:
        content = exported(store, session_id, format, Redactor(["known-value-1"]))
        assert SECRET.encode() not in content, format
        assert b"known-value-1" not in content, format
    for format in set(EXPORT_FORMATS) - {"jsonl"}:
        with pytest.raises(UsageError):
            exported(store, session_id, format, None)


def test_unknown_format_names_the_existing_ones(store: Store, tmp_path: Path) -> None:
    session_id = keep(store, Path.cwd(), said(user("a")))
    with pytest.raises(UsageError, match="docx"):
        exported(store, session_id, "docx")
    with pytest.raises(UsageError, match="docx"):
        read(tmp_path, b"[]", "docx")


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b"hello", b"[]", b"{}", b"[1, 2]", b"{" * 100_000, b'{"a":' * 5000, b"\xff\xfe"]
)
def test_file_without_session_is_refused_in_sentence(tmp_path: Path, content: bytes) -> None:
    for format in ("", *importer.formats()):
        with pytest.raises(SessionError):
            importer.import_session(None, read(tmp_path, content, format), "")  # type: ignore[arg-type]  # it never comes to the store


# Thread rows


def row(type: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "message_id": f"m-{type}",
        "thread_id": "t-1",
        "type": type,
        "content": content,
        "is_llm_message": True,
        "metadata": {},
        **more,
    }


CALL = {"id": "tooluse_1", "type": "function", "function": {"name": "web_search", "arguments": '{"query": "x"}'}}


def test_content_comes_in_all_three_forms(tmp_path: Path) -> None:
    told = conversation(
        tmp_path,
        [
            row("status", {"status_type": "thread_run_start", "thread_run_id": "r"}, is_llm_message=False),
            row("user", json.dumps({"role": "user", "content": "research"}), created_at="2026-03-01T10:00:00Z"),
            row("assistant", json.dumps({"role": "assistant", "content": "I will.", "tool_calls": [CALL]})),
            row(
                "tool",
                {"role": "tool", "tool_call_id": "tooluse_1", "name": "web_search", "content": '{"answer": 1}'},
                metadata={"tool_call_id": "tooluse_1"},
            ),
            row("llm_response_end", {"usage": {}}, is_llm_message=False),
            row(
                "user",
                "long... (truncated)",
                metadata={
                    "compressed": True,
                    "compressed_content": 'long\n\nmessage_id "m-user"\nUse expand-message tool to see full content',
                },
            ),
        ],
    )
    assert [message.role for message in told.messages] == ["custom", "user", "assistant", "custom", "user"]
    assert told.id == "t-1"
    assert told.created == told.messages[1].timestamp == 1772359200.0
    assert told.messages[0].custom_type == STATUS
    (call,) = told.messages[2].calls
    assert (call.tool, call.input, call.output, call.outcome) == ("web_search", {"query": "x"}, '{"answer": 1}', "ok")
    assert told.messages[4].text.endswith("Use expand-message tool to see full content")
    assert "thread_run_start" not in json.dumps(to_llm_messages(told.messages, system=""))


def test_orphans_drop_counted_and_cached_blocks_stay(tmp_path: Path) -> None:
    block = [{"type": "text", "text": 'Tool: {"a": 1}', "cache_control": {"type": "ephemeral"}}]
    told = conversation(
        tmp_path,
        [
            row("user", json.dumps({"role": "user", "content": block})),
            row("user", json.dumps({"role": "user", "content": 'Tool: {"tool_call_id": "gone"}'})),
            row("tool", {"role": "tool", "tool_call_id": "gone", "content": "x"}),
            row("user", json.dumps({"role": "user", "content": "Hello"})),
        ],
    )
    assert [message.text for message in told.messages] == ['Tool: {"a": 1}', "Hello"]
    assert told.skipped == 2


def test_torn_rows_are_counted(tmp_path: Path) -> None:
    good = json.dumps(row("user", '{"role": "user", "content": "Hello"}')).encode()
    told = conversation(
        tmp_path, b"\n".join([good, b"\0\0", good[:40], b'{"half": "\xed\xa0"}', b'{"type": "novelty", "content": 1}', good])
    )
    assert (len(told.messages), told.skipped) == (2, 4)


def test_compacted_part_exports_shortened_and_returns_whole(store: Store, tmp_path: Path) -> None:
    session_id = keep(store, Path.cwd(), said(user("Hello " + "long " * 200)))
    store.append(session_id, tool_turn(1))
    (first, second) = messages_of(store, session_id)
    store.append(session_id, [CompactionEntry(shortened=(second.id,), left_out=(first.id,))])
    rows = [json.loads(line) for line in exported(store, session_id, "rows").splitlines()]
    short = [each for each in rows if each["metadata"].get("compressed")]
    assert [each["type"] for each in short] == ["user", "tool"]
    for each in short:
        assert each["content"] == each["metadata"]["compressed_content"]
        assert each["content"].endswith(f'message_id "{each["message_id"]}"\nUse expand-message tool to see full content')
    assert short[1]["metadata"]["tool_call_id"] == "call_1"
    assert conversation(tmp_path, exported(store, session_id, "rows")).messages == (first, second)


def test_agentpress_only_rows_stay_unchanged(store: Store, tmp_path: Path) -> None:
    status = row("status", {"status_type": "x"}, is_llm_message=False)
    report = importer.import_session(store, read(tmp_path, [status, row("user", "hello")]), str(tmp_path))
    assert report.info.id == "t-1"
    assert json.loads(exported(store, "t-1", "rows").splitlines()[0]) == status


# Messages of Chat Completions


def test_message_list_comes_in_with_its_calls(tmp_path: Path) -> None:
    told = conversation(
        tmp_path,
        json.dumps(
            [
                {"role": "system", "content": "You are x."},
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}],
                },
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "hm",
                    "tool_calls": [CALL, {**CALL, "id": "tooluse_2"}],
                },
                {"role": "tool", "tool_call_id": "tooluse_2", "content": "second"},
                {"role": "tool", "tool_call_id": "nobody", "content": "lost"},
                {"role": "assistant", "content": "Done."},
                {"role": "wizard", "content": "?"},
            ]
        ).encode(),
    )
    assert [message.role for message in told.messages] == ["system", "user", "assistant", "assistant"]
    assert [call.outcome for call in told.messages[2].calls] == ["interrupted", "ok"]
    assert told.messages[2].reasoning_content == "hm"
    assert told.skipped == 2
    assert told.notices
    assert_valid(told.messages)


def test_cut_list_is_read_as_far_possible(store: Store, tmp_path: Path) -> None:
    session_id = keep(store, Path.cwd(), said(user("one"), user("two"), user("three")))
    content = exported(store, session_id, "openai")
    told = conversation(tmp_path, content[: content.index(b"three")])
    assert ([message.text for message in told.messages], told.skipped) == (["one", "two"], 1)


# ATIF


def test_a_trajectory_of_another_agent_comes_in(tmp_path: Path) -> None:
    steps = [
        {"step_id": 1, "source": "system", "message": "You are y."},
        {"step_id": 2, "source": "user", "message": "go", "timestamp": "2026-03-01T10:00:00Z"},
        {
            "step_id": 3,
            "source": "agent",
            "message": "",
            "reasoning_content": "hm",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"cmd": "ls"}}],
            "observation": {
                "results": [{"source_call_id": "c1", "content": [{"type": "text", "text": "a.txt"}]}, {"content": "note"}]
            },
            "metrics": {"prompt_tokens": 10, "cached_tokens": 4, "completion_tokens": 2, "cost_usd": 0.5},
        },
        {"step_id": 4, "source": "novelty"},
    ]
    told = conversation(
        tmp_path,
        json.dumps(
            {"schema_version": "ATIF-v1.9", "session_id": "s-1", "agent": {"name": "y", "model_name": "zai/glm"}, "steps": steps}
        ).encode(),
    )
    (call,) = told.messages[2].calls
    assert (call.tool, call.input, call.output) == ("bash", {"cmd": "ls"}, "a.txt")
    usage = told.messages[2].usage
    assert usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cost and usage.cost.total) == (6, 4, 0.5)
    assert (told.id, told.model, told.skipped, told.messages[3].text) == ("s-1", "zai/glm", 1, "note")


def test_trajectory_numbers_steps_and_results_name_calls(store: Store) -> None:
    session_id = keep(store, Path.cwd(), said(user("go")))
    store.append(session_id, tool_turn(1))
    doubled = tuple(ToolPart(id=f"p{n}", tool="read", call_id="same", status="completed", outcome="ok") for n in (1, 2))
    store.append(session_id, said(Message(role="assistant", parts=(TextPart(text="x"), *doubled)))[0][:1])
    told = json.loads(exported(store, session_id, "atif"))
    assert [step["step_id"] for step in told["steps"]] == [1, 2, 3]
    for step in told["steps"][1:]:
        ids = [call["tool_call_id"] for call in step["tool_calls"]]
        assert ids == [result["source_call_id"] for result in step["observation"]["results"]]
        assert len(set(ids)) == len(ids)
    assert told["final_metrics"]["total_steps"] == 3


@pytest.mark.parametrize("number", ["1e400", "-1e999", "NaN", "Infinity", "9" * 30, "9" * 5000, "1" + "0" * 18])
def test_numbers_beyond_all_bounds_lose_no_message(store: Store, tmp_path: Path, number: str) -> None:
    arguments = json.dumps(f'{{"n": {number}}}')
    call = f'{{"id": "c", "function": {{"name": "f", "arguments": {arguments}}}}}'
    step = f'{{"step_id": 1, "source": "agent", "message": "hello", "metrics": {{"cost_usd": {number}}}}}'
    for content in (
        f'[{{"role": "user", "content": {number}}}, {{"role": "assistant", "content": "hello", "tool_calls": [{call}]}}]',
        f'{{"message_id": "m", "type": "status", "content": {{"a": {number}}}}}\n'
        '{"message_id": "n", "type": "user", "content": "hello"}',
        f'{{"schema_version": "ATIF-v1.6", "steps": [{step}]}}',
    ):
        info = importer.import_session(store, read(tmp_path, content.encode()), str(tmp_path)).info
        loaded = store.load(info.id)
        assert loaded.skipped == 0
        assert replay_entries.messages(loaded.entries)[-1].text == "hello"
        for format in EXPORT_FORMATS:
            exported(store, info.id, format)


@pytest.mark.parametrize("source", [{}, [], None, 1, "wizard"])
def test_a_step_of_nobody_is_counted(tmp_path: Path, source: object) -> None:
    steps = [{"step_id": 1, "source": source, "message": "x"}, {"step_id": 2, "source": "user", "message": "hello"}]
    told = conversation(tmp_path, json.dumps({"schema_version": "ATIF-v1.6", "steps": steps}).encode())
    assert (told.skipped, [message.text for message in told.messages]) == (1, ["hello"])


@pytest.mark.parametrize("format", [name for name in EXPORT_FORMATS if name != "jsonl"])
def test_notices_to_the_model_are_not_exported(tmp_path: Path, format: str) -> None:
    notice = TextPart(text="\n\n<context>\npineapple\n</context>", is_notice=True)
    with Store.open(tmp_path) as store:
        session_id = keep(store, Path.cwd(), said(user("hi", notice)))
        content = exported(store, session_id, format).decode()
    assert "hi" in content
    assert "pineapple" not in content
