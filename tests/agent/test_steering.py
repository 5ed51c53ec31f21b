"""Words said while the agent works: they come right after the running call, and the rest of the calls is set aside."""

from __future__ import annotations

import asyncio

from tests.agent.conftest import AgentHarness
from tests.fakes.replies import Hold, call, calls, delta, sse, text
from wolo.agent.events import CallStarted, Event, MessageAdded, TextStreamed
from wolo.messages.message import Message, user


def steer_on(harness: AgentHarness, kind: type[Event], words: Message) -> None:
    def hear(event: Event) -> None:
        if isinstance(event, kind):
            harness.on_event = lambda event: None
            harness.agent.services.steering.add(words)

    harness.on_event = hear


async def test_it_follows_the_results_of_the_running_call(harness: AgentHarness) -> None:
    harness.provider.script(call("say", {"text": "one"}), text("As you wish."))
    steer_on(harness, CallStarted, user("rather in French"))
    turn = await harness.turn()
    assert [message["role"] for message in harness.provider.requests[1].messages[-3:]] == ["assistant", "tool", "user"]
    assert harness.provider.requests[1].messages[-1]["content"] == "rather in French"
    assert (turn.ended.cause, turn.ended.answer) == ("done", "As you wish.")
    assert [event.message.text for event in harness.told(MessageAdded)] == ["rather in French"]


async def test_calls_behind_the_running_one_are_set_aside(harness: AgentHarness) -> None:
    harness.provider.script(calls(("say", {"text": "one"}), ("say", {"text": "two"}), ("say", {"text": "three"})), text("Yes."))
    steer_on(harness, CallStarted, user("stop that"))
    await harness.turn()
    assert harness.say.ran == ["one"]
    first, *rest = harness.results(1)
    assert first == "said one"
    assert len(rest) == 2
    assert all("Not run: the user said something" in each for each in rest)


async def test_text_during_the_last_answer_continues_the_turn(harness: AgentHarness) -> None:
    hold = Hold()
    harness.provider.script(sse(delta("Do"), hold, delta("ne.", finish_reason="stop")), text("Added."))
    steer_on(harness, TextStreamed, user("and add tests"))
    harness.provider.script()
    waiting = asyncio.create_task(harness.turn())
    await asyncio.to_thread(hold.wait_until_reached)
    hold.release()
    turn = await waiting
    assert turn.ended.answer == "Added."
    assert [message.role for message in turn.new] == ["user", "assistant", "user", "assistant"]
    assert [message.is_prompt for message in turn.new] == [True, False, False, False]
    assert turn.new[2].is_from_user


async def test_word_is_withdrawable_until_heard(harness: AgentHarness) -> None:
    words = user("never mind")
    harness.provider.script(call("say", {"text": "one"}), text("Done."))

    def hear(event: Event) -> None:
        if isinstance(event, CallStarted):
            harness.agent.services.steering.add(words)
            assert harness.agent.services.steering.withdraw(words.id)
            assert not harness.agent.services.steering.withdraw(words.id)

    harness.on_event = hear
    await harness.turn()
    assert harness.told(MessageAdded) == []


async def test_unheard_text_of_interrupted_turn_is_given_back(harness: AgentHarness) -> None:
    harness.provider.script(sse(delta("Half"), Hold()))

    def hear(event: Event) -> None:
        if isinstance(event, TextStreamed):
            harness.agent.services.steering.add(user("one"))
            harness.agent.services.steering.add(user("two"))
            harness.agent.interrupt()

    harness.on_event = hear
    turn = await harness.turn()
    assert turn.ended.cause == "interrupted"
    assert [message.text for message in harness.agent.services.steering.take_all()] == ["one", "two"]
