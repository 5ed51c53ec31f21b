"""Reads one hook's answer from exit status, stderr and JSON, and combines several answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.extensions.hooks.response import NO_REASON, NOTHING, combine, read_answer, restrict
from wolo.tools.tool_values import HookReply


def said(output: Any, event: str = "PreToolUse") -> HookReply | str:
    return read_answer(event, 0, json.dumps(output).encode(), b"")


def specific(**output: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **output}}


def test_status_two_is_a_no_with_its_complaint() -> None:
    assert read_answer("PreToolUse", 2, b'{"decision": "approve"}', b"never\n") == HookReply(decision="deny", reason="never")
    assert read_answer("Stop", 2, b"go on", b"") == HookReply(decision="deny", reason="go on")
    assert read_answer("Stop", 2, b"", b"") == HookReply(decision="deny", reason=NO_REASON)


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        (specific(permissionDecision="deny", permissionDecisionReason="r"), HookReply(decision="deny", reason="r")),
        (specific(permissionDecision="ask"), HookReply(decision="ask")),
        (specific(permissionDecision="allow", updatedInput={"a": 1}), HookReply(decision="allow", updated_input={"a": 1})),
        (specific(additionalContext="c"), HookReply(context="c")),
        (specific(decision={"behavior": "deny", "message": "m"}), HookReply(decision="deny", reason="m")),
        ({"decision": "block", "reason": "r"}, HookReply(decision="deny", reason="r")),
        ({"decision": "approve"}, HookReply(decision="allow")),
        ({"continue": False, "stopReason": "s"}, HookReply(decision="deny", reason="s", stops=True, stop_reason="s")),
        (specific(permissionDecision="defer", permissionDecisionReason="later"), HookReply(decision="ask", reason="later")),
        (
            specific(decision={"behavior": "deny", "message": "m", "interrupt": True}),
            HookReply(decision="deny", reason="m", stops=True, stop_reason="m"),
        ),
        (specific(updatedToolOutput={"stdout": "x"}), NOTHING),
        ({"continue": True, "suppressOutput": True, "what": "ever"}, NOTHING),
        ({"systemMessage": "hello"}, HookReply(notices=("hello",))),
        ({}, NOTHING),
    ],
)
def test_each_form_of_an_answer(output: dict[str, Any], answer: HookReply) -> None:
    assert said(output) == answer


def test_a_byte_order_mark_hides_no_answer() -> None:
    output = b"\xef\xbb\xbf" + json.dumps(specific(permissionDecision="deny", permissionDecisionReason="r")).encode()
    assert read_answer("PreToolUse", 0, output, b"") == HookReply(decision="deny", reason="r")


def test_result_replacement_needs_a_result() -> None:
    assert said(specific(updatedToolOutput={"stdout": "x", "stderr": ""}), "PostToolUse") == HookReply(updated_output="x")
    assert said(specific(updatedMCPToolOutput=[{"type": "text", "text": "x"}]), "PostToolUse") == HookReply(updated_output="x")
    answer = said(specific(updatedToolOutput=7), "PostToolUse")
    assert isinstance(answer, HookReply)
    assert answer.notices == ("The updatedToolOutput of a PostToolUse hook has no text; the result stays as it was.",)


def test_whoever_stops_everything_lets_the_model_stop() -> None:
    assert said({"continue": False, "decision": "block", "reason": "r"}, "Stop") == NOTHING


def test_plain_text_reaches_the_model_where_meant() -> None:
    assert read_answer("SessionStart", 0, b"main is frozen\n", b"") == HookReply(context="main is frozen")
    assert read_answer("PreToolUse", 0, b"checked", b"") == NOTHING


def test_impossible_arguments_are_a_failure() -> None:
    value = "[" * 150 + "]" * 150
    stdout = '{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"a": ' + value + "}}}"
    answer = read_answer("PreToolUse", 0, stdout.encode(), b"")
    assert isinstance(answer, str)
    assert "not usable" in answer


@pytest.mark.parametrize("stdout", [b"{", b'{"a": ' + b"[" * 100_000])
def test_malformed_json_is_a_failure_never_a_yes(stdout: bytes) -> None:
    assert isinstance(read_answer("PreToolUse", 0, stdout, b""), str)


@pytest.mark.parametrize(
    ("output", "decision"),
    [
        ({"decision": "perhaps"}, "ask"),
        ({"decision": 7}, "ask"),
        ({"continue": "false"}, "ask"),
        ({"hookSpecificOutput": "deny"}, "ask"),
        (specific(permissionDecision="Deny"), "ask"),
        (specific(decision={"behavior": "block?"}), "ask"),
        ({"decision": "approve", **specific(permissionDecision="perhaps")}, "ask"),
        ({"decision": "block", **specific(permissionDecision="perhaps")}, "deny"),
        ({"decision": "block", "reason": 7}, "deny"),
        (specific(permissionDecision="deny", additionalContext=[1], watchPaths=3), "deny"),
        ({"reason": 1}, ""),
    ],
)
def test_meaningless_part_costs_itself_and_allows_nothing(output: dict[str, Any], decision: str) -> None:
    answer = said({"systemMessage": "hello", **output})
    assert isinstance(answer, HookReply)
    assert (answer.decision, answer.notices[0]) == (decision, "hello")
    assert "which wolo does not understand" in answer.notices[1]


@pytest.mark.parametrize("event", ["PermissionRequest", "Stop", "UserPromptSubmit"])
def test_an_unknown_word_elsewhere_decides_nothing(event: str) -> None:
    answer = said({"decision": "perhaps", "additionalContext": "c"}, event)
    assert isinstance(answer, HookReply)
    assert (answer.decision, answer.context) == ("", "c")


def test_hook_output_steers_no_terminal_and_stays_bounded() -> None:
    answer = read_answer("PreToolUse", 2, b"", b"\x1b]0;evil\x07no\x1b[2J" + b"x" * 1_000_000)
    assert isinstance(answer, HookReply)
    assert answer.reason.startswith("nox")
    assert len(answer.reason) < 20_000


ANSWERS = st.builds(
    HookReply,
    decision=st.sampled_from(["", "allow", "ask", "deny"]),
    reason=st.text(max_size=3),
    context=st.text(max_size=3),
    updated_input=st.none() | st.just({"a": 1}),
)


@given(st.lists(ANSWERS, max_size=5))
def test_strictest_answer_counts_and_no_project_loosens(answers: list[HookReply]) -> None:
    words = [each.decision for each in answers]
    found = combine(answers).decision
    assert found == next((word for word in ("deny", "ask", "allow") if word in words), "")
    strict = combine([restrict(each) for each in answers])
    assert strict.decision == (found if found in ("deny", "ask") else "")
    assert strict.updated_input is None
    assert strict.updated_output is None


@given(st.binary(max_size=200), st.integers(-64, 255))
def test_no_output_breaks_the_reading_of_it(data: bytes, exit_code: int) -> None:
    answer = read_answer("PreToolUse", exit_code, data, data)
    assert exit_code != 2 or (isinstance(answer, HookReply) and answer.decision == "deny")
