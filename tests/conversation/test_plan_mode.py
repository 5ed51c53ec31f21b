"""Plan mode: the model is told, writes are refused, and the user's decision about a plan ends it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.prompts import typed
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text
from wolo.agent.events import CallDenied, CallEnded, Event, ModeChanged, QuestionsAsked
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import ConversationChange, StartOptions
from wolo.places import find_places
from wolo.tools.questions.present_plan import MOST_CHARS, NOTHING_TO_HAND_OVER, plan_steps
from wolo.tools.tool_values import Reply

PLAN = "Make it faster.\n\n1. **Measure** `a.py`\n2. Cache the result in `b.py`\n\nCheck: `pytest -q`"
LONG = " ".join(map(str, range(1_600)))
WRITE = call("write", {"path": "new.txt", "content": "x\n"})


def present(plan: str = PLAN) -> Any:
    return call("present_plan", {"plan": plan})


async def begin(provider: ProviderServer, mode: str = "plan", **given: str | bool) -> Conversation:
    options: dict[str, Any] = {"base_url": provider.base_url, "model": "test-model", "api_key": "key", "sandbox": "off"}
    return await open_conversation(StartOptions(flags={**options, "mode": mode, **given}, attended=True))


async def say(conversation: Conversation, *replies: Reply | None, prompt: str = "go") -> list[Event]:
    """Answers the plans that are presented one by one."""
    events, left = [], iter(replies)
    async for event in conversation.prompt(typed(prompt)):
        events.append(event)
        if isinstance(event, QuestionsAsked):
            reply = next(left)
            conversation.questions.answer(event.id, (reply,) if reply else None)
    return events


def notices(provider: ProviderServer, request: int = -1) -> list[str]:
    contents = (str(each["content"]) for each in provider.requests[request].messages if each["role"] == "user")
    lines = (line for content in contents for line in content.split("\n"))
    return [line for line in lines if line.startswith(("Plan mode:", "The mode is now"))]


def tool_names(provider: ProviderServer, request: int) -> list[str]:
    return [each["function"]["name"] for each in provider.requests[request].json["tools"]]


async def test_mode_is_named_where_it_differs(provider: ProviderServer) -> None:
    provider.script(*(text("ok") for _ in range(6)))
    conversation = await begin(provider, "ask")
    for mode, count in (("ask", 0), ("plan", 1), ("plan", 1), ("edit", 2), ("edit", 2), ("ask", 3)):
        conversation.set_mode(mode)
        await say(conversation)
        assert len(notices(provider)) == count
    assert "read-only" in notices(provider)[0]
    assert "`present_plan`" in notices(provider)[0]
    assert "Plan mode has ended" in notices(provider)[1]
    assert notices(provider)[2] == "The mode is now `ask`: every write and every command asks."
    assert provider.requests[1].messages[-1]["content"].startswith("go\n\nPlan mode:")
    assert [message.text for message in conversation.history if message.is_prompt] == ["go"] * 6
    assert provider.requests[0].json["tools"] == provider.requests[-1].json["tools"]
    await conversation.close()


async def test_resumed_session_knows_the_last_named_mode(provider: ProviderServer) -> None:
    provider.script(text("a"), text("b"), text("c"), text("d"))
    first = await begin(provider)
    await say(first)
    await first.close()
    second = await begin(provider, resume=first.info.session_id)
    await say(second)
    assert len(notices(provider)) == 1
    await second.close()
    third = await begin(provider, "ask", resume=first.info.session_id)
    await say(third)
    assert "Plan mode has ended" in notices(provider)[-1]
    other = await third.reopen(ConversationChange(session=None))
    await say(other)
    assert notices(provider) == []
    await other.close()


async def test_notice_returns_when_compaction_drops_it(provider: ProviderServer) -> None:
    provider.linted = False  # a compaction changes the prefix
    provider.otherwise = text(LONG)
    conversation = await begin(provider, set=["context.window=16000", "compaction.summary=false"])  # type: ignore[arg-type]
    for _ in range(12):
        await say(conversation, prompt=LONG[:4_000])
        assert len(notices(provider)) >= 1
    assert conversation.agent.services.compactor.cut.left_out
    await conversation.close()


async def test_refused_write_is_no_denial(provider: ProviderServer) -> None:
    provider.script(WRITE, call("shell", {"command": "touch new.txt"}), text("fine"))
    conversation = await begin(provider)
    events = await say(conversation)
    assert [event for event in events if isinstance(event, CallDenied)] == []
    assert all("Plan mode is read-only" in result for result in provider.requests[-1].results)
    assert not Path("new.txt").exists()
    await conversation.close()


async def test_agent_limited_to_plan_is_told(provider: ProviderServer) -> None:
    folder = find_places().config / "agents"
    folder.mkdir(parents=True)
    (folder / "planner.md").write_text("---\ndescription: x\nmode: primary\npermissionMode: plan\n---\nYou plan.\n")
    provider.script(WRITE, text("fine"), text("again"))
    conversation = await begin(provider, "auto", agent="planner")
    events = await say(conversation)
    assert "End with the plan as your answer." in notices(provider)[0]
    assert not [event for event in events if isinstance(event, CallDenied)]
    assert "present_plan" not in tool_names(provider, 0)
    conversation.set_mode("edit")  # the agent may still not write
    await say(conversation)
    assert len(notices(provider)) == 1
    await conversation.close()


@pytest.mark.parametrize("mode", ["auto", "edit"])
async def test_approved_plan_switches_mode_and_fills_list(provider: ProviderServer, mode: str) -> None:
    provider.script(present(), WRITE, text("done"), text("next"))
    conversation = await begin(provider)
    events = await say(conversation, Reply((mode,)))
    entered = "edit"  # without a sandbox auto is edit
    assert [event.mode for event in events if isinstance(event, ModeChanged)] == [entered]
    assert conversation.info.mode == entered
    assert Path("new.txt").exists()
    result = provider.requests[1].results[-1]
    assert f"the mode is now `{entered}`" in result
    path = Path(result.partition("saved in ")[2].partition(".md")[0] + ".md")
    assert path.read_text() == PLAN
    assert [item.text for item in conversation.todos()] == ["Measure `a.py`", "Cache the result in `b.py`"]
    await say(conversation)
    assert len(notices(provider)) == 1  # the result names the new mode
    await conversation.close()
    resumed = await begin(provider, entered, resume=conversation.info.session_id)
    assert len(resumed.todos()) == 2
    await resumed.close()


async def test_plan_survives_compaction(provider: ProviderServer) -> None:
    provider.linted = False  # a compaction changes the prefix
    provider.script(present(), text("ok"))
    conversation = await begin(provider, set=["context.window=16000", "compaction.summary=false"])  # type: ignore[arg-type]
    await say(conversation, Reply(("edit",)))
    path = provider.requests[1].results[-1].partition("saved in ")[2].partition(".md")[0] + ".md"
    provider.otherwise = text(LONG)
    for _ in range(12):
        await say(conversation, prompt=LONG[:4_000])
    sent = provider.requests[-1].body.decode()
    assert "present_plan" not in str(provider.requests[-1].messages)
    assert path in sent
    assert "Cache the result" in sent
    assert len(conversation.todos()) == 2
    await conversation.close()


@pytest.mark.parametrize(
    ("reply", "part"),
    [
        (Reply(("keep",), "smaller steps"), "says:\nsmaller steps"),
        (Reply(text="smaller steps"), "says:\nsmaller steps"),
        (Reply(("keep",)), "does not say why"),
        (Reply(("revise",)), "does not say why"),
        (Reply(("revise",), PLAN), "does not say why"),
        (None, "without a decision"),
    ],
)
async def test_plan_mode_continues_without_an_approval(provider: ProviderServer, reply: Reply | None, part: str) -> None:
    provider.script(present(), text("ok"))
    conversation = await begin(provider)
    await say(conversation, reply)
    assert part in provider.requests[1].results[-1]
    assert conversation.info.mode == "plan"
    assert conversation.todos() == ()
    await conversation.close()


async def test_edited_plan_is_asked_about_again_and_counts(provider: ProviderServer) -> None:
    provider.script(present(), text("ok"))
    conversation = await begin(provider)
    events = await say(conversation, Reply(("revise",), "- only this"), Reply(text="edit"))
    assert [event.questions[0].text for event in events if isinstance(event, QuestionsAsked)] == [PLAN, "- only this"]
    assert provider.requests[1].results[-1].endswith("\n\n- only this")
    assert [item.text for item in conversation.todos()] == ["only this"]
    await conversation.close()


async def test_plan_of_the_user_may_be_long(provider: ProviderServer) -> None:
    provider.script(present(), text("ok"))
    conversation = await begin(provider)
    plan = f"1. only this\n{'x' * MOST_CHARS}"
    await say(conversation, Reply(("revise",), plan), Reply(text="edit"))
    result = provider.requests[1].results[-1]
    assert result.endswith("x\n[… 13 more characters are in the file]")
    assert Path(result.partition("saved in ")[2].partition(". Its")[0]).read_text() == plan
    await conversation.close()


async def test_refused_plan_is_kept_as_a_file(provider: ProviderServer) -> None:
    plan = "1. é " + "x" * MOST_CHARS
    provider.script(present(plan), text("ok"))
    conversation = await begin(provider)
    await say(conversation)
    assert Path(provider.requests[1].results[-1].partition("saved in ")[2].partition(": present")[0]).read_text() == plan
    await conversation.close()


async def test_nothing_is_handed_over_outside_plan_mode(provider: ProviderServer) -> None:
    provider.script(present(), text("ok"))
    conversation = await begin(provider, "edit")
    await say(conversation)
    assert provider.requests[1].results == [NOTHING_TO_HAND_OVER]
    await conversation.close()


async def test_two_plans_in_one_answer_ask_once(provider: ProviderServer) -> None:
    provider.script(calls(("present_plan", {"plan": "1. one"}), ("present_plan", {"plan": "1. two"})), text("ok"))
    conversation = await begin(provider)
    events = await say(conversation, Reply(("keep",), "no"))
    assert [event.questions[0].text for event in events if isinstance(event, QuestionsAsked)] == ["1. two"]
    assert provider.requests[1].results[0].startswith("Not shown")
    await conversation.close()


@pytest.mark.parametrize(
    ("plan", "part"), [("", "the plan is empty"), (" \n", "is empty"), (LONG * 150, "characters; 50,000 is the most")]
)
async def test_unusable_plan_is_not_shown(provider: ProviderServer, plan: str, part: str) -> None:
    provider.script(present(plan), text("ok"))
    conversation = await begin(provider)
    events = await say(conversation)
    assert not any(isinstance(event, QuestionsAsked) for event in events)
    assert part in next(event.part.output for event in events if isinstance(event, CallEnded))
    await conversation.close()


async def test_unattended_handover_replays(provider: ProviderServer) -> None:
    provider.script(present(), WRITE, text("done"))
    given = {"base_url": provider.base_url, "model": "test-model", "api_key": "key", "mode": "plan"}
    conversation = await open_conversation(StartOptions(flags=given, attended=False, answers_questions=True))
    await say(conversation, Reply(("revise",), "- only this"), Reply(("edit",)))
    await conversation.close()
    Path("new.txt").unlink()
    done = await asyncio.to_thread(run_wolo, "replay", conversation.info.session_id, "--json")
    assert done.exit_code == 0, done.stdout + done.stderr


async def test_interrupted_panel_leaves_plan_mode_on(provider: ProviderServer) -> None:
    provider.script(present())
    conversation = await begin(provider)
    async for event in conversation.prompt(typed("go")):
        if isinstance(event, QuestionsAsked):
            conversation.interrupt()
    assert "the turn was stopped" in conversation.history[-1].calls[0].output
    assert conversation.info.mode == "plan"
    await conversation.close()


async def test_unsaved_plan_starts_nothing(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.script(present(), text("ok"))
    conversation = await begin(provider, no_session=True)

    def fail(*_: object, **__: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.open", fail)
    async for event in conversation.prompt(typed("go")):
        if isinstance(event, QuestionsAsked):
            conversation.questions.answer(event.id, (Reply(("auto",)),))
    monkeypatch.undo()
    assert "cannot be saved" in provider.requests[1].results[-1]
    assert conversation.info.mode == "plan"
    await conversation.close()


@pytest.mark.parametrize(
    ("plan", "steps"),
    [
        ("1. a\n2) b\n   - detail\n- note", ["a", "b"]),
        ("- [ ] a\n* b", ["a", "b"]),
        ("# Goal\n## First\ntext\n## Second ##", ["First", "Second"]),
        ("```sh\n1. no\n```\n1. yes", ["yes"]),
        ("just prose", []),
        ("1. " + "x" * 600, ["x" * 499 + "…"]),
        ("\n".join(f"{n}. step" for n in range(150)), ["step"] * 100),
    ],
)
def test_steps_of_a_plan_are_its_list(plan: str, steps: list[str]) -> None:
    assert [item.text for item in plan_steps(plan)] == steps
