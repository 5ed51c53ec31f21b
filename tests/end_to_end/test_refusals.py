"""A No holds for its prompt, a closed question decides nothing, and Never is a rule: on every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.acp_client import editor
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.screen import pty_wolo
from tests.frontends.server.running_server import kind, running
from wolo import Agent

TOUCH = call("shell", {"command": "touch made"})
ASKING = "› 3 No"
"""The panel takes keys."""


def saved(isolated: Path) -> str:
    path = isolated / "wolo/config/permissions.toml"
    return path.read_text() if path.exists() else ""


def test_keyboard_denial_ends_with_its_prompt(provider: ProviderServer) -> None:
    provider.script(TOUCH, TOUCH, text("First."), TOUCH, text("Second."))
    with pty_wolo("--mode", "edit", *provider.flags) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("go on")
        terminal.wait_for(ASKING)
        terminal.type("n")
        terminal.wait_for("First.")
        assert "The user has already denied this exact call" in provider.requests[2].results[-1]
        terminal.enter("now really")
        terminal.wait_for(ASKING)
        terminal.type("y")
        terminal.wait_for("Second.")
    assert Path("made").exists()


def test_never_at_the_keyboard_saves_a_deny_rule(provider: ProviderServer, isolated: Path) -> None:
    provider.script(TOUCH, text("First."), call("shell", {"command": "true && touch made"}), text("Second."))
    with pty_wolo("--mode", "edit", *provider.flags) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("go on")
        terminal.wait_for(ASKING)
        terminal.type("a")
        terminal.wait_for("“Never” denies shell:touch made")
        terminal.type("v")
        terminal.wait_for("First.")
        terminal.enter("now really")
        terminal.wait_for("Second.")
    assert "denied by the rule shell:touch made" in provider.requests[-1].results[-1]
    assert 'deny = ["shell:touch made"]' in saved(isolated)
    provider.script(TOUCH, text("Third."))
    ended = run_wolo("-p", "--json", "--mode", "auto", *provider.flags, "go on")
    assert "touch made" in str(json.loads(ended.stdout)["permission_denials"])
    assert not Path("made").exists()


@pytest.mark.parametrize("answer", ["v", "never"])
def test_never_on_a_line_saves_a_deny_rule(provider: ProviderServer, isolated: Path, answer: str) -> None:
    provider.script(TOUCH, text("I see."))
    with pty_wolo("--mode", "edit", *provider.flags, "go on") as terminal:
        terminal.wait_for("v: never, denies shell:touch made")
        terminal.wait_for("or type why not ›")
        terminal.enter(answer)
        assert terminal.wait_for_exit() == 0
    assert 'deny = ["shell:touch made"]' in saved(isolated)


def test_escape_at_the_keyboard_is_no_refusal(provider: ProviderServer) -> None:
    provider.script(TOUCH, TOUCH, text("Second."))
    with pty_wolo("--mode", "edit", *provider.flags) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("go on")
        terminal.wait_for(ASKING)
        terminal.press("escape")
        terminal.wait_for("Interrupted.")
        terminal.wait_for_prompt()
        terminal.enter("now really")
        terminal.wait_for(ASKING)
        terminal.type("y")
        terminal.wait_for("Second.")
    assert Path("made").exists()


@pytest.mark.parametrize(("answer", "asks"), [("reject", [1, 1]), (None, [2, 2]), ("never", [1, 0])])
async def test_editor_answer_lasts_as_stated(
    provider: ProviderServer, isolated: Path, answer: str | None, asks: list[int]
) -> None:
    provider.script(TOUCH, TOUCH, text("First."), TOUCH, TOUCH, text("Second."))
    counts: list[int] = []
    async with editor(*provider.flags, "--mode", "edit") as client:
        client.choose = lambda asked, options: answer
        session = (await client.new(isolated / "work")).session_id
        for prompt in ("go on", "again"):
            await client.say(session, prompt)
            counts.append(len(client.asked))
            client.asked.clear()
    assert counts == asks
    assert saved(isolated).count("shell:touch made") == (answer == "never")
    told = provider.requests[1].results[-1]
    assert ("closed without an answer" in told) == ("user denied" not in told and "by the user" not in told) == (answer is None)


@pytest.mark.parametrize(("decision", "asks"), [("no", 2), ("never", 1)])
def test_server_answer_lasts_as_stated(provider: ProviderServer, isolated: Path, decision: str, asks: int) -> None:
    provider.script(TOUCH, TOUCH, text("First."), TOUCH, text("Second."))
    with running(provider) as server:
        id = server.new(mode="edit")
        events = server.events(id)
        for prompt in ("go on", "again"):
            seen = len(events.lines)
            server.prompt(id, prompt)
            asked = events.wait(lambda line: kind(line) in ("approval", "result"), after=seen)
            if kind(asked) == "approval":
                assert asked["decisions"] == ["once", "session", "always", "no", "never"]
                assert asked["never"] == "shell:touch made"
                server.post(f"/api/sessions/{id}/approve", call_id=asked["call_id"], decision=decision)
            events.result(after=seen)
        assert len(events.of("approval")) == asks
    assert ("deny" in saved(isolated)) == (decision == "never")


@pytest.mark.parametrize(("decision", "asks"), [(False, 2), ("dismiss", 3), ("never", 1)])
async def test_program_answer_lasts_as_stated(provider: ProviderServer, isolated: Path, decision: Any, asks: int) -> None:
    provider.script(TOUCH, TOUCH, text("First."), TOUCH, text("Second."))
    asked: list[Any] = []
    async with Agent(
        f"custom/{MODEL}",
        base_url=provider.base_url,
        api_key=KEY,
        mode="edit",
        on_approval=lambda request: asked.append(request) or decision,
    ) as agent:
        first = await agent.run("go on")
        await agent.run("again")
    assert len(asked) == asks
    assert len(first.denials) == 2
    assert ("deny" in saved(isolated)) == (decision == "never")


def test_a_resumed_session_has_forgotten_a_no(provider: ProviderServer) -> None:
    provider.script(TOUCH, text("First."), TOUCH, text("Second."))
    for more, answer in (((), "n"), (("-c",), "y")):
        with pty_wolo("--mode", "edit", *provider.flags, *more, "go on") as terminal:
            terminal.wait_for("or type why not ›")
            terminal.enter(answer)
            assert terminal.wait_for_exit() == 0
    assert Path("made").exists()


def test_refusal_holds_for_subagents_of_its_prompt(provider: ProviderServer) -> None:
    task = call("task", {"prompt": "try it", "description": "try"})
    provider.script(TOUCH, task, TOUCH, text("Refused too."), text("Done."))
    with pty_wolo("--mode", "edit", *provider.flags, "go on") as terminal:
        terminal.wait_for("or type why not ›")
        terminal.enter("n")
        assert terminal.wait_for_exit() == 4
        assert terminal.times("or type why not ›") == 1
    assert any("already denied this exact call" in result for asked in provider.requests for result in asked.results)
    assert not Path("made").exists()
