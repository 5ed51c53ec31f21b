"""Events become entries, and are on disk before anyone else hears of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from wolo.agent.events import (
    AnswerEnded,
    AttemptFailed,
    CallEnded,
    CallStarted,
    ErrorInfo,
    Event,
    RequestStarted,
    TextStreamed,
    TurnEnded,
    TurnStarted,
)
from wolo.conversation.recorder import PARTIAL_EVERY_CHARS, Recorder
from wolo.errors import SessionError
from wolo.messages.message import Message, Usage, user
from wolo.messages.parts import AnyPart, TextPart, ToolPart
from wolo.sessions.entries import AnyEntry, MessageEntry, PartialEntry, ResultsEntry, SettingEntry
from wolo.sessions.replay_entries import messages

ALLOWED = {"verdict": {"decision": "allow"}}


class MemorySink:
    """A session sink in memory, one list entry per commit."""

    def __init__(self) -> None:
        self.commits: list[tuple[AnyEntry, ...]] = []

    def append(self, session_id: str, entries: Sequence[AnyEntry]) -> None:
        assert session_id == "session_1"
        self.commits.append(tuple(entries))

    def change(self, setting: SettingEntry) -> None:
        """No test here changes one."""

    def cleanup(self) -> None:
        """There is nothing to tidy."""

    @property
    def entries(self) -> list[AnyEntry]:
        return [entry for commit in self.commits for entry in commit]


def begin() -> RequestStarted:
    return RequestStarted(model="m", attempt=1, context_tokens=1)


async def test_a_tool_turn_costs_two_commits() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, "session_1")
    call = ToolPart(tool="edit", kind="edit", metadata=ALLOWED)
    answer = Message(role="assistant", parts=[call], finished=True)
    await recorder.record(TurnStarted(prompt=user("go")))
    prompt_commits = len(sink.commits)
    await recorder.record(begin())
    await recorder.record(AnswerEnded(message=answer))
    await recorder.record(CallStarted(message_id=answer.id, part=call))
    await recorder.record(CallEnded(message_id=answer.id, part=call))
    await recorder.close()
    assert prompt_commits == 1
    assert [type(entry) for entry in sink.entries] == [MessageEntry, MessageEntry, ResultsEntry]


def reading(**more: Any) -> tuple[Message, ToolPart]:
    """An answer whose only call reads."""
    call = ToolPart(tool="grep", kind="search", metadata=ALLOWED)
    return Message(role="assistant", parts=[TextPart(text="Let me look."), call], finished=True, **more), call


async def test_lone_reading_call_commits_once_with_its_answer() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, "session_1")
    answer, call = reading()
    await recorder.record(AnswerEnded(message=answer))
    await recorder.record(CallStarted(message_id=answer.id, part=call))
    assert sink.commits == []
    await recorder.record(CallEnded(message_id=answer.id, part=call))
    ((first, second),) = sink.commits
    assert isinstance(first, MessageEntry)
    assert isinstance(second, ResultsEntry)
    await recorder.close()


ENDED = TurnEnded(cause="done", answer="", finish_reason="stop", usage=Usage(), num_answers=1, duration_s=1.0, provider_s=1.0)


@pytest.mark.parametrize("later", [begin(), ENDED], ids=["request", "end"])
async def test_waiting_answer_is_saved_before_request_and_end(later: Event) -> None:
    sink = MemorySink()
    recorder = Recorder(sink, "session_1")
    await recorder.record(AnswerEnded(message=reading()[0]))
    await recorder.record(later)
    assert [type(entry) for entry in sink.entries] == [MessageEntry]
    await recorder.close()


async def test_waiting_answer_is_saved_before_anything_else() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, "session_1")
    answer, _ = reading()
    await recorder.record(AnswerEnded(message=answer))
    await recorder.save(MessageEntry(message=user("in between")))
    assert [entry.message.id == answer.id for entry in sink.entries if isinstance(entry, MessageEntry)] == [True, False]
    await recorder.close()


async def test_answer_waits_one_second_at_most_for_call() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, "session_1")
    answer, call = reading()
    await recorder.record(AnswerEnded(message=answer))
    async with asyncio.timeout(60):
        while not sink.commits:
            await asyncio.sleep(0.05)
    await recorder.record(CallEnded(message_id=answer.id, part=call))
    assert [[type(entry) for entry in commit] for commit in sink.commits] == [[MessageEntry], [ResultsEntry]]
    await recorder.close()


async def test_unsaved_answer_is_saved_with_next_entry() -> None:
    class FullOnce(MemorySink):
        is_full = True

        def append(self, session_id: str, entries: Sequence[AnyEntry]) -> None:
            if self.is_full:
                self.is_full = False
                raise SessionError("The disk is full.")
            super().append(session_id, entries)

    sink = FullOnce()
    recorder = Recorder(sink, "session_1")
    answer, call = reading()
    await recorder.record(AnswerEnded(message=answer))
    with pytest.raises(SessionError):
        await recorder.record(CallEnded(message_id=answer.id, part=call))
    await recorder.record(TurnStarted(prompt=user("again")))
    assert next(message.id for message in messages(sink.entries)) == answer.id
    await recorder.close()


async def test_waiting_answer_is_saved_on_close() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, "session_1")
    await recorder.record(AnswerEnded(message=reading()[0]))
    await recorder.close()
    assert [type(entry) for entry in sink.entries] == [MessageEntry]


@pytest.mark.parametrize(
    ("parts", "has_hooks"),
    [
        ([ToolPart(tool="shell", kind="execute", metadata=ALLOWED)], False),
        ([ToolPart(tool="read", kind="read", metadata=ALLOWED)], True),
        ([ToolPart(tool="read", kind="read", metadata={"verdict": {"decision": "ask"}})], False),
        ([ToolPart(tool="read", kind="read", metadata=ALLOWED), ToolPart(tool="edit", kind="edit", metadata=ALLOWED)], False),
        ([TextPart(text="Done.")], False),
    ],
    ids=["effects", "hooks", "approval", "several calls", "no call"],
)
async def test_every_other_answer_is_saved_at_once(parts: list[AnyPart], has_hooks: bool) -> None:
    sink = MemorySink()
    recorder = Recorder(sink, "session_1", has_hooks=has_hooks)
    await recorder.record(AnswerEnded(message=Message(role="assistant", parts=parts, finished=True)))
    assert [type(entry) for entry in sink.entries] == [MessageEntry]
    await recorder.close()


async def test_call_missing_in_its_answer_is_kept() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, "session_1")
    first, second = ToolPart(tool="shell", metadata=ALLOWED), ToolPart(tool="shell", metadata=ALLOWED)
    asked = ToolPart(tool="shell", metadata={"verdict": {"decision": "ask"}})
    for calls, kept in (((first, second), second), ((asked,), asked)):
        answer = Message(role="assistant", parts=calls, finished=True)
        await recorder.record(AnswerEnded(message=answer))
        before = len(sink.commits)
        for call in calls:
            await recorder.record(CallStarted(message_id=answer.id, part=call))
        (entry,) = (entry for commit in sink.commits[before:] for entry in commit)
        assert isinstance(entry, ResultsEntry)
        assert entry.parts == (kept,)
    await recorder.close()


async def test_long_stream_is_kept_piecewise_then_superseded() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, "session_1", clock=lambda: 0.0)
    await recorder.record(begin())
    await recorder.record(TextStreamed(text="a" * (PARTIAL_EVERY_CHARS - 1)))
    assert sink.commits == []
    await recorder.record(TextStreamed(text="b"))
    await recorder.record(TextStreamed(text="c" * PARTIAL_EVERY_CHARS))
    pieces = [entry.text for entry in sink.entries if isinstance(entry, PartialEntry)]
    assert [len(piece) for piece in pieces] == [PARTIAL_EVERY_CHARS, PARTIAL_EVERY_CHARS]
    (cut,) = messages(sink.entries)
    assert (cut.text, cut.finish_reason) == ("".join(pieces), "interrupted")
    await recorder.record(AnswerEnded(message=Message(role="assistant", parts=[TextPart(text="whole")], finished=True)))
    await recorder.close()
    assert [message.text for message in messages(sink.entries)] == ["whole"]


async def test_a_second_without_a_commit_is_enough() -> None:
    sink, now = MemorySink(), [0.0]
    recorder = Recorder(sink, "session_1", clock=lambda: now[0])
    await recorder.record(begin())
    await recorder.record(TextStreamed(text="slow "))
    now[0] = 1.1
    await recorder.record(TextStreamed(text="going"))
    await recorder.close()
    assert [entry.text for entry in sink.entries if isinstance(entry, PartialEntry)] == ["slow going"]


async def test_received_text_is_kept_at_a_stream_pause() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, "session_1")
    await recorder.record(begin())
    await recorder.record(TextStreamed(text="so far"))
    async with asyncio.timeout(60):
        while not sink.commits:
            await asyncio.sleep(0.05)
    await recorder.record(TextStreamed(text=" so good"))
    await recorder.close()
    assert [entry.text for entry in sink.entries if isinstance(entry, PartialEntry)] == ["so far"]


async def test_failed_pause_save_is_reported_with_next_event() -> None:
    failed = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Full(MemorySink):
        def append(self, session_id: str, entries: Sequence[AnyEntry]) -> None:
            loop.call_soon_threadsafe(failed.set)
            raise SessionError("The disk is full.")

    recorder = Recorder(Full(), "session_1")
    await recorder.record(begin())
    await recorder.record(TextStreamed(text="so far"))
    await asyncio.wait_for(failed.wait(), 60)
    with pytest.raises(SessionError, match="full"):
        await recorder.record(TextStreamed(text=" so good"))
    await recorder.close()


async def test_broken_attempt_is_withdrawn() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, "session_1", clock=lambda: 0.0)
    await recorder.record(TurnStarted(prompt=user("go")))
    await recorder.record(begin())
    await recorder.record(TextStreamed(text="x" * PARTIAL_EVERY_CHARS))
    error = ErrorInfo(kind="unavailable", message="The stream ended early.")
    await recorder.record(AttemptFailed(error=error, attempt=1, tries=2, delay_s=0))
    await recorder.close()
    assert [message.role for message in messages(sink.entries)] == ["user"]


class SlowSink(MemorySink):
    """Its first commit waits until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.is_saving, self.released = threading.Event(), threading.Event()

    def append(self, session_id: str, entries: Sequence[AnyEntry]) -> None:
        self.is_saving.set()
        assert self.released.wait(30)
        super().append(session_id, entries)


async def test_cancelled_save_behind_another_session_is_saved() -> None:
    slow, sink = SlowSink(), MemorySink()
    first, second = Recorder(slow, "session_1"), Recorder(sink, "session_1")
    saving = asyncio.create_task(first.save(MessageEntry(message=user("slow"))))
    await asyncio.to_thread(slow.is_saving.wait, 30)
    waiting = asyncio.create_task(second.save(MessageEntry(message=user("behind"))))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    slow.released.set()
    await saving
    await second.close()
    assert len(sink.entries) == 1


async def test_next_event_reports_a_cancelled_saves_failure() -> None:
    class FullSink(SlowSink):
        def append(self, session_id: str, entries: Sequence[AnyEntry]) -> None:
            super().append(session_id, entries)
            if len(self.commits) == 1:
                raise SessionError("The disk is full.")

    sink = FullSink()
    recorder = Recorder(sink, "session_1")
    answer, _ = reading()
    await recorder.record(AnswerEnded(message=answer))
    saving = asyncio.create_task(recorder.save(MessageEntry(message=user("lost"))))
    await asyncio.to_thread(sink.is_saving.wait, 30)
    saving.cancel()
    await asyncio.wait({saving})
    sink.released.set()
    with pytest.raises(SessionError, match="full"):
        await recorder.record(TurnStarted(prompt=user("again")))
    await recorder.record(TurnStarted(prompt=user("again")))
    assert [entry.message.text for entry in sink.commits[1] if isinstance(entry, MessageEntry)] == [answer.text, "again"]
    await recorder.close()


async def test_cancelled_pause_saves_its_answer_once() -> None:
    sink = SlowSink()
    recorder = Recorder(sink, "session_1")
    answer, call = reading()
    await recorder.record(AnswerEnded(message=answer))
    await asyncio.to_thread(sink.is_saving.wait, 30)
    waiting = asyncio.create_task(recorder.record(CallEnded(message_id=answer.id, part=call)))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    sink.released.set()
    await recorder.record(TurnStarted(prompt=user("again")))
    await recorder.close()
    assert [entry.message.text for entry in sink.entries if isinstance(entry, MessageEntry)] == [answer.text, "again"]


async def test_abandoned_session_is_released_after_its_last_commit() -> None:
    sink, released = SlowSink(), threading.Event()
    recorder = Recorder(sink, "session_1")
    saving = asyncio.create_task(recorder.save(MessageEntry(message=user("last"))))
    await asyncio.to_thread(sink.is_saving.wait, 30)
    recorder.abandon(released.set)
    assert not released.is_set()
    sink.released.set()
    assert await asyncio.to_thread(released.wait, 30)
    assert len(sink.entries) == 1
    await saving
