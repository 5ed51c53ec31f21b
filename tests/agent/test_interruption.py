"""Stopping an answer: at once, with the text kept and the session valid."""

from __future__ import annotations

import asyncio

import pytest

from tests.agent.conftest import AgentHarness
from tests.fakes.replies import Hold, Reply, delta, error, raw, sse, text
from wolo.agent.events import AnswerEnded, AttemptFailed, Event, RequestStarted, TextStreamed


async def interrupt_on(harness: AgentHarness, kind: type[Event]) -> None:
    harness.on_event = lambda event: harness.agent.interrupt() if isinstance(event, kind) else None
    turn = await harness.turn()
    assert (turn.ended.cause, turn.ended.exit_code) == ("interrupted", 130)
    harness.on_event = lambda event: None


async def test_received_text_is_kept_and_the_connection_closed(harness: AgentHarness) -> None:
    harness.provider.script(sse(delta("Half a sen"), Hold()))
    await interrupt_on(harness, TextStreamed)
    assert await asyncio.to_thread(harness.provider.requests[0].client_gone.wait, 10)
    (kept,) = harness.told(AnswerEnded)
    assert (kept.message.text, kept.message.finish_reason, kept.message.finished) == ("Half a sen", "interrupted", False)
    harness.provider.script(text("tence."))
    await harness.turn("go on")
    assert harness.provider.requests[-1].messages[-2] == {"role": "assistant", "content": "Half a sen"}


async def test_half_written_call_leaves_no_trace(harness: AgentHarness) -> None:
    begun = delta(tool_calls=[{"index": 0, "id": "call_x", "function": {"name": "say", "arguments": '{"te'}}])
    harness.provider.script(sse(delta("Writing."), begun, Hold()))
    await interrupt_on(harness, TextStreamed)
    harness.provider.script(text("fine"))
    turn = await harness.turn("go on")
    assert not any(message.calls for message in turn.messages)


@pytest.mark.parametrize("silent", [raw(Hold()), sse(Hold()), sse(": ping", Hold())], ids=["no head", "no body", "only pings"])
async def test_a_silent_provider_can_be_left_at_once(harness: AgentHarness, silent: Reply) -> None:
    harness.provider.script(silent)
    waiting = asyncio.create_task(harness.turn())
    await asyncio.to_thread(harness.provider.wait_for_requests, 1)
    harness.agent.interrupt()
    turn = await waiting
    assert turn.ended.cause == "interrupted"
    assert [message.role for message in turn.new] == ["user"]
    harness.provider.script(text("fine"))
    await harness.turn("go on")


async def test_wait_for_another_attempt_ends_at_once(harness: AgentHarness) -> None:
    harness.provider.script(error(429, {"error": {"message": "slow down"}}, {"retry-after": "60"}))
    harness.longest_wait_s = 3600
    await interrupt_on(harness, AttemptFailed)


async def test_an_interrupt_before_the_request_sends_nothing_more(harness: AgentHarness) -> None:
    await interrupt_on(harness, RequestStarted)
    assert harness.provider.requests == []
