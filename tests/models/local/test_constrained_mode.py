"""Constrained mode: what is asked and enforced, what becomes of the steps, and how a model that cannot do it ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, error, text
from tests.fakes.turns import PromptRunner
from tests.models.local.test_simple_mode import cut_off
from wolo.agent.agent import Turn
from wolo.agent.events import Noticed
from wolo.messages.message import NAMED_MODE, Message, nudge, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.models.catalog import Catalog
from wolo.models.client import HttpModelClient
from wolo.models.format_selection import format_of
from wolo.models.http.http_transport import HttpTransport
from wolo.models.local.constrained_texts import ARGUMENTS, fit_window, schema, system_prompt
from wolo.models.local.driver import LocalDriver
from wolo.models.local.driving import force_mode
from wolo.models.local.local_chat import ChatServer, LocalChat
from wolo.models.probe_cache import ServerFacts
from wolo.models.provider import ModelChoice
from wolo.models.tokens import estimate_text
from wolo.tools.questions.present_plan import mode_notice


class Script:
    """A scripted server under constrained mode, with real tools."""

    def __init__(self, server: ProviderServer, directory: Path) -> None:
        self.server = server
        self.server.linted = False  # contents are asked for with a given start
        self.transport = HttpTransport({})
        choice = force_mode(Catalog({}).find("custom/m-4b", base_url=server.base_url), "constrained")
        facts = ServerFacts(kind="llama.cpp", parameters=4_000_000_000, context=4096)
        address = ChatServer(url=server.base_url.removesuffix("/v1"), headers={}, model="m", label=choice.label, facts=facts)
        self.runner = PromptRunner(LocalDriver(LocalChat(self.transport, address), choice, Path.cwd(), self._plain), directory)

    def _plain(self, choice: ModelChoice) -> HttpModelClient:
        return HttpModelClient(choice, format_of(choice), self.transport)

    async def turn(self, prompt: str, *replies: Reply) -> Turn:
        self.server.script(*replies)
        return await self.runner.ask(prompt)


@pytest.fixture
async def script(provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Script]:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    played = Script(provider, tmp_path)
    yield played
    await played.transport.close()


def step(**said: Any) -> Reply:
    return text(json.dumps(said))


async def test_a_file_is_written_run_and_reported(script: Script) -> None:
    turn = await script.turn(
        "write hello.py and run it",
        step(call="write", path="hello.py"),
        text('```python\nprint("hi")\n```'),
        step(call="shell", command="python3 hello.py"),
        step(say="It prints hi."),
    )
    assert (turn.ended.answer, turn.ended.exit_code) == ("It prints hi.", 0)
    assert Path("hello.py").read_text() == 'print("hi")\n'
    first, content = script.server.requests[:2]
    assert first.json["response_format"]["json_schema"]["schema"]["anyOf"][0]["properties"] == {"say": {"type": "string"}}
    assert "response_format" not in content.json
    calls = [call for message in turn.new for call in message.calls]
    assert [call.tool for call in calls] == ["write", "shell"]
    assert "hi" in calls[1].output


async def test_existing_file_is_read_before_change(script: Script) -> None:
    Path("a.py").write_text("X = 1\n")
    turn = await script.turn(
        "set X to 2",
        step(call="edit", path="a.py"),
        step(call="edit", path="a.py"),
        text("```python\nX = 2\n```"),
        step(say="Done."),
    )
    assert [call.tool for message in turn.new for call in message.calls] == ["read", "write"]
    assert Path("a.py").read_text() == "X = 2\n"
    assert turn.ended.exit_code == 0


async def test_a_long_file_is_changed_in_place(script: Script) -> None:
    Path("a.py").write_text("".join(f"V{at} = {at}\n" for at in range(300)))
    await script.turn(
        "V7 must be 8",
        step(call="read", path="a.py"),
        step(call="edit", path="a.py"),
        text("<<<<<<< OLD\nV7 = 7\n=======\nV7 = 8\n>>>>>>> NEW"),
        step(say="Done."),
    )
    assert Path("a.py").read_text().splitlines()[7] == "V7 = 8"


async def test_success_without_an_effect_is_a_failure(script: Script) -> None:
    turn = await script.turn(
        "create a.py",
        step(say="I created a.py."),
        step(call="glob", pattern="*"),
        step(say="I created a.py."),
        step(call="glob", pattern="*.py"),
        step(say="I created a.py."),
    )
    assert turn.ended.exit_code == 1
    assert turn.ended.error is not None
    assert "did nothing" in turn.ended.error.message
    assert "--drive simple" in turn.ended.error.hint
    assert "anyOf" in str(script.server.requests[1].json)
    assert "'say'" not in str(script.server.requests[1].json["response_format"])


PLANNING = mode_notice("plan", "", can_present=True)


def planning(prompt: str) -> Message:
    """A prompt with the notice of the agent."""
    notice = TextPart(text=PLANNING.text, is_notice=True)
    return replace(user(prompt), parts=(TextPart(text=prompt), notice), metadata={NAMED_MODE: "plan", **user(prompt).metadata})


async def test_plan_mode_is_named_and_offers_no_effects(script: Script) -> None:
    script.server.script(step(say="1. Write hello.py"))
    turn = await script.runner.ask(planning("write hello.py and run it"))
    assert turn.ended.answer == "1. Write hello.py"
    (asked,) = script.server.requests
    prompt = asked.messages[-1]["content"]
    assert "Plan mode: read-only." in prompt
    assert "present_plan" not in prompt
    schema = json.dumps(asked.json["response_format"])
    assert '"read"' not in schema  # there is no file
    assert all(f'"{tool}"' not in schema for tool in ("write", "edit", "shell"))


def test_later_mode_is_named_once() -> None:
    mode = nudge("The mode is now …", NAMED_MODE, **{NAMED_MODE: "edit"})
    turns = fit_window([planning("go"), mode], "s", 4_000, 500).turns
    assert turns[-1][1].count("read-only") == 1
    assert turns[-1][1].endswith("The mode is now `edit`: files may be changed.")


async def test_a_question_needs_no_effect(script: Script) -> None:
    turn = await script.turn("what is a tuple?", step(say="A sequence."), text('"no"'))
    assert (turn.ended.answer, turn.ended.exit_code) == ("A sequence.", 0)


async def test_a_repeated_call_is_not_made_again(script: Script) -> None:
    turn = await script.turn(
        "run true",
        step(call="shell", command="true"),
        step(call="shell", command="true"),
        step(say="It ran."),
    )
    assert [call.tool for message in turn.new for call in message.calls] == ["shell"]
    assert turn.ended.answer == "It ran."


async def test_steps_without_an_end_stop_the_turn(script: Script) -> None:
    turn = await script.turn("go", *[cut_off('{"say":"and and')] * 3)
    assert turn.ended.exit_code == 1
    assert turn.ended.error is not None
    assert "3 tries" in turn.ended.error.message


@pytest.mark.parametrize("refusal", [text("Sure, I will."), error(400, {"error": {"message": "no json_schema"}})])
async def test_server_without_schemas_runs_in_written_mode(script: Script, refusal: Reply) -> None:
    more = [] if refusal.status == 200 else [text("Sure.")]
    turn = await script.turn("hello", refusal, *more, text("Hi."))
    assert turn.ended.answer == "Hi."
    assert any("written mode" in event.text for event in script.runner.events if isinstance(event, Noticed))


def test_the_prompt_and_its_tools_are_short() -> None:
    spent = estimate_text(system_prompt(ARGUMENTS, ["a.py"] * 30, "")) + estimate_text(
        json.dumps(schema(ARGUMENTS, ["a.py"] * 30))
    )
    assert spent <= 1_200


def test_the_oldest_results_are_omitted_first() -> None:
    def read(path: str) -> Message:
        part = ToolPart(tool="read", input={"path": path}, status="completed", outcome="ok", output=f"{path} " * 1_000)
        return Message(role="assistant", parts=(part,), finished=True)

    fitted = fit_window([user("go"), read("a"), read("b"), read("c")], "", 500, 220)
    sent = "".join(said for _, said in fitted.turns)
    assert fitted.num_omitted == 2
    assert "a a a" not in sent
    assert "c c c" in sent
    assert [role for role, _ in fitted.turns] == ["system", "user", *["assistant", "user"] * 3]
