"""Sessions of Codex."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.foreign.sources import calls, in_view, sample
from wolo.errors import SessionError
from wolo.messages.message import Producer, Usage
from wolo.messages.parts import ThinkingPart
from wolo.sessions.exchange.foreign import codex
from wolo.sessions.exchange.json_files import Imported

SAMPLE = sample("codex")
META: dict[str, Any] = {"type": "session_meta", "payload": {"id": "c", "cwd": "/home/ada/abacus", "model_provider": "openai"}}


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-10-03T09:00:00Z", "type": "response_item", "payload": {"type": kind, **payload}}


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-10-03T09:00:00Z", "type": "event_msg", "payload": {"type": kind, **payload}}


def words(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def read(tmp_path: Path, *lines: dict[str, Any]) -> Imported:
    path = tmp_path / "rollout-x.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (META, *lines)), encoding="utf-8")
    return codex.read(path)


def texts(imported: Imported) -> list[str]:
    return [f"{message.role}: {message.text}" for message in imported.messages]


def test_repeated_text_is_kept_once() -> None:
    assert [text for text in texts(SAMPLE.read(SAMPLE.path())) if not text.endswith(": ")] == [
        "user: Why is the sum on the picture wrong?",
        "assistant: I read the code and run the tests.",
        "user: Look the rule up, then do it.",
        "compaction_summary: The sum skips its first number; the patch is still to be made.",
        "assistant: The sum is right now.",
    ]


def test_call_outcomes_are_told_apart() -> None:
    ended = {call.call_id: call.outcome for call in calls(SAMPLE.read(SAMPLE.path())) if call.tool != "web_search"}
    assert ended == {
        "call_A": "ok",
        "call_B": "error",
        "call_C": "denied_by_person",
        "call_D": "interrupted",
        "call_E": "ok",
    }


def test_parallel_calls_share_answer_usage_and_reasoning() -> None:
    answer = next(message for message in SAMPLE.read(SAMPLE.path()).messages if len(message.calls) == 2)
    assert [call.call_id for call in answer.calls] == ["call_A", "call_B"]
    assert answer.usage == Usage(input_tokens=5178, output_tokens=282, cache_read_tokens=10624, reasoning_tokens=157)
    assert answer.producer == Producer(provider="openai", format="openai-responses", model="gpt-5.5")
    (thought,) = answer.of(ThinkingPart)
    assert (thought.text, thought.item_id, thought.blobs[0].kind) == ("Reading the code", "rs_01", "openai.encrypted")


def test_summary_keeps_the_user_words_it_names() -> None:
    view = in_view(SAMPLE.read(SAMPLE.path()))
    assert [message.role for message in view] == ["user", "compaction_summary", "assistant", "assistant"]
    assert view[0].text == "Look the rule up, then do it."


def test_encrypted_summary_leaves_everything_visible(tmp_path: Path) -> None:
    sealed = {
        "type": "compacted",
        "payload": {"message": "", "replacement_history": [{"type": "compaction", "encrypted_content": "x"}]},
    }
    imported = read(tmp_path, words("user", "One."), words("assistant", "Two."), sealed, words("user", "Three."))
    assert (len(imported.messages), imported.left_out) == (3, ())
    assert "encrypted summary" in imported.notices[0]


@pytest.mark.parametrize("order", ["item first", "event first", "item alone", "event alone"])
def test_a_prompt_is_there_whoever_tells_it(tmp_path: Path, order: str) -> None:
    prompt, told = words("user", "Go on, please."), event("user_message", message="Go on, please.")
    lines = {"item first": [prompt, told], "event first": [told, prompt], "item alone": [prompt], "event alone": [told]}[order]
    assert texts(read(tmp_path, *lines)) == ["user: Go on, please."]


def test_withdrawn_turn_goes_with_all_its_answers(tmp_path: Path) -> None:
    turn = [
        words("user", "<environment_context>x</environment_context>"),
        words("user", "No."),
        event("user_message", message="No."),
    ]
    stopped = [event("turn_aborted"), words("user", "<turn_aborted>It was stopped.</turn_aborted>")]
    back = event("thread_rolled_back", num_turns=1)
    assert texts(read(tmp_path, words("user", "Yes."), *turn, *stopped, back, words("user", "Better."))) == [
        "user: Yes.",
        "user: Better.",
    ]


def test_words_are_told_again_a_while_later(tmp_path: Path) -> None:
    items = [words("user", "Go."), item("reasoning", summary=[]), words("assistant", "Gone."), words("assistant", "Really.")]
    events = [event("agent_message", message=each) for each in ("Gone.", "Really.")]
    imported = read(tmp_path, *items, event("user_message", message="Go."), *events)
    assert texts(imported) == ["user: Go.", "assistant: Gone.Really."]


def test_the_same_words_said_again_are_said_again(tmp_path: Path) -> None:
    turn = [
        words("user", "Again."),
        event("user_message", message="Again."),
        words("assistant", "Yes."),
        event("agent_message", message="Yes."),
    ]
    assert texts(read(tmp_path, *turn, *turn)) == ["user: Again.", "assistant: Yes."] * 2


def test_prompt_quoting_a_tag_is_the_user_text(tmp_path: Path) -> None:
    prompt = "<b>What is this?</b>"
    assert texts(read(tmp_path, words("user", prompt), event("user_message", message=prompt))) == [f"user: {prompt}"]


def test_codex_text_quoting_the_prompt_is_distinguished(tmp_path: Path) -> None:
    injected = words("user", "# AGENTS.md instructions for /x\n\nSay hi.")
    assert texts(read(tmp_path, injected, event("user_message", message="hi"))) == ["user: hi"]


@pytest.mark.parametrize(
    ("output", "text", "outcome"),
    [
        ("plain", "plain", "ok"),
        ({"content": "packed", "success": False}, "packed", "error"),
        ('{"output":"inner","metadata":{"exit_code":0}}', "inner", "ok"),
        ('{"output":"inner","metadata":{"exit_code":2}}', "inner", "error"),
        ([{"type": "input_text", "text": "listed"}], "listed", "ok"),
        ("Exit code: 3\nOutput:\nno", "Exit code: 3\nOutput:\nno", "error"),
        ("exec command rejected by user", "exec command rejected by user", "denied_by_person"),
        ("aborted", "", "interrupted"),
        (None, "", "ok"),
        (7, "", "ok"),
    ],
)
def test_outputs_come_in_many_wrappings(tmp_path: Path, output: object, text: str, outcome: str) -> None:
    call = item("function_call", name="shell", arguments="{}", call_id="c1")
    (found,) = calls(read(tmp_path, call, item("function_call_output", call_id="c1", output=output)))
    assert (found.output, found.outcome) == (text, outcome)


def test_a_result_of_nobodys_call_is_counted(tmp_path: Path) -> None:
    imported = read(tmp_path, words("user", "Go."), item("function_call_output", call_id="gone", output="x"))
    assert imported.skipped == 1


def test_call_during_a_crash_may_have_had_effects(tmp_path: Path) -> None:
    (call,) = calls(read(tmp_path, item("function_call", name="shell", arguments='{"command": "rm x"}', call_id="c1")))
    assert (call.status, call.outcome) == ("failed", "interrupted")


def test_unknown_provider_gets_nothing_back(tmp_path: Path) -> None:
    other = {**META, "payload": {**META["payload"], "model_provider": "my-proxy"}}
    path = tmp_path / "rollout-x.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (other, words("assistant", "Hello."))))
    imported = codex.read(path)
    assert imported.messages[0].producer == Producer(provider="my-proxy", format="", model="")
    assert imported.model == ""


def test_the_oldest_rollouts_have_no_envelopes() -> None:
    old = sample("codex-2025")
    assert texts(old.read(old.path())) == ["user: List the files.", "assistant: ", "assistant: There is sum.py."]


def test_a_compressed_rollout_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "rollout-x.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    with pytest.raises(SessionError, match="compressed") as raised:
        codex.read(path)
    assert "zstd -d" in raised.value.hint


def test_a_name_given_later_stands_beside_the_sessions(tmp_path: Path) -> None:
    path = sample("codex-2025").copied(tmp_path)
    id = "5973b6c0-94b8-487b-a530-2aeb6098ae0e"
    (tmp_path / "codex" / "session_index.jsonl").write_text(json.dumps({"id": id, "thread_name": "Which files"}) + "\n{torn")
    assert codex.read(path).title == "Which files"
