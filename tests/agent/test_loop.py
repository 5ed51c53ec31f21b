"""Turns against a scripted provider: requests, events and results."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.agent.conftest import SECRET, AgentHarness
from tests.fakes.provider_server import Asked
from tests.fakes.replies import Hold, Reply, call, calls, delta, error, finish, sse, text, usage
from wolo.agent.budget import Limits
from wolo.agent.events import (
    AnswerEnded,
    AttemptFailed,
    CallEnded,
    CallStarted,
    Check,
    Event,
    MessageAdded,
    Noticed,
    RequestStarted,
    TextStreamed,
    TurnEnded,
    TurnStarted,
)
from wolo.agent.goal import Goal, GoalPolicy
from wolo.errors import SessionError
from wolo.messages.message import user

PARAGRAPH = " ".join(f"word{number}" for number in range(50))


async def test_plain_answer_is_one_request_and_event_stream(harness: AgentHarness) -> None:
    harness.provider.script(text("Hello there.", usage=usage(100, 7, cached=40)))
    turn = await harness.turn("hi")
    assert [type(event) for event in harness.events if not isinstance(event, TextStreamed)] == [
        TurnStarted,
        RequestStarted,
        AnswerEnded,
        TurnEnded,
    ]
    assert "".join(event.text for event in harness.told(TextStreamed)) == "Hello there."
    assert (turn.ended.cause, turn.ended.answer, turn.ended.exit_code) == ("done", "Hello there.", 0)
    assert (turn.ended.usage.input_tokens, turn.ended.usage.cache_read_tokens, turn.ended.usage.output_tokens) == (60, 40, 7)
    assert turn.ended.usage.cost is None
    assert [message.role for message in turn.new] == ["user", "assistant"]
    assert len(harness.provider.requests) == 1


async def test_call_runs_and_its_result_returns(harness: AgentHarness) -> None:
    Path("a.txt").write_text("the first line\n")
    harness.provider.script(call("read", {"path": "a.txt"}, content="Let me look."), text("It has one line."))
    turn = await harness.turn()
    assert "the first line" in harness.results()[0]
    assert turn.ended.answer == "It has one line."
    assert turn.ended.num_answers == 2
    assert [part.status for part in turn.new[1].calls] == ["completed"]


async def test_a_paused_answer_is_gone_on_with(harness: AgentHarness) -> None:
    harness.provider.script(text("First half, ", finish_reason="pause_turn"), text("second half."))
    turn = await harness.turn()
    assert turn.ended.answer == "First half, second half."
    assert [message.role for message in turn.new] == ["user", "assistant", "assistant"]
    assert [message["content"] for message in harness.provider.requests[1].messages[-2:]] == ["First half, ", "Continue."]


async def test_a_refused_answer_is_not_sent_again(harness: AgentHarness) -> None:
    harness.provider.script(text("I will n", finish_reason="content_filter"), text("Gladly."))
    first = await harness.turn("something bad")
    assert (first.ended.cause, first.ended.answer) == ("model_error", "I will n")
    await harness.turn("something good")
    sent = [message["content"] for message in harness.provider.requests[1].messages]
    assert sent[-3:] == ["something bad", "(no answer was given)", "something good"]


async def test_announcement_precedes_its_effect(harness: AgentHarness) -> None:
    """A recorder that keeps each event before it returns has everything on disk in time."""
    kinds_by_request: list[set[type[Event]]] = []

    def remember(asked: Asked) -> Reply:
        kinds_by_request.append({type(event) for event in harness.events})
        return call("say", {"text": "x"}) if len(kinds_by_request) == 1 else text("done")

    ran_before_answer_was_kept: list[bool] = []
    harness.on_event = lambda event: (
        ran_before_answer_was_kept.append(bool(harness.say.ran)) if isinstance(event, AnswerEnded | CallStarted) else None
    )
    harness.provider.script(remember, remember)
    await harness.turn()
    assert TurnStarted in kinds_by_request[0]
    assert CallEnded in kinds_by_request[1]
    assert ran_before_answer_was_kept == [False, False, True]


async def test_the_verdict_goes_to_disk_with_the_answer(harness: AgentHarness) -> None:
    harness.provider.script(call("say", {"text": "x"}), text("done"))
    await harness.turn()
    (part,) = harness.told(AnswerEnded)[0].message.calls
    assert part.status == "pending"
    assert part.metadata["verdict"]["decision"] == "allow"


async def test_a_second_turn_goes_on_from_the_first(harness: AgentHarness) -> None:
    harness.provider.script(call("say", {"text": "x"}), text("one"), text("two"))
    await harness.turn("first")
    turn = await harness.turn("second")
    assert [message["role"] for message in harness.provider.requests[-1].messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert len(turn.new) == 2


async def test_broken_attempt_is_withdrawn_and_never_runs(harness: AgentHarness) -> None:
    broken = call("say", {"text": "never"}).cut_at(400, "reset")
    harness.provider.script(broken, text("The whole answer."))
    turn = await harness.turn()
    assert turn.ended.answer == "The whole answer."
    assert len(harness.told(AttemptFailed)) == 1
    assert harness.say.ran == []
    assert len(turn.new) == 2


async def test_refusing_provider_ends_the_turn_with_its_reason(harness: AgentHarness) -> None:
    harness.provider.script(error(401, {"error": {"message": "bad key"}}))
    turn = await harness.turn()
    assert (turn.ended.cause, turn.ended.exit_code) == ("model_error", 1)
    assert turn.ended.error is not None
    assert (turn.ended.error.kind, turn.ended.error.status) == ("auth", 401)
    assert [message.role for message in turn.new] == ["user"]


async def test_a_provider_that_stays_away_is_unavailable(harness: AgentHarness) -> None:
    harness.provider.otherwise = error(503, "down", {"retry-after": "0.01"})
    turn = await harness.turn()
    assert (turn.ended.cause, turn.ended.exit_code) == ("unavailable", 75)


async def test_stop_beside_a_call_keeps_the_call(harness: AgentHarness) -> None:
    harness.provider.script(call("say", {"text": "x"}, finish_reason="stop"), text("done"))
    await harness.turn()
    assert harness.say.ran == ["x"]


@pytest.mark.parametrize(
    "empty",
    [
        sse(finish("stop")),
        sse(finish("tool_calls")),
        sse(delta(reasoning_content="I think."), finish("stop")),
        sse(delta(" \n"), finish("stop")),
        sse(delta("I will read the file now:"), finish("tool_calls")),
        sse(delta(reasoning_content="<tool_call>read</tool_call>"), finish("length")),
    ],
    ids=["nothing", "announced", "thinking", "blanks", "preamble", "thought too long"],
)
async def test_empty_answer_gets_one_nudge_then_fails(harness: AgentHarness, empty: Reply) -> None:
    harness.provider.script(*[empty] * 5)
    turn = await harness.turn()
    assert len(harness.provider.requests) == 2
    assert (turn.ended.cause, turn.ended.exit_code) == ("model_error", 1)
    assert len(harness.told(MessageAdded)) == 1
    assert harness.told(Noticed)
    assert all(message.text.strip() for message in turn.new)


async def test_a_nudge_can_help(harness: AgentHarness) -> None:
    harness.provider.script(sse(finish("stop")), text("Here I am."), text("And on."))
    turn = await harness.turn()
    assert (turn.ended.cause, turn.ended.answer, turn.ended.num_answers) == ("done", "Here I am.", 2)
    await harness.turn("more")


async def test_call_cut_at_the_limit_does_not_run(harness: AgentHarness) -> None:
    Path("kept.txt").write_text("kept")
    cut = call("write", '{"path": "kept.txt", "content": "half of', finish_reason="length", usage=usage(10, 4096))
    harness.provider.script(*[cut] * 5)
    turn = await harness.turn()
    assert Path("kept.txt").read_text() == "kept"
    assert len(harness.provider.requests) == 3
    assert all("cut off" in result and "plit the work" in result for result in harness.results())
    assert (turn.ended.cause, turn.ended.exit_code) == ("model_error", 1)


async def test_parsable_call_cut_at_limit_does_not_run(harness: AgentHarness) -> None:
    harness.provider.script(call("say", {"text": "x"}, finish_reason="length"), text("I will split it."))
    turn = await harness.turn()
    assert harness.say.ran == []
    assert turn.ended.cause == "done"


async def test_text_cut_at_the_limit_is_kept(harness: AgentHarness) -> None:
    harness.provider.script(text("Half of the sto", finish_reason="length"))
    turn = await harness.turn()
    assert (turn.ended.answer, turn.ended.exit_code, turn.ended.finish_reason) == ("Half of the sto", 1, "length")
    assert turn.new[-1].text == "Half of the sto"


async def test_a_content_filter_runs_nothing(harness: AgentHarness) -> None:
    harness.provider.script(call("say", {"text": "x"}, finish_reason="content_filter"))
    turn = await harness.turn()
    assert harness.say.ran == []
    assert turn.ended.error is not None
    assert (turn.ended.error.kind, turn.ended.exit_code) == ("content_refused", 1)
    harness.provider.script(text("fine"))
    await harness.turn("something else")


async def test_repeated_call_is_reported_and_stopped(harness: AgentHarness) -> None:
    shuffled = [{"path": "a", "limit": 1}, {"limit": 1, "path": "a"}]
    harness.provider.script(*[call("read", shuffled[number % 2]) for number in range(8)])
    turn = await harness.turn()
    assert len(harness.provider.requests) == 5
    assert "3 times" in harness.results()[2]
    assert "times" not in harness.results()[1]
    assert (turn.ended.cause, turn.ended.exit_code) == ("model_error", 1)
    assert turn.new[-1].calls[0].outcome == "never_started"


async def test_going_back_and_forth_is_stopped_too(harness: AgentHarness) -> None:
    harness.provider.script(*[call("say", {"text": "ab"[number % 2]}) for number in range(20)])
    turn = await harness.turn()
    assert turn.ended.cause == "model_error"
    assert len(harness.provider.requests) <= 10


async def test_ten_different_calls_trip_nothing(harness: AgentHarness) -> None:
    harness.provider.script(*[call("say", {"text": str(number)}) for number in range(10)], text("done"))
    turn = await harness.turn()
    assert turn.ended.cause == "done"
    assert not harness.told(Noticed)


async def test_passage_repeated_in_every_answer_is_stopped(harness: AgentHarness) -> None:
    harness.provider.script(*[call("say", {"text": str(number)}, content=PARAGRAPH) for number in range(8)])
    turn = await harness.turn()
    assert len(harness.provider.requests) == 5
    assert "same paragraph" in harness.results()[2]
    assert turn.ended.cause == "model_error"


async def test_a_stream_that_repeats_itself_is_cut(harness: AgentHarness) -> None:
    hold = Hold()
    harness.provider.script(sse(*[delta(f"{PARAGRAPH}\n\n")] * 40, hold, done=False))
    turn = await harness.turn()
    assert turn.ended.cause == "model_error"
    assert turn.ended.error is not None
    assert turn.ended.error.kind == "bad_answer"
    assert await asyncio.to_thread(harness.provider.requests[0].client_gone.wait, 10)


async def test_answers_are_limited_by_number(harness: AgentHarness) -> None:
    harness.limits = Limits(max_turns=2)
    harness.provider.script(*[call("say", {"text": str(number)}, content=f"Step {number}.") for number in range(3)])
    turn = await harness.turn()
    assert (turn.ended.cause, turn.ended.exit_code, turn.ended.num_answers) == ("max_turns", 5, 2)
    assert turn.ended.answer == "Step 1."
    assert harness.say.ran == ["0", "1"]


async def test_finished_answer_at_the_limit_is_a_success(harness: AgentHarness) -> None:
    harness.limits = Limits(max_turns=1)
    harness.provider.script(text("done"))
    assert (await harness.turn()).ended.cause == "done"


async def test_tokens_are_limited_over_all_turns(harness: AgentHarness) -> None:
    harness.limits = Limits(max_tokens=250)
    harness.provider.script(text("one", usage=usage(100, 30)), call("say", {}, usage=usage(100, 30)))
    assert (await harness.turn()).ended.cause == "done"
    turn = await harness.turn("again")
    assert (turn.ended.cause, turn.ended.exit_code) == ("max_tokens", 5)
    assert turn.ended.usage.context_tokens == 130


def endless_words() -> list[dict[str, Any]]:
    return [delta("".join(f"word{number} " for number in range(at, at + 10))) for at in range(0, 1_000, 10)]


async def test_tokens_are_limited_also_within_an_answer(harness: AgentHarness) -> None:
    harness.limits = Limits(max_tokens=400)
    harness.provider.script(text("one", usage=usage(100, 100)), sse(delta("So far. "), *endless_words(), Hold()))
    await harness.turn()
    turn = await harness.turn("again")
    assert (turn.ended.cause, turn.ended.exit_code) == ("max_tokens", 5)
    assert "--max-tokens" in (turn.ended.error.message if turn.ended.error else "")
    assert turn.ended.answer.startswith("So far. ")
    assert turn.ended.usage.estimated
    assert turn.ended.usage.output_tokens >= 200  # how much more depends on what one read of the socket brings
    assert harness.agent.services.account.used.context_tokens >= 400


@pytest.mark.parametrize("field", ["content", "reasoning_content", "arguments"])
async def test_an_answer_without_end_is_stopped(harness: AgentHarness, field: str) -> None:
    def piece(words: str) -> dict[str, Any]:
        if field != "arguments":
            return delta(**{field: words})
        return delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "say", "arguments": words}}])

    pieces = 700 if field == "arguments" else 60  # a call may write many equal rows
    harness.provider.script(sse(*[piece("and on and on " * 50) for _ in range(pieces)], Hold()))
    turn = await harness.turn()
    assert (turn.ended.cause, turn.ended.exit_code) == ("model_error", 1)
    assert "same passage" in (turn.ended.error.message if turn.ended.error else "")


async def test_late_clock_still_spends_the_budget(harness: AgentHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, skipped_s, saved = asyncio.get_running_loop(), 0.0, list[Goal]()
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + skipped_s)

    def skip(event: object) -> None:
        nonlocal skipped_s
        skipped_s += 20 if isinstance(event, TextStreamed) else 0

    async def save(goal: Goal, usage: object) -> None:
        saved.append(goal)

    async def check(command: str) -> Check:
        raise AssertionError

    harness.on_event = skip
    services = replace(harness.agent.services, clock=lambda: 0.0)
    goal = Goal(condition="it works", budget=Limits(max_seconds=20))
    services.goals.policy = GoalPolicy(goal, services, save=save, check=check, attended=False)
    harness.provider.script(sse(delta("So far"), Hold()))
    turn = await harness.turn()
    assert (turn.ended.cause, turn.ended.exit_code, saved[-1].status) == ("max_seconds", 5, "budget")


async def test_time_limit_covers_answers_and_calls(harness: AgentHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    harness.limits = Limits(max_seconds=20)
    loop, skipped_s = asyncio.get_running_loop(), 0.0
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + skipped_s)

    def skip(event: object) -> None:
        nonlocal skipped_s
        skipped_s += 20 if isinstance(event, TextStreamed) else 0

    harness.on_event = skip
    harness.provider.script(sse(delta("So far"), Hold()))
    turn = await harness.turn()
    assert (turn.ended.cause, turn.ended.exit_code, turn.ended.answer) == ("max_seconds", 5, "So far")
    harness.provider.script(call("hang", {"text": "x"}))
    running = asyncio.create_task(harness.turn("again"))
    await harness.hang.begun.wait()
    skipped_s += 20
    turn = await running
    assert turn.ended.cause == "max_seconds"
    assert turn.new[-1].calls[0].outcome == "interrupted"


async def test_a_result_may_end_the_turn(harness: AgentHarness) -> None:
    harness.provider.script(call("finish", {"text": "All done."}))
    turn = await harness.turn()
    assert (turn.ended.cause, turn.ended.answer) == ("done", "All done.")
    assert len(harness.provider.requests) == 1


async def test_failing_store_ends_the_turn_before_anything_follows(harness: AgentHarness) -> None:
    def full(event: Event) -> None:
        if isinstance(event, AnswerEnded):
            raise SessionError("The disk is full.")

    harness.on_event = full
    harness.provider.script(call("say", {"text": "x"}))
    turn = await harness.turn()
    assert (turn.ended.cause, turn.ended.exit_code) == ("session_error", 3)
    assert harness.say.ran == []


async def test_unkept_prompt_was_not_said(harness: AgentHarness) -> None:
    def full(event: Event) -> None:
        if isinstance(event, TurnStarted):
            raise SessionError("The disk is full.")

    harness.on_event = full
    turn = await harness.turn()
    assert (turn.ended.cause, turn.new) == ("session_error", ())


async def test_unkept_word_in_between_keeps_waiting(harness: AgentHarness) -> None:
    def full(event: Event) -> None:
        if isinstance(event, MessageAdded):
            raise SessionError("The disk is full.")

    harness.on_event = full
    harness.agent.services.steering.add(user("wait"))
    turn = await harness.turn()
    assert turn.ended.cause == "session_error"
    assert [message.text for message in harness.agent.services.steering.waiting] == ["wait"]
    assert "wait" not in [message.text for message in turn.new]


async def test_store_failing_midround_keeps_results_in_memory(harness: AgentHarness) -> None:
    def full(event: Event) -> None:
        if isinstance(event, CallEnded):
            raise SessionError("The disk is full.")

    harness.on_event = full
    harness.provider.script(calls(("look", {"text": "1"}), ("look", {"text": "2"})))
    turn = await harness.turn()
    assert turn.ended.cause == "session_error"
    assert "saw 1" in [part.output for part in turn.new[-1].calls]
    harness.on_event = lambda event: None
    harness.provider.script(text("fine"))
    await harness.turn("again")


async def test_known_secrets_do_not_reach_the_model(harness: AgentHarness) -> None:
    harness.provider.script(call("leak", {}), text("done"))
    await harness.turn()
    assert SECRET.encode() not in harness.provider.requests[-1].body
    assert "SECRET_CANARY_" in harness.results()[0]


async def test_a_long_turn_never_rewrites_what_was_sent(harness: AgentHarness) -> None:
    """The provider checks that each request begins with the one before; here every kind of word from the loop is in between."""
    Path("a.txt").write_text("x")
    harness.provider.script(
        sse(finish("stop")),
        *[call("say", {"text": "same"}) for _ in range(4)],
        call("read", '{"path": '),
        call("nothing", {}),
        call("say", {"text": "y"}, finish_reason="length"),
        calls(("read", {"path": "a.txt"}), ("crash", {}), ("fail", {"text": "z"})),
        text("done"),
    )
    turn = await harness.turn()
    assert turn.ended.cause == "done"
    assert len(harness.provider.requests) == 10
    assert len({repr(asked.json["tools"]) for asked in harness.provider.requests}) == 1


async def test_the_turn_reports_its_times(harness: AgentHarness) -> None:
    harness.provider.script(sse(delta("a"), finish("stop")).slow(0.05))
    turn = await harness.turn()
    assert 0.05 <= turn.ended.provider_s <= turn.ended.duration_s < 5


async def test_crashed_history_with_open_calls_is_no_obstacle(harness: AgentHarness) -> None:
    harness.provider.script(call("say", {"text": "x"}), text("one"))
    turn = await harness.turn()
    torn = [replace(part, status="running", outcome=None, output="") for part in turn.messages[1].calls]
    harness.history = (turn.messages[0], turn.messages[1].with_parts(torn))
    harness.provider.forget_prefix()
    harness.provider.script(text("two"))
    await harness.turn("again")
    assert "interrupted" in harness.results()[0]
