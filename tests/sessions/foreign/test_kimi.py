"""Sessions of Kimi CLI, and of Kimi Code, which came after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.foreign.sources import calls, in_view, sample
from wolo.errors import SessionError
from wolo.messages.message import Usage
from wolo.messages.parts import ThinkingPart
from wolo.sessions.exchange.foreign import kimi
from wolo.sessions.exchange.json_files import Imported

CLI, CODE = sample("kimi"), sample("kimi-code")


def texts(messages: Any) -> list[str]:
    return [f"{message.role}: {message.text}" for message in messages]


def code(tmp_path: Path, *records: dict[str, Any]) -> Imported:
    path = tmp_path / "session" / "agents" / "main" / "wire.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return kimi.read(path)


def user(words: str) -> dict[str, Any]:
    message = {"role": "user", "content": [{"type": "text", "text": words}], "origin": {"kind": "user"}}
    return {"type": "context.append_message", "message": message}


def step(uuid: str, words: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"type": "step.begin", "uuid": uuid},
        {"type": "content.part", "part": {"type": "text", "text": words}},
        {"type": "step.end", "uuid": uuid},
    ]
    return [{"type": "context.append_loop_event", "event": event} for event in events]


@pytest.mark.parametrize("name", ["context.jsonl", "wire.jsonl", ""])
def test_session_is_named_by_folder_or_file(name: str) -> None:
    folder = CLI.path().parent
    assert texts(kimi.read(folder / name if name else folder).messages) == texts(CLI.read(CLI.path()).messages)


def test_marks_and_checkpoints_are_nobodys_words() -> None:
    assert texts(CLI.read(CLI.path()).messages) == [
        "compaction_summary: The sum skips its first number.",
        "user: Repair the sum.",
        "assistant: I look.",
        "assistant: ",
        "assistant: The sum is right now.",
    ]


def test_event_log_gives_times_and_costs() -> None:
    imported = CLI.read(CLI.path())
    assert imported.created == 1759482000.5
    answers = [message for message in imported.messages if message.role == "assistant"]
    assert answers[0].usage == Usage(input_tokens=1384, output_tokens=184, cache_read_tokens=4864)
    assert (answers[1].usage, answers[2].timestamp) == (None, 1759482007.5)


def test_without_the_log_the_conversation_is_the_same(tmp_path: Path) -> None:
    path = CLI.copied(tmp_path)
    path.with_name("wire.jsonl").unlink()
    path.with_name("state.json").unlink()
    imported = kimi.read(path.parent)
    assert texts(imported.messages) == texts(CLI.read(CLI.path()).messages)
    assert imported.title == ""


def test_a_seal_of_nobody_knows_whom_goes_nowhere() -> None:
    answer = next(message for message in CLI.read(CLI.path()).messages if message.of(ThinkingPart))
    assert answer.of(ThinkingPart)[0].blobs[0].data == "c2VhbA=="
    assert answer.producer is not None
    assert answer.producer.format == ""


def test_call_outcomes_are_told_apart() -> None:
    assert {call.call_id: call.outcome for call in calls(CLI.read(CLI.path()))} == {
        "ReadFile:0": "ok",
        "Shell:1": "denied_by_person",
        "Shell:2": "error",
    }
    assert {call.call_id: call.outcome for call in calls(CODE.read(CODE.path()))} == {
        "tool_1": "ok",
        "tool_2": "error",
        "tool_3": "denied_by_person",
    }


def test_arguments_without_json_stay_as_written() -> None:
    call = next(call for call in calls(CLI.read(CLI.path())) if call.call_id == "Shell:2")
    assert (call.input, call.raw_input) == ({}, '{"command": "sed -i s/1// sum.py')


def test_text_during_a_tool_follows_its_result() -> None:
    messages = CODE.read(CODE.path()).messages
    assert [message.text for message in messages[1:3]] == ["I look and test.", "Be quick."]
    assert messages[1].usage == Usage(input_tokens=900, output_tokens=80, cache_read_tokens=4000, cache_write_tokens=20)


def test_undone_part_is_omitted_and_latest_words_stay() -> None:
    imported = CODE.read(CODE.path())
    assert not any("wrong turn" in text for text in texts(imported.messages))
    assert imported.notices == ("The conversation of a subagent was left out.", "2 undone messages were left out.")
    assert texts(in_view(imported))[:2] == ["user: Be quick.", "compaction_summary: The sum skips its first number."]


def test_older_summaries_keep_what_followed_their_messages(tmp_path: Path) -> None:
    call = {"type": "tool.call", "toolCallId": "t", "name": "Bash", "args": {}}
    result = {"type": "tool.result", "toolCallId": "t", "result": {"output": "x"}}
    answer = [
        {"type": "context.append_loop_event", "event": event} for event in ({"type": "step.begin", "uuid": "s"}, call, result)
    ]
    summary = {"type": "context.apply_compaction", "summary": "So far.", "compactedCount": 3}
    imported = code(tmp_path, user("One."), *answer, user("Two."), *step("s2", "Three."), summary)
    assert texts(in_view(imported)) == ["compaction_summary: So far.", "user: Two.", "assistant: Three."]


def test_a_cleared_conversation_is_kept_and_not_sent(tmp_path: Path) -> None:
    imported = code(tmp_path, user("One."), *step("s1", "Two."), {"type": "context.clear"}, user("Three."))
    assert len(imported.messages) == 3
    assert texts(in_view(imported)) == ["user: Three."]


def test_parts_without_step_belong_to_the_latest(tmp_path: Path) -> None:
    imported = code(tmp_path, user("One."), *step("s1", "Two."), user("Three."), *step("s2", "Four."))
    assert texts(imported.messages) == ["user: One.", "assistant: Two.", "user: Three.", "assistant: Four."]


def test_a_lost_medium_leaves_a_note(tmp_path: Path) -> None:
    path = CODE.copied(tmp_path)
    next((path.parent / "blobs").iterdir()).unlink()
    assert kimi.read(path).messages[0].text.endswith("[image/png was attached here; the session file does not contain it.]")


def test_folder_without_conversation_is_refused_in_sentence(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="Cannot read"):
        kimi.read(tmp_path)
    (tmp_path / "context.jsonl").write_text('{"role": "_checkpoint", "id": 0}\n')
    with pytest.raises(SessionError, match="no conversation of Kimi"):
        kimi.read(tmp_path)
