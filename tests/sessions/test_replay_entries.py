"""Entries become the messages a conversation goes on with."""

from __future__ import annotations

from msgspec.structs import replace

from tests.sessions.samples import said, tool_turn
from wolo.messages.message import Message
from wolo.messages.parts import TextPart, ToolPart
from wolo.sessions.entries import AnyEntry, CustomEntry, MessageEntry, PartialEntry, ResultsEntry, SettingEntry
from wolo.sessions.replay_entries import messages


def asked(*calls: ToolPart, id: str = "msg_a") -> MessageEntry:
    return MessageEntry(message=Message(id=id, role="assistant", parts=calls, finished=True, finish_reason="tool_calls"))


def answer(text: str, id: str = "msg_b") -> MessageEntry:
    return MessageEntry(message=Message(id=id, role="assistant", parts=(TextPart(text=text),), finished=True))


def test_results_are_put_into_the_calls_they_answer() -> None:
    entries = [
        said("hi"),
        *tool_turn(1),
        *tool_turn(2),
        answer("done"),
        SettingEntry(name="model", value="m"),
        CustomEntry(custom_type="x"),
    ]
    folded = messages(entries)
    assert [message.role for message in folded] == ["user", "assistant", "assistant", "assistant"]
    assert [call.status for message in folded for call in message.calls] == ["completed", "completed"]
    assert folded[1].calls[0].output == "y" * 2000


def test_results_come_singly_and_the_last_counts() -> None:
    one, two = ToolPart(id="p1", tool="read"), ToolPart(id="p2", tool="read")
    running = replace(one, status="running")
    done = replace(one, status="completed", outcome="ok", output="fine")
    failed = replace(two, status="failed", outcome="error", output="no")
    folded = messages(
        [
            asked(one, two),
            ResultsEntry(message_id="msg_a", parts=(running,)),
            ResultsEntry(message_id="msg_a", parts=(failed,)),
            ResultsEntry(message_id="msg_a", parts=(done,)),
        ]
    )
    assert folded[0].calls == (done, failed)


def test_calls_cut_by_a_crash_are_interrupted() -> None:
    allowed = ToolPart(id="p1", tool="shell", metadata={"verdict": {"decision": "allow"}})
    waiting = ToolPart(id="p2", tool="shell", metadata={"verdict": {"decision": "ask"}})
    running = ToolPart(id="p3", tool="shell", status="running", output="part", metadata={"verdict": {"decision": "ask"}})
    done = ToolPart(id="p4", tool="shell", status="completed", outcome="ok", output="all")
    (message,) = messages([asked(allowed, waiting, running, done)])
    assert [call.outcome for call in message.calls] == ["interrupted", "never_started", "interrupted", "ok"]
    assert [call.status for call in message.calls] == ["failed", "failed", "failed", "completed"]
    assert message.calls[2].output == "part"


def test_settled_call_stays_settled_after_the_next_turn() -> None:
    entries: list[AnyEntry] = [said("go"), asked(ToolPart(id="p1", tool="shell", metadata={"verdict": {"decision": "allow"}}))]
    before = messages(entries)
    after = messages([*entries, said("go on"), answer("fine")])
    assert after[: len(before)] == before


def test_streaming_text_becomes_an_interrupted_answer() -> None:
    prompt = said("hi")
    pieces = [PartialEntry(message_id="msg_p", text="Hello "), PartialEntry(message_id="msg_p", text="wor")]
    first = messages([prompt, *pieces])
    assert (first[1].id, first[1].text, first[1].finish_reason, first[1].finished) == ("msg_p", "Hello wor", "interrupted", False)
    again = messages([prompt, *pieces, said("go on"), answer("ok")])
    assert again[:2] == first
    assert [message.text for message in again[2:]] == ["go on", "ok"]


def test_text_of_a_retried_attempt_is_dropped() -> None:
    broken = PartialEntry(message_id="msg_1", text="Broken")
    second = PartialEntry(message_id="msg_2", text="Second")
    assert [message.text for message in messages([said("hi"), broken, answer("Whole")])] == ["hi", "Whole"]
    assert [message.text for message in messages([said("hi"), broken, second])] == ["hi", "Second"]


def test_text_that_was_taken_back_is_dropped() -> None:
    kept = PartialEntry(message_id="msg_1", text="Kept")
    assert [message.text for message in messages([said("hi"), kept, PartialEntry(message_id="msg_1", text="")])] == ["hi"]


def test_results_of_a_lost_message_are_ignored() -> None:
    assert messages([tool_turn(1)[1], said("hi")])[0].text == "hi"
