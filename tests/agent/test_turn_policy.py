"""The effect of each answer on the turn, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from wolo.agent.turn_policy import MAX_PAUSES, NextStep, TurnPolicy
from wolo.messages.message import Message, Usage
from wolo.messages.parts import AnyPart, ImagePart, TextPart, ThinkingPart, ToolPart


def said(text: str = "", *calls: ToolPart, finish_reason: Any = "stop", thinking: str = "") -> Message:
    spoken: list[AnyPart] = [ThinkingPart(text=thinking)] if thinking else []
    parts = [*spoken, *([TextPart(text=text)] if text else []), *calls]
    usage = Usage(output_tokens=99)
    return Message(role="assistant", parts=parts, finished=True, finish_reason=finish_reason, usage=usage)


def calling(path: str = "a", **fields: Any) -> ToolPart:
    return ToolPart(tool="read", input={"path": path}, **fields)


def stop_cause(step: NextStep) -> str | None:
    return step.stop.cause if step.stop else None


def test_text_without_a_call_ends_the_turn() -> None:
    assert stop_cause(TurnPolicy().after(said("Done."))) == "done"


def test_call_continues_despite_a_stop_reason() -> None:
    assert TurnPolicy().after(said("", calling(), finish_reason="stop")) == NextStep()


def test_empty_answer_is_dropped_with_one_nudge() -> None:
    course = TurnPolicy()
    for shape in (said(), said("  \n"), said(thinking="hm"), said(finish_reason="tool_calls")):
        first = TurnPolicy().after(shape)
        assert (first.save_answer, bool(first.nudge), first.stop) == (False, True, None)
    course.after(said())
    second = course.after(said(thinking="hm"))
    assert (second.save_answer, second.nudge, stop_cause(second)) == (False, "", "model_error")


def test_call_between_renews_the_nudge() -> None:
    course = TurnPolicy()
    course.after(said())
    course.after(said("", calling()))
    assert course.after(said()).nudge


def test_announced_missing_call_is_requested_once() -> None:
    course = TurnPolicy()
    first = course.after(said("I will read it now.", finish_reason="tool_calls"))
    assert (first.save_answer, bool(first.nudge)) == (True, True)
    assert stop_cause(course.after(said("I will read it now.", finish_reason="tool_calls"))) == "model_error"


def test_an_image_is_an_answer() -> None:
    picture = Message(role="assistant", parts=[ImagePart(data=b"x")], finish_reason="stop")
    assert stop_cause(TurnPolicy().after(picture)) == "done"


def test_text_cut_at_limit_is_kept_and_fails() -> None:
    step = TurnPolicy().after(said("Half of", finish_reason="length"))
    assert (step.save_answer, stop_cause(step)) == (True, "model_error")
    assert step.stop is not None
    assert step.stop.exit_code == 1


def test_cut_calls_end_the_turn_at_the_third() -> None:
    course = TurnPolicy()
    steps = [course.after(said("", calling(str(number)), finish_reason="length")) for number in range(3)]
    assert all(step.refuse and step.refuse[0] == "cut_off" for step in steps)
    assert [stop_cause(step) for step in steps] == [None, None, "model_error"]


def test_good_call_between_cut_ones_resets_the_count() -> None:
    course = TurnPolicy()
    for number in range(6):
        step = course.after(said("", calling(str(number)), finish_reason="length" if number % 3 else "tool_calls"))
        assert step.stop is None


def test_unreadable_calls_get_two_corrections() -> None:
    course = TurnPolicy()
    broken = [calling(str(number), status="failed", outcome="invalid") for number in range(3)]
    assert [stop_cause(course.after(said("", part))) for part in broken] == [None, None, "model_error"]


def test_readable_call_beside_unreadable_one_is_progress() -> None:
    course = TurnPolicy()
    for number in range(8):
        step = course.after(said("", calling(str(number), status="failed", outcome="invalid"), calling(f"b{number}")))
        assert step.stop is None


def test_a_refused_or_overflowing_answer_runs_nothing() -> None:
    for reason, kind in (("refused", "content_refused"), ("overflow", "context_overflow"), ("error", "bad_answer")):
        step = TurnPolicy().after(said("So far", calling(), finish_reason=reason))
        assert step.refuse is not None
        assert step.stop is not None
        assert step.stop.error is not None
        assert (step.stop.cause, step.stop.exit_code, step.stop.error.kind) == ("model_error", 1, kind)


def test_wordless_refusal_is_no_empty_answer() -> None:
    for shape in (said(finish_reason="refused"), said(thinking="hm", finish_reason="refused")):
        step = TurnPolicy().after(shape)
        assert (step.save_answer, step.nudge, stop_cause(step)) == (False, "", "model_error")


def test_equal_call_warns_third_and_stops_at_fifth() -> None:
    course = TurnPolicy()
    steps = [course.after(said("", calling())) for _ in range(5)]
    assert [bool(step.note) for step in steps] == [False, False, True, True, False]
    assert [stop_cause(step) for step in steps] == [None, None, None, None, "model_error"]
    assert steps[4].refuse is not None


def test_paused_answer_is_kept_and_continued_with_bound() -> None:
    course = TurnPolicy()
    steps = [course.after(said("Searching", finish_reason="paused")) for _ in range(MAX_PAUSES)]
    assert steps[:-1] == [NextStep()] * (MAX_PAUSES - 1)
    assert stop_cause(steps[-1]) == "model_error"
    course = TurnPolicy()
    for turn in range(2 * MAX_PAUSES):
        assert course.after(said(f"Searching {turn}", finish_reason="paused")) == NextStep()
        course.after(said("", calling(str(turn))))


def test_why_an_answer_was_refused_is_told() -> None:
    refused = replace(said("I will n", finish_reason="refused"), error="It asks for a weapon.")
    stop = TurnPolicy().after(refused).stop
    assert stop is not None
    assert stop.error is not None
    assert "It asks for a weapon." in stop.error.message


@pytest.mark.parametrize(
    ("text", "is_call"),
    [
        ('{"name": "createShop", "arguments": {"path": "shop.py"}}', True),
        ('```json\n{"name": "write", "arguments": {"path": "a.py"\n```\nThis writes a.py.', True),
        ('I will write it:\n```json\n{"tool": "write", "parameters": {"path": "a.py"}}\n```', True),
        ("<tool_call>\nwrite a.py", True),
        ('It is configured with {"name": "x", "arguments": []} in the file.', False),
        ('```json\n{"name": "shop", "version": 1}\n```', False),
        ("```python\nprint({})\n```", False),
    ],
)
def test_call_as_answer_of_local_model_fails(text: str, is_call: bool) -> None:
    answer = Message(role="assistant", parts=(TextPart(text=text),), finished=True, finish_reason="stop")
    stop = TurnPolicy(is_local=True).after(answer).stop
    assert stop is not None
    assert (stop.cause == "model_error", stop.exit_code) == (is_call, int(is_call))
    elsewhere = TurnPolicy().after(answer).stop
    assert elsewhere is not None
    assert elsewhere.exit_code == 0
