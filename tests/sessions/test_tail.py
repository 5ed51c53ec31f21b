"""Follows another process by the entries it adds."""

from __future__ import annotations

from msgspec.structs import replace

from tests.sessions.samples import said, tool_turn
from wolo.messages.message import Message
from wolo.messages.parts import TextPart, ThinkingPart
from wolo.sessions.entries import AnyEntry, BranchEntry, MessageEntry, PartialEntry, ResultsEntry
from wolo.sessions.session_text import EntryFollower


def told(*entries: AnyEntry) -> list[tuple[str, str]]:
    return [(line.kind, line.text) for line in EntryFollower().lines(entries)]


def answer(text: str) -> MessageEntry:
    return MessageEntry(message=Message(role="assistant", parts=(TextPart(text=text),), finished=True))


def test_a_turn_is_told_in_order() -> None:
    call, result = tool_turn(1, output="apples")
    assert told(said("do it"), call, result, answer("Done.")) == [
        ("prompt", "do it"),
        ("text", "Looking at file 1."),
        ("call", "read f1.py"),
        ("result", "apples"),
        ("text", "Done."),
    ]


def test_a_text_that_grows_is_told_once() -> None:
    pieces = [PartialEntry(message_id="m", text=text) for text in ("Hel", "lo")]
    assert told(*pieces, answer("Hello there")) == [("text", "Hel"), ("more", "lo"), ("more", " there")]
    assert told(pieces[0], PartialEntry(message_id="m", text=""), answer("Hi")) == [
        ("text", "Hel"),
        ("note", "The answer was interrupted and is retried."),
        ("text", "Hi"),
    ]


def test_result_is_reported_when_present_with_its_end() -> None:
    call, result = tool_turn(1, output="no such file")
    failed = replace(result.parts[0], status="failed", outcome="error")
    running = replace(result.parts[0], status="running", outcome=None, output="")
    lines = told(call, ResultsEntry(message_id="x", parts=(running,)), ResultsEntry(message_id="x", parts=(failed, failed)))
    assert lines[2:] == [("result", "error: no such file")]


def test_thinking_and_branches_are_told() -> None:
    thought = MessageEntry(message=Message(role="assistant", parts=(ThinkingPart(text="Hm."), TextPart(text="Yes."))))
    assert told(thought) == [("thinking", "Hm."), ("text", "Yes.")]
    assert told(BranchEntry(left=1))[0][0] == "note"
