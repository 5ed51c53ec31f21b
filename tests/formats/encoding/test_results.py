"""Pairs tool calls with results, and selects the messages that the model sees."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from wolo.formats.encoding.encoder import visible_message
from wolo.formats.encoding.wire_forms import result_text
from wolo.messages.message import Message, user
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart

ENDS: dict[str, dict[str, Any]] = {
    "denied by a person": {"status": "failed", "outcome": "denied_by_person"},
    "denied by a rule": {"status": "failed", "outcome": "denied_by_rule"},
    "interrupted": {"status": "failed", "outcome": "interrupted"},
    "never started": {"status": "failed", "outcome": "never_started"},
    "cut off": {"status": "failed", "outcome": "cut_off"},
    "invalid": {"status": "failed", "outcome": "invalid"},
    "failed": {"status": "failed", "outcome": "error"},
    "empty": {"status": "completed", "outcome": "ok"},
}


def ended(output: str = "", **how: Any) -> str:
    return result_text(ToolPart(tool="shell", output=output, **how))


def test_every_way_to_end_reads_differently() -> None:
    texts = [ended(**how) for how in ENDS.values()]
    assert all(one != other for one, other in itertools.combinations(texts, 2))
    assert all(texts)


def test_running_call_may_have_had_effects() -> None:
    text = ended("part", status="running")
    assert "interrupted" in text
    assert "may have had effects" in text
    assert text.endswith("part")
    assert text == ended("part", status="failed", outcome="interrupted")


def test_pending_call_was_never_started() -> None:
    assert ended(status="pending") == ended(status="failed", outcome="never_started")


@pytest.mark.parametrize("how", ENDS.values(), ids=list(ENDS))
def test_result_text_is_never_lost(how: dict[str, Any]) -> None:
    assert "the tool's own words" in ended("the tool's own words", **how)


def test_self_explaining_result_is_left_alone() -> None:
    text = "Denied by the user: use rg instead."
    assert ended(text, status="failed", outcome="denied_by_person") == text
    assert ended("x\n[interrupted after 3 s]", status="failed", outcome="interrupted") == "x\n[interrupted after 3 s]"


def test_extension_and_empty_messages_are_not_sent() -> None:
    for message in (
        Message(role="custom", parts=[TextPart(text="note")]),
        Message(role="assistant", parts=[]),
        Message(role="assistant", parts=[TextPart(text=" \n")]),
        Message(role="assistant", parts=[ThinkingPart(text="only thoughts")]),
        Message(role="user", parts=[TextPart(text="")]),
        Message(role="user", parts=[ToolPart(tool="read")]),
    ):
        assert visible_message(message, set()) is None


@pytest.mark.parametrize("role", ["branch_summary", "compaction_summary"])
def test_summaries_are_sent_as_the_users(role: Any) -> None:
    sent = visible_message(Message(role=role, parts=[TextPart(text="so far")]), set())
    assert sent is not None
    assert (sent.role, sent.text) == ("user", "so far")


def test_call_standing_in_two_messages_counts_once() -> None:
    call, seen = ToolPart(tool="read"), set[str]()
    first = Message(role="assistant", parts=[call])
    assert visible_message(first, seen) is first
    again = visible_message(Message(role="assistant", parts=[TextPart(text="hi"), call]), seen)
    assert again is not None
    assert again.calls == ()


def test_unneeded_change_makes_no_copy() -> None:
    message = user("hi")
    assert visible_message(message, set()) is message
