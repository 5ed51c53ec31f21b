"""Words said while the agent works: they come right after the running call, and the rest of the calls is set aside."""

from __future__ import annotations

import asyncio

from tests.agent.conftest import Stage
from tests.fakes.replies import Hold, call, calls, delta, sse, text
from wolo.agent.events import CallStarted, Event, MessageAdded, TextStreamed
from wolo.messages.message import Message, user


def steer_on(stage: Stage, kind: type[Event], words: Message) -> None:
    def hear(event: Event) -> None:
        if isinstance(event, kind):
            stage.on_event = lambda event: None
            stage.agent.services.steering.add(words)

    stage.on_event = hear


async def test_it_follows_the_results_of_the_running_call(stage: Stage) -> None:
    stage.provider.script(call("say", {"text": "one"}), text("As you wish."))
    steer_on(stage, CallStarted, user("rather in French"))
    turn = await stage.turn()
    assert [message["role"] for message in stage.provider.requests[1].messages[-3:]] == ["assistant", "tool", "user"]
    assert stage.provider.requests[1].messages[-1]["content"] == "rather in French"
    assert (turn.ended.cause, turn.ended.answer) == ("done", "As you wish.")
    assert [event.message.text for event in stage.told(MessageAdded)] == ["rather in French"]


async def test_calls_behind_the_running_one_are_set_aside(stage: Stage) -> None:
    stage.provider.script(calls(("say", {"text": "one"}), ("say", {"text": "two"}), ("say", {"text": "three"})), text("Yes."))
    steer_on(stage, CallStarted, user("stop that"))
    await stage.turn()
    assert stage.say.ran == ["one"]
    first, *rest = stage.results(1)
    assert first == "said one"
    assert len(rest) == 2
    assert all("Not run: the user said something" in each for each in rest)


async def test_what_is_said_while_the_last_answer_comes_goes_on_with_the_turn(stage: Stage) -> None:
    hold = Hold()
    stage.provider.script(sse(delta("Do"), hold, delta("ne.", finish_reason="stop")), text("Added."))
    steer_on(stage, TextStreamed, user("and add tests"))
    stage.provider.script()
    waiting = asyncio.create_task(stage.turn())
    await asyncio.to_thread(hold.wait_until_reached)
    hold.release()
    turn = await waiting
    assert turn.ended.answer == "Added."
    assert [message.role for message in turn.new] == ["user", "assistant", "user", "assistant"]
    assert [message.is_prompt for message in turn.new] == [True, False, False, False]
    assert turn.new[2].is_from_user


async def test_a_word_can_be_taken_back_until_it_is_heard(stage: Stage) -> None:
    words = user("never mind")
    stage.provider.script(call("say", {"text": "one"}), text("Done."))

    def hear(event: Event) -> None:
        if isinstance(event, CallStarted):
            stage.agent.services.steering.add(words)
            assert stage.agent.services.steering.withdraw(words.id)
            assert not stage.agent.services.steering.withdraw(words.id)

    stage.on_event = hear
    await stage.turn()
    assert stage.told(MessageAdded) == []


async def test_what_an_interrupted_turn_did_not_hear_is_given_back(stage: Stage) -> None:
    stage.provider.script(sse(delta("Half"), Hold()))

    def hear(event: Event) -> None:
        if isinstance(event, TextStreamed):
            stage.agent.services.steering.add(user("one"))
            stage.agent.services.steering.add(user("two"))
            stage.agent.interrupt()

    stage.on_event = hear
    turn = await stage.turn()
    assert turn.ended.cause == "interrupted"
    assert [message.text for message in stage.agent.services.steering.take_all()] == ["one", "two"]
