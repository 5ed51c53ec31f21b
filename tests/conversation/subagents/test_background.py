"""Background tasks: their results as messages, their end, and tasks that are resumed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conversation.subagents.test_subagents import PRICED, begun, events_of, is_child, of, sessions, tools_of
from tests.fakes.prompts import typed
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, text, usage
from wolo.agent.events import ApprovalAsked, CallEnded, Event, MessageAdded, TaskEnded, TaskStarted, TurnEnded
from wolo.commands.command import CommandContext, ShowText, dispatch
from wolo.commands.table import load_commands
from wolo.conversation.conversation import Conversation
from wolo.messages.message import NUDGE, TASK_ENDED

BACKGROUND = {"agent": "explore", "background": True}


def role(asked: Asked) -> str:
    return "child" if is_child(asked) else "parent"


class Script:
    """Answers the parent and the children separately, in whatever order they ask."""

    def __init__(self, provider: ProviderServer, parent: list[Any], child: list[Any]) -> None:
        self._left = {"parent": parent, "child": child}
        provider.otherwise = lambda asked: self._left[role(asked)].pop(0)


async def said(conversation: Conversation, line: str) -> str:
    outcome = await dispatch(line, CommandContext(conversation, load_commands()))
    assert isinstance(outcome, ShowText)
    return outcome.text


async def test_turn_continues_and_awaits_the_result_before_ending(provider: ProviderServer) -> None:
    hold = Hold()
    parent = [call("task", {"prompt": "look", **BACKGROUND}), call("glob", {"pattern": "*"}), text("Waiting."), text("It is 7.")]
    Script(provider, parent, [sse(hold, delta("Seven."), finish("stop", usage()))])

    async with begun(provider, PRICED) as conversation:

        def let_go(event: Event) -> None:
            if isinstance(event, CallEnded) and event.part.tool == "glob":
                hold.release()

        events = await events_of(conversation, on=let_go)
        history = conversation.history
    (started,), (ended,) = of(TaskStarted, events), of(TaskEnded, events)
    assert (started.background, ended.background, ended.ended) == (1, 1, "done")
    first = of(CallEnded, events)[0].part
    assert first.output.startswith(f"Started as background task 1, id {started.session_id}. Its result comes as a message")
    (told,) = [event.message for event in of(MessageAdded, events) if event.message.metadata[NUDGE] == TASK_ENDED]
    assert told.text.startswith("[Background task 1 (explore: look) has ended: done]\nSeven.\n[explore: 1 answer · 0 calls")
    assert [message.text for message in history if message.id == told.id] == [told.text]
    (turn,) = of(TurnEnded, events)
    assert (turn.answer, turn.num_answers) == ("It is 7.", 5)
    assert turn.usage.input_tokens == 100 * len(provider.requests)
    assert turn.usage.cost.total == pytest.approx(0.00012 * len(provider.requests))
    assert next(info for info in sessions() if not info.agent).tokens == 110 * len(provider.requests)


async def test_parallel_tasks_are_each_reported_once(provider: ProviderServer) -> None:
    tasks = [call("task", {"prompt": f"look {number}", **BACKGROUND}) for number in range(3)]
    Script(provider, [*tasks, *[text("So far.")] * 4], [text("Seen.")] * 3)
    async with begun(provider) as conversation:
        events = await events_of(conversation)
        await events_of(conversation, "more")
        told = [message for message in conversation.history if message.metadata.get(NUDGE) == TASK_ENDED]
        assert "task 2 (explore: look 1): done · 0 calls" in await said(conversation, "/tasks")
        assert (await said(conversation, "/tasks output 3")).startswith("Seen.")
    assert len(told) == len({message.text for message in told}) == 3
    assert len(of(TaskEnded, events)) == 3


async def test_result_between_turns_waits_for_next_prompt(provider: ProviderServer) -> None:
    hold, heard, ended = Hold(), [], asyncio.Event()

    def listen(event: Event) -> None:
        heard.append(event)
        if isinstance(event, TaskEnded):
            ended.set()

    parent = [call("task", {"prompt": "look", **BACKGROUND}), text("I started it."), text("It is 7.")]
    Script(provider, parent, [sse(hold, delta("Seven."), finish("stop", usage()))])
    async with begun(provider, attended=True) as conversation:
        conversation.listen_while_idle(listen)
        (turn,) = of(TurnEnded, await events_of(conversation))
        assert turn.answer == "I started it."
        async with asyncio.timeout(60):
            while "waiting for the model" not in await said(conversation, "/tasks"):
                await asyncio.sleep(0.01)
        assert "explore: waiting for the model" in await said(conversation, "/agents")
        hold.release()
        async with asyncio.timeout(60):
            await ended.wait()
            while not conversation.subagents.has_news:
                await conversation.subagents.wait()
        (turn,) = of(TurnEnded, await events_of(conversation, "and?"))
    assert turn.answer == "It is 7."
    assert [message["content"].partition("\n")[2][:6] for message in provider.requests[-1].messages[-2:]] == ["", "Seven."]
    assert turn.usage.input_tokens == 200


async def test_one_is_cancelled_and_its_session_stays(provider: ProviderServer) -> None:
    parent = [call("task", {"prompt": "look", **BACKGROUND}), text("I started it."), text("Then not.")]
    Script(provider, parent, [sse(delta("I have"), done=False, ending="stall")])
    async with begun(provider, attended=True) as conversation:
        conversation.listen_while_idle(lambda event: None)
        await events_of(conversation)
        assert (await said(conversation, "/tasks cancel")).startswith("task 1 (explore: look): interrupted")
        await events_of(conversation, "and?")
    assert "has ended: interrupted]" in str(provider.requests[-1].messages)
    assert {info.agent for info in sessions()} == {"", "explore"}


async def test_background_approval_reaches_the_user_between_turns(provider: ProviderServer) -> None:
    heard: list[ApprovalAsked] = []
    asked, hold = asyncio.Event(), Hold()

    def listen(event: Event) -> None:
        if isinstance(event, ApprovalAsked):
            heard.append(event)
            asked.set()

    write = call("write", {"path": "new.txt", "content": "x"})
    parent = [call("task", {"prompt": "make", "background": True}), text("I started it."), text("It is there.")]
    Script(provider, parent, [sse(hold, *write.pieces), text("Made.")])
    async with begun(provider, attended=True, mode="ask") as conversation:
        conversation.listen_while_idle(listen)
        await events_of(conversation)
        hold.release()
        async with asyncio.timeout(60):
            await asked.wait()
            assert conversation.is_asking
            async for event in conversation.ask_again():
                if isinstance(event, ApprovalAsked):
                    assert event.agent == "general"
                    conversation.answer(event.id, allowed=True)
            assert conversation.subagents.background is not None
            while conversation.subagents.is_running:
                await conversation.subagents.wait()
        await events_of(conversation, "and?")
    assert Path("new.txt").exists()
    assert "Made." in str(provider.requests[-1].messages)


async def test_a_task_is_resumed_with_its_memory(provider: ProviderServer) -> None:
    parent = [call("task", {"prompt": "look", "agent": "explore"})]
    Script(provider, parent, [text("Seven."), text("Because.")])

    def resume(asked: Asked) -> Any:
        id = asked.results[0].rpartition("id ")[2].rstrip("]")
        return call("task", {"prompt": "why?", "resume": id})

    answers: list[Any] = [parent[0], resume, text("Done.")]
    children = [text("Seven."), text("Because.")]

    def answer(asked: Asked) -> Any:
        reply = (children if is_child(asked) else answers).pop(0)
        return reply(asked) if callable(reply) else reply

    provider.otherwise = answer
    async with begun(provider) as conversation:
        await events_of(conversation)
    first, second = (asked for asked in provider.requests if is_child(asked))
    assert second.messages[: len(first.messages)] == first.messages
    assert [message["content"] for message in second.messages[1:]] == ["look", "Seven.", "why?"]
    assert tools_of(second) == tools_of(first) == ["read", "grep", "glob", "fetch"]
    assert len([info for info in sessions() if info.agent]) == 1


@pytest.mark.parametrize("id", ["session_unknown", "explore"])
async def test_missing_task_cannot_be_resumed(provider: ProviderServer, id: str) -> None:
    provider.script(call("task", {"prompt": "why?", "resume": id}), text("Then not."))
    async with begun(provider) as conversation:
        (ended,) = of(CallEnded, await events_of(conversation))
    assert ended.part.outcome != "ok"
    assert "There is no task" in ended.part.output


async def test_abandoned_task_is_interrupted_in_the_next_process(provider: ProviderServer) -> None:
    parent = [call("task", {"prompt": "look", **BACKGROUND}), text("I started it."), text("I know."), text("Yes.")]
    Script(provider, parent, [sse(delta("I have"), done=False, ending="stall")])
    async with begun(provider, attended=True) as conversation:
        conversation.listen_while_idle(lambda event: None)
        await events_of(conversation)
        id = conversation.info.session_id
    provider.forget_prefix()
    async with begun(provider, resume=id) as conversation:
        await events_of(conversation, "and?")
        await events_of(conversation, "sure?")
        told = [message.text for message in conversation.history if message.metadata.get(NUDGE) == TASK_ENDED]
    assert len(told) == 1
    assert "(explore) was interrupted: wolo ended before it did." in told[0]


async def test_no_more_than_six_run_in_the_background(provider: ProviderServer) -> None:
    hold = Hold()
    children = [sse(hold, delta("Seen."), finish("stop", usage())) for _ in range(6)]
    tasks = [call("task", {"prompt": f"look {number}", **BACKGROUND}) for number in range(7)]
    Script(provider, [*tasks, text("Enough.")], children)
    async with begun(provider, attended=True) as conversation:
        conversation.listen_while_idle(lambda event: None)
        ended = of(CallEnded, await events_of(conversation))
        hold.release()
    assert [event.part.outcome for event in ended] == ["ok"] * 6 + ["error"]
    assert "6 background tasks run already" in ended[-1].part.output


async def test_run_over_budget_ends_its_tasks(provider: ProviderServer) -> None:
    parent = [call("task", {"prompt": "look", **BACKGROUND}), text("I wait.")]
    Script(provider, parent, [sse(delta("I have"), done=False, ending="stall")])
    async with begun(provider, "limits.max_seconds=2") as conversation:
        events = await events_of(conversation)
    assert of(TurnEnded, events)[0].cause == "max_seconds"
    assert of(TaskEnded, events)[0].ended == "interrupted"


async def test_task_resumes_from_memory_without_a_store(provider: ProviderServer) -> None:
    answers: list[Any] = [
        call("task", {"prompt": "look", "agent": "explore"}),
        lambda asked: call("task", {"prompt": "why?", "resume": asked.results[0].rpartition("id ")[2].rstrip("]")}),
        text("Done."),
    ]
    children = [text("Seven."), text("Because.")]

    def answer(asked: Asked) -> Any:
        reply = (children if is_child(asked) else answers).pop(0)
        return reply(asked) if callable(reply) else reply

    provider.otherwise = answer
    async with begun(provider, no_session=True) as conversation:
        async for _ in conversation.prompt(typed("go")):
            pass
    last = [asked for asked in provider.requests if is_child(asked)][-1]
    assert [message["content"] for message in last.messages[1:]] == ["look", "Seven.", "why?"]
