"""Sessions of pi."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.foreign.sources import calls, in_view, sample
from wolo.errors import SessionError
from wolo.messages.message import Producer, Usage, UsageCost
from wolo.messages.parts import ThinkingPart
from wolo.sessions.exchange.foreign import pi
from wolo.sessions.exchange.json_files import Imported

SAMPLE = sample("pi")


def read(tmp_path: Path, *lines: dict[str, Any]) -> Imported:
    path = tmp_path / "s.jsonl"
    header = {"type": "session", "id": "s", "cwd": "/x", "timestamp": "2026-10-04T10:00:00Z"}
    path.write_text("".join(json.dumps(each) + "\n" for each in (header, *lines)))
    return pi.read(path)


def said(id: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "id": id, "parentId": parent, "message": {"role": role, "content": content, **more}}


def texts(imported: Imported) -> list[str]:
    return [f"{message.role}: {message.text}" for message in imported.messages]


def test_path_to_last_line_counts_others_named() -> None:
    imported = SAMPLE.read(SAMPLE.path())
    assert "user: A wrong turn." not in texts(imported)
    assert "branch_summary: A wrong turn was tried and left." in texts(imported)
    assert imported.notices == ("2 messages of other branches were left out.",)


def test_a_summary_stands_before_what_was_kept() -> None:
    view = in_view(SAMPLE.read(SAMPLE.path()))
    assert (view[0].role, view[1].text) == ("compaction_summary", "Now repair it.")


def test_usage_cost_and_maker_come_along() -> None:
    answer = next(message for message in SAMPLE.read(SAMPLE.path()).messages if message.role == "assistant")
    cost = UsageCost(input=0.01, output=0.002, cache_read=0.001, total=0.013)
    assert answer.usage == Usage(input_tokens=120, output_tokens=45, cache_read_tokens=3000, cache_write_tokens=10, cost=cost)
    assert answer.producer == Producer(provider="anthropic", format="anthropic", model="claude-sonnet-5-5")


def test_call_outcomes_are_told_apart() -> None:
    assert {call.call_id: call.outcome for call in calls(SAMPLE.read(SAMPLE.path()))} == {
        "toolu_a": "ok",
        "toolu_b": "error",
        "toolu_c": "never_started",
        "call_9": "ok",
    }


def test_an_item_of_the_responses_api_comes_whole() -> None:
    answer = next(message for message in SAMPLE.read(SAMPLE.path()).messages if message.text == "I patch it.")
    thought, spoken, call = answer.parts
    assert isinstance(thought, ThinkingPart)
    assert (thought.item_id, thought.text, thought.blobs[0].data) == ("rs_9", "Patch it.", "gAAAAB")
    assert (spoken.item_id, call.item_id) == ("msg_9", "fc_9")


def test_line_behind_a_torn_one_follows_its_predecessor(tmp_path: Path) -> None:
    imported = read(tmp_path, said("1", None, "user", "One."), said("3", "2", "user", "Three."))
    assert texts(imported) == ["user: One.", "user: Three."]


def test_the_oldest_files_have_no_ids(tmp_path: Path) -> None:
    lines = [
        {"type": "message", "message": {"role": role, "content": words}} for role, words in (("user", "One."), ("user", "Two."))
    ]
    assert texts(read(tmp_path, *lines)) == ["user: One.", "user: Two."]


@pytest.mark.parametrize(("is_private", "role"), [(True, "custom"), (False, "user")])
def test_a_command_of_the_persons_own(tmp_path: Path, is_private: bool, role: str) -> None:
    ran = said("1", None, "bashExecution", None, command="ls", output="x.py", exitCode=2, excludeFromContext=is_private)
    (message,) = read(tmp_path, ran).messages
    assert message.role == role
    assert "ls" in message.text
    assert "x.py" in message.text
    assert "Exit status 2" in message.text


@pytest.mark.parametrize(
    ("api", "block", "field", "kinds"),
    [
        ("anthropic-messages", {"thinking": "", "thinkingSignature": "x", "redacted": True}, "thinking", ["anthropic.redacted"]),
        ("google-generative-ai", {"thinking": "t", "thinkingSignature": "x"}, "reasoning_content", ["gemini.thoughtSignature"]),
        ("openai-completions", {"thinking": "t", "thinkingSignature": "reasoning"}, "reasoning", []),
        ("openai-responses", {"thinking": "t", "thinkingSignature": "no JSON"}, "summary", []),
        ("bedrock-converse-stream", {"thinking": "t", "thinkingSignature": "x"}, "reasoning_content", []),
    ],
)
def test_signature_means_what_its_format_says(
    tmp_path: Path, api: str, block: dict[str, Any], field: str, kinds: list[str]
) -> None:
    content = [{"type": "thinking", **block}, {"type": "text", "text": "x"}]
    (message,) = read(tmp_path, said("1", None, "assistant", content, api=api, provider="openai", model="m")).messages
    (thought,) = message.of(ThinkingPart)
    assert (thought.field, [blob.kind for blob in thought.blobs]) == (field, kinds)


def test_file_without_conversation_is_refused_in_sentence(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="no conversation of pi"):
        read(tmp_path)
