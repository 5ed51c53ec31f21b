"""Sessions of Claude Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.foreign.sources import calls, in_view, sample
from wolo.errors import SessionError
from wolo.messages.message import NUDGE, Producer, Usage
from wolo.messages.parts import ThinkingPart
from wolo.sessions.exchange.foreign import claude_code
from wolo.sessions.exchange.json_files import Imported

SAMPLE = sample("claude-code")


def line(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": more.pop("answer", uuid), "model": "claude-sonnet-5-5", "stop_reason": "end_turn"}
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "isSidechain": False,
        "cwd": "/home/ada/abacus",
        "sessionId": "s",
        "timestamp": "2026-10-02T08:00:00.000Z",
        "message": message,
        **more,
    }


def read(tmp_path: Path, *lines: dict[str, Any]) -> Imported:
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    return claude_code.read(path)


def texts(imported: Imported) -> list[str]:
    return [f"{message.role}: {message.text}" for message in imported.messages]


def use(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}


def result(id: str, output: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": id, "content": output}]


def test_answer_pieces_become_one_message_with_usage() -> None:
    answer = next(message for message in SAMPLE.read(SAMPLE.path()).messages if len(message.calls) == 2)
    assert [part.type for part in answer.parts] == ["thinking", "text", "tool", "tool"]
    assert answer.usage == Usage(input_tokens=12, output_tokens=77, cache_read_tokens=9800, cache_write_tokens=340)
    assert answer.producer == Producer(provider="anthropic", format="anthropic", model="claude-sonnet-5-5")
    (thought,) = answer.of(ThinkingPart)
    assert [(blob.kind, blob.data) for blob in thought.blobs] == [("anthropic.signature", "RXJzdGUgU2lnbmF0dXI=")]


def test_call_outcomes_are_told_apart() -> None:
    ended = {call.call_id: call.outcome for call in calls(SAMPLE.read(SAMPLE.path()))}
    assert ended == {
        "toolu_01": "ok",
        "toolu_02": "error",
        "toolu_03": "denied_by_person",
        "toolu_04": "interrupted",
        "toolu_05": "ok",
    }


def test_path_to_last_word_counts_others_named() -> None:
    imported = SAMPLE.read(SAMPLE.path())
    assert not any("led nowhere" in text or "subagent" in text for text in texts(imported))
    assert imported.notices == ("One line of a subagent was left out.", "2 lines of abandoned branches were left out.")


def test_concurrent_user_text_is_kept() -> None:
    assert "user: No need to wait so long." in texts(SAMPLE.read(SAMPLE.path()))


def test_own_command_words_are_kept_unsent() -> None:
    own = [message for message in SAMPLE.read(SAMPLE.path()).messages if "command" in message.text]
    assert [message.role for message in own] == ["custom", "custom"]


def test_a_failure_of_the_provider_is_no_answer() -> None:
    failed = next(message for message in SAMPLE.read(SAMPLE.path()).messages if message.error)
    assert (failed.finish_reason, failed.parts) == ("error", ())


@pytest.mark.parametrize("last", ["r1", "r2"])
def test_results_of_parallel_calls_are_all_found(tmp_path: Path, last: str) -> None:
    """Each hangs on its own line of the answer, and only one of them is on the way."""
    imported = read(
        tmp_path,
        line("user", "u1", None, "Go."),
        line("assistant", "a1", "u1", [use("t1")], answer="m"),
        line("assistant", "a2", "a1", [use("t2")], answer="m"),
        line("user", "r1", "a1", result("t1", "one")),
        line("user", "r2", "a2", result("t2", "two")),
        line("assistant", "a3", last, [{"type": "text", "text": "Done."}]),
    )
    assert [(call.call_id, call.output) for call in calls(imported)] == [("t1", "one"), ("t2", "two")]
    assert imported.notices == ()


def test_line_behind_a_lost_one_follows_its_predecessor(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        line("user", "u1", None, "First."),
        line("assistant", "a2", "lost", [{"type": "text", "text": "Second."}]),
    )
    assert texts(imported) == ["user: First.", "assistant: Second."]


def test_old_unlinked_summary_ends_nothing(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        line("user", "u1", None, "First."),
        line("assistant", "a1", "u1", [{"type": "text", "text": "Answer."}]),
        line("user", "k", None, "What was said so far.", isCompactSummary=True),
        line("assistant", "a2", "k", [{"type": "text", "text": "On."}]),
    )
    assert [message.role for message in imported.messages] == ["user", "assistant", "compaction_summary", "assistant"]
    assert [message.text for message in in_view(imported)] == ["What was said so far.", "On."]


def test_a_kept_segment_stays_behind_its_summary(tmp_path: Path) -> None:
    segment = {"headUuid": "u2", "anchorUuid": "k", "tailUuid": "a2"}
    boundary = {**line("system", "b", None, ""), "subtype": "compact_boundary", "logicalParentUuid": "a2"}
    imported = read(
        tmp_path,
        line("user", "u1", None, "First."),
        line("assistant", "a1", "u1", [{"type": "text", "text": "One."}]),
        line("user", "u2", "a1", "Second."),
        line("assistant", "a2", "u2", [{"type": "text", "text": "Two."}]),
        {**boundary, "compactMetadata": {"preservedSegment": segment}},
        line("user", "k", "b", "The first.", isCompactSummary=True),
        line("user", "u3", "k", "Third."),
    )
    assert [message.text for message in in_view(imported)] == ["The first.", "Second.", "Two.", "Third."]


def test_a_title_is_never_that_of_another_session(tmp_path: Path) -> None:
    said = line("user", "u1", None, "Go.")
    assert read(tmp_path, {"type": "summary", "summary": "Another", "leafUuid": "elsewhere"}, said).title == ""
    assert read(tmp_path, said, {"type": "summary", "summary": "Own", "leafUuid": "u1"}).title == "Own"
    named = {"type": "custom-title", "customTitle": "Named", "sessionId": "s"}
    assert read(tmp_path, said, named, {"type": "ai-title", "aiTitle": "Guessed"}).title == "Named"


def test_program_text_for_the_person_starts_no_turn(tmp_path: Path) -> None:
    imported = read(tmp_path, line("user", "u1", None, "/deploy"), line("user", "u2", "u1", "How to deploy.", isMeta=True))
    assert [message.is_prompt for message in imported.messages] == [True, False]
    assert NUDGE in imported.messages[1].metadata


def test_own_reminders_are_no_user_words(tmp_path: Path) -> None:
    blocks = [{"type": "text", "text": "<system-reminder>\nBe brief.\n</system-reminder>"}, {"type": "text", "text": "Go."}]
    assert texts(read(tmp_path, line("user", "u1", None, blocks[:1]), line("user", "u2", "u1", blocks))) == ["user: Go."]


def test_the_providers_own_tools_are_calls_like_others(tmp_path: Path) -> None:
    page = {"type": "web_search_result", "title": "Sums", "url": "https://example.com/sums", "encrypted_content": "x"}
    searched = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "sum"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [page]}
    failed = {**found, "tool_use_id": "srv_2", "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}}
    imported = read(tmp_path, line("assistant", "a1", None, [searched, found, {**searched, "id": "srv_2"}, failed]))
    assert [(call.output, call.outcome) for call in calls(imported)] == [
        ("Sums https://example.com/sums", "ok"),
        ("unavailable", "error"),
    ]


def test_half_characters_in_arguments_are_mended_losslessly(tmp_path: Path) -> None:
    odd = {**use("t1"), "input": {"command": "echo \ud83d", "timeout": 5}}
    (call,) = calls(read(tmp_path, line("assistant", "a1", None, [odd])))
    assert call.input == {"command": "echo \ufffd", "timeout": 5}


def test_subagent_file_can_be_read_alone(tmp_path: Path) -> None:
    imported = read(tmp_path, line("user", "u1", None, "A task.") | {"isSidechain": True})
    assert (texts(imported), imported.notices) == (["user: A task."], ())


def test_signatures_of_other_models_go_nowhere(tmp_path: Path) -> None:
    answer = line("assistant", "a1", None, [{"type": "thinking", "thinking": "Hm.", "signature": "x"}, use("t")])
    answer["message"]["model"] = "glm-5"
    (message,) = read(tmp_path, answer).messages
    assert message.producer == Producer(provider="claude-code", format="", model="glm-5")


def test_circles_end(tmp_path: Path) -> None:
    first = line("user", "u1", "a1", "Go.")
    assert texts(read(tmp_path, first, line("assistant", "a1", "u1", [{"type": "text", "text": "Gone."}]), first))


@pytest.mark.parametrize("content", ["", "{}\n", '{"type":"summary","summary":"x"}\n', "no JSON at all"])
def test_file_without_conversation_is_refused_in_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(content)
    with pytest.raises(SessionError, match="no conversation of Claude Code"):
        claude_code.read(path)
    with pytest.raises(SessionError, match="Cannot read"):
        claude_code.read(tmp_path / "missing.jsonl")
