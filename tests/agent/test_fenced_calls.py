"""A call in a code fence behind other text may be an example: only a person's own yes lets it run, in every mode."""

from __future__ import annotations

import json

import pytest

from tests.agent.conftest import AgentHarness
from tests.fakes.replies import call, text
from wolo.agent.events import ApprovalAsked, ApprovalGiven, CallDenied, CallStarted
from wolo.guard.modes import MODES
from wolo.guard.rules import parse_rule

OBJECT = json.dumps({"name": "command", "arguments": {"text": "make"}})
FENCED = f"Models of that family write:\n\n```json\n{OBJECT}\n```"


def asked_for(harness: AgentHarness, *, allowed: bool) -> list[ApprovalAsked]:
    asked: list[ApprovalAsked] = []

    async def answer(question: ApprovalAsked) -> ApprovalGiven:
        asked.append(question)
        return ApprovalGiven(id=question.id, allowed=allowed, scope="session" if allowed else "once")

    harness.person = answer
    return asked


@pytest.mark.parametrize("mode", MODES)
async def test_headless_it_does_not_run_in_any_mode(harness: AgentHarness, mode: str) -> None:
    harness.mode = mode
    harness.rules = [parse_rule("shell:make", "allow")]
    harness.provider.script(text(FENCED), text("It was an example."))
    turn = await harness.turn()
    assert harness.command.ran == []
    assert not harness.told(CallStarted)
    assert len(harness.told(CallDenied)) == (mode != "plan")  # which refuses it by itself
    assert ("Plan mode is read-only" if mode == "plan" else "without a fence") in harness.results()[0]
    assert turn.new[1].text == FENCED


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "plan"])
async def test_person_is_asked_in_every_mode_each_time(harness: AgentHarness, mode: str) -> None:
    harness.mode = mode
    harness.rules = [parse_rule("shell:make", "allow")]
    asked = asked_for(harness, allowed=True)
    harness.provider.script(text(FENCED), text(FENCED), text("Done."))
    await harness.turn()
    assert harness.command.ran == ["make", "make"]
    assert ["example" in question.reason for question in asked] == [True, True]
    assert {question.rule for question in asked} == {""}, "no rule would hold for the next one"


async def test_reading_tools_are_asked_about_too(harness: AgentHarness) -> None:
    harness.mode = "yolo"
    for tool in ("look", "say"):
        fenced = FENCED.replace("command", tool)
        harness.provider.script(text(fenced), text("Then not."))
        await harness.turn()
    assert harness.look.ran == harness.say.ran == []


async def test_no_leaves_the_answer_as_written(harness: AgentHarness) -> None:
    asked = asked_for(harness, allowed=False)
    harness.provider.script(text(FENCED), text("As you like."))
    turn = await harness.turn()
    assert len(asked) == 1
    assert harness.command.ran == []
    assert turn.new[1].text == FENCED


async def test_once_made_by_itself_the_mode_decides(harness: AgentHarness) -> None:
    harness.mode = "yolo"
    harness.provider.script(text(FENCED), text(OBJECT), call("command", {"text": "ls"}), text("Done."))
    await harness.turn()
    assert harness.command.ran == ["make", "ls"]


async def test_value_with_swallowed_mark_is_reported_and_skipped(harness: AgentHarness) -> None:
    harness.mode = "yolo"
    swallowed = "<function=write><parameter=path>a.txt\n<parameter=content>x</parameter></function>"
    harness.provider.script(text(swallowed), text("I see."))
    await harness.turn()
    assert "`path` holds the mark of another argument" in harness.results()[0]
    assert not harness.told(CallStarted)
