"""A model that answers what it answered before, as long as it is asked what it was asked before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from wolo.errors import Unavailable
from wolo.messages.comparison import without_changing_values
from wolo.messages.deltas import Delta, TextDelta
from wolo.messages.message import Message, user
from wolo.messages.parts import IN_FENCE, TextPart, ToolPart
from wolo.models.protocol import ModelQuestion
from wolo.models.provider import Model, ModelChoice, Provider
from wolo.models.replay_model import RecordedAnswer, RecordedModel, ReplayDiverged, Script, before_calls_ran

CHOICE = ModelChoice(Provider(name="p", label="P", base_url=""), Model(id="m"), "")
PROMPT = user("go")
ANSWER = Message(role="assistant", parts=(TextPart(text="It is done. " * 20),), finished=True, finish_reason="stop")


class Ears:
    def __init__(self) -> None:
        self.heard: list[str] = []

    async def on_request(self, attempt: int, context_tokens: int) -> None:
        self.heard.append(f"request {attempt}")

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        self.heard += [delta.text for delta in deltas if isinstance(delta, TextDelta)]

    async def on_attempt_failed(self, *_: object) -> None: ...

    async def on_replaced(self, *_: object) -> None: ...

    async def on_notice(self, *_: object) -> None: ...


def model(*answers: Message, is_complete: bool = True, stopped: bool = False) -> RecordedModel:
    stop: list[None] = []
    made = RecordedModel(CHOICE, of=without_changing_values, here=str, stop=lambda: stop.append(None), unfinished=(), check=None)
    recorded = [
        RecordedAnswer(step=step, sent=lambda at=step: (PROMPT, *answers[: at - 1]), answer=answer, stopped=stopped)
        for step, answer in enumerate(answers, 1)
    ]
    made.begin(Script(answers=tuple(recorded), step=len(answers) + 1, is_complete=is_complete))
    return made


async def test_text_streams_in_pieces_and_ends_whole() -> None:
    ears = Ears()
    answer = await model(ANSWER).ask(ModelQuestion(messages=(PROMPT,)), ears)
    assert (answer.id, answer.text) == (ANSWER.id, ANSWER.text)
    assert ears.heard[0] == "request 1"
    assert len(ears.heard) > 2
    assert "".join(ears.heard[1:]) == ANSWER.text


async def test_another_question_is_told_with_what_is_different() -> None:
    with pytest.raises(ReplayDiverged) as told:
        await model(ANSWER).ask(ModelQuestion(messages=(user("stop"),)), Ears())
    found = told.value.divergence
    assert (found.step, found.kind, found.where) == (1, "request", "message 1 of 1")
    assert (found.expected, found.got) == ("user:\ngo", "user:\nstop")


async def test_extra_request_differs_only_after_turn_end() -> None:
    complete, broken = model(ANSWER), model(ANSWER, is_complete=False)
    for each in (complete, broken):
        await each.ask(ModelQuestion(messages=(PROMPT,)), Ears())
    more = ModelQuestion(messages=(PROMPT, ANSWER))
    with pytest.raises(ReplayDiverged):
        await complete.ask(more, Ears())
    with pytest.raises(Unavailable):
        await broken.ask(more, Ears())


async def test_stopped_stream_waits_to_be_stopped() -> None:
    asking = asyncio.ensure_future(model(ANSWER, stopped=True).ask(ModelQuestion(messages=(PROMPT,)), Ears()))
    await asyncio.wait({asking}, timeout=0.05)
    assert not asking.done()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


def test_calls_restart_except_broken_ones() -> None:
    ran = ToolPart(tool="read", input={"path": "a"}, status="completed", outcome="ok", output="1→a", end_time=5.0)
    broken = ToolPart(tool="read", raw_input="{", status="failed", outcome="invalid", output="not JSON")
    first, second = before_calls_ran(Message(role="assistant", parts=(ran, broken))).calls
    assert (first.id, first.status, first.output, first.outcome) == (ran.id, "pending", "", None)
    assert second == broken


def test_call_in_a_fence_appears_there_again() -> None:
    part = ToolPart(
        tool="read", status="failed", outcome="denied_by_rule", end_time=1.0, metadata={IN_FENCE: True, "verdict": {}}
    )
    (again,) = before_calls_ran(Message(role="assistant", parts=(part,))).calls
    assert (again.status, again.metadata) == ("pending", {IN_FENCE: True})
