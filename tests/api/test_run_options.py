"""What one run of an agent may have of its own, and what a run hands to the functions of its program."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wolo import Agent, RunContext, ToolContext, tool
from wolo.config.cli_options import Flags
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.errors import UsageError
from wolo.testing import ScriptedTransport


@dataclass
class Shop:
    name: str


def scripted(*script: Any, **options: Any) -> tuple[Agent, ScriptedTransport]:
    transport = ScriptedTransport(script)
    return Agent("test/model", transport=transport, session="memory", **options), transport


def ask(tool: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"tool": tool, "input": arguments}]


def results(transport: ScriptedTransport) -> list[str]:
    return [each["content"] for each in transport.requests[-1]["messages"] if each["role"] == "tool"]


async def test_function_gets_the_deps_of_its_run() -> None:
    def price(item: str, context: RunContext[Shop]) -> str:
        """Price of an item."""
        return f"{item} at {context.deps.name} in {context.root.name}"

    async def other(context: RunContext[Shop] | None = None) -> str:
        """Another one."""
        assert isinstance(context, ToolContext)
        return context.deps.name

    agent, transport = scripted(
        ask("price", item="tea"), "Done.", ask("other"), "Done.", tools=[price, other], deps=Shop("first")
    )
    async with agent:
        await agent.run("price?")
        assert results(transport)[-1].startswith("tea at first in ")
        await agent.run("other?", deps=Shop("second"))
        assert results(transport)[-1] == "second"
    tools = [each["function"] for each in transport.requests[0]["tools"]]
    assert [each["parameters"]["properties"].keys() for each in tools if each["name"] in ("price", "other")] == [{"item"}, set()]


async def test_options_hold_for_one_run_and_history_stays() -> None:
    @tool(reads_only=True)
    def look() -> str:
        """Look."""
        return "seen"

    agent, transport = scripted("One.", "Two.", "Three.", tools=[])
    async with agent:
        await agent.run("first")
        await agent.run("second", model="test/other", tools=[look], thinking="low")
        await agent.run("third")
    assert [each["model"] for each in transport.requests] == ["test/model", "test/other", "test/model"]
    assert [bool(each.get("tools")) for each in transport.requests] == [False, True, False]
    assert [each["content"] for each in transport.requests[2]["messages"][1:]] == ["first", "One.", "second", "Two.", "third"]


async def test_limit_and_approval_of_one_run(tmp_path: Path) -> None:
    calls = [ask("shell", command="touch made")] * 3
    agent, transport = scripted(*calls[:2], "Done.", *calls, mode="ask", cwd=tmp_path, settings={"sandbox.backend": "off"})
    async with agent:
        assert (await agent.run("go", max_turns=1)).stop_reason == "max_turns"
        assert not (tmp_path / "made").exists()
        await agent.run("go", on_approval=lambda request: True)
        assert (tmp_path / "made").exists()
        with pytest.raises(UsageError, match="A run has no option speed"):
            await agent.run("go", speed=1)  # type: ignore[call-arg]  # a typo
        with pytest.raises(UsageError, match="`on_approval` is no function"):
            await agent.run("go", on_approval=1)  # type: ignore[arg-type]  # a mistake
    assert len(transport.requests) == 3


async def test_runs_of_one_agent_wait_for_each_other() -> None:
    agent, transport = scripted("One.", "Two.", "Three.", tools=[])
    async with agent:
        outputs = await asyncio.gather(*(agent.run(f"number {number}") for number in range(3)))
    assert [each.output for each in outputs] == ["One.", "Two.", "Three."]
    assert [each["messages"][-1]["content"] for each in transport.requests] == ["number 0", "number 1", "number 2"]


async def test_run_inside_of_itself_is_refused() -> None:
    async def again() -> str:
        """Run again."""
        return (await agent.run("inner")).output

    agent, transport = scripted(ask("again"), "Done.", "Unread.", tools=[again])
    async with agent:
        await agent.run("outer")
        assert "This agent is running already." in results(transport)[0]
        stream = agent.run_stream("open")
        await anext(stream)
        with pytest.raises(UsageError, match="running already"):
            await agent.run("in the same task")
        await stream.aclose()


async def test_usage_of_an_agent_as_tool_is_added() -> None:
    inner, _ = scripted("Forty-two.", tools=[])
    outer, transport = scripted(ask("expert", prompt="what?"), "It is 42.", tools=[inner.as_tool("expert", "Ask an expert.")])
    nothing = tool(lambda prompt: "", name="expert", description="Nothing.")
    alone, _ = scripted(ask("expert", prompt="what?"), "It is 42.", tools=[nothing])
    async with inner, outer, alone:
        result, compared = await outer.run("ask"), await alone.run("ask")
    assert results(transport) == ["Forty-two."]
    num_inner = result.usage.input_tokens - compared.usage.input_tokens
    assert (num_inner > 0, result.usage.output_tokens > compared.usage.output_tokens) == (True, True)


async def test_agents_and_skills_are_parameters(tmp_path: Path) -> None:
    skill = tmp_path / "skills/tea"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: tea\ndescription: Makes tea.\n---\nBoil water.")
    (tmp_path / "critic.md").write_text("---\nname: critic\ndescription: Finds faults.\n---\nBe strict.")
    agent, transport = scripted(
        ask("task", prompt="look", agent="reviewer"),
        "Looks fine.",
        ask("skill", name="tea"),
        "Done.",
        agents={"reviewer": {"description": "Reads code.", "prompt": "You review.", "tools": ["read"]}},
        skills=[tmp_path / "skills"],
    )
    async with agent:
        await agent.run("review it")
    assert "You review." in str(transport.requests[1]["messages"][0])
    assert [each["function"]["name"] for each in transport.requests[1]["tools"]] == ["read"]
    assert "Boil water." in results(transport)[-1]
    of_files, transport = scripted("Hi.", agents=[tmp_path / "critic.md"], skills=[skill])
    async with of_files:
        await of_files.run("hi")
    assert "Finds faults." in str(transport.requests[0])
    assert "Makes tea." in str(transport.requests[0])
    for wrong in ({"a": {}}, {"a": {"description": "x", "colour": "red"}}, {"a": {"description": "x", "tools": 1}}, ["none.md"]):
        with pytest.raises(UsageError):
            Agent("test/model", agents=wrong)  # type: ignore[arg-type]  # mistakes


async def test_mcp_servers_are_parameters() -> None:
    server = Path(__file__).parents[1] / "fakes/mcp_server.py"
    agent, transport = scripted("Hi.", mcp_servers={"fake": {"command": sys.executable, "args": [str(server)]}})
    async with agent:
        await agent.run("hi")
    assert any(each["function"]["name"].startswith("mcp__fake__") for each in transport.requests[0]["tools"])
    with pytest.raises(UsageError, match="table of tables"):
        Agent("test/model", mcp_servers={"fake": "command"})  # type: ignore[dict-item]  # a mistake


async def test_dropped_agent_needs_no_close() -> None:
    agent, _ = scripted("Hi.", tools=[])
    await agent.run("hi")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del agent
        gc.collect()


@pytest.mark.parametrize(("tools", "attended"), [("", False), ("", True), ("shell", False)])
async def test_only_who_runs_commands_has_a_sandbox(tools: str, attended: bool) -> None:
    endpoint = {"model": "custom/m", "base_url": "http://127.0.0.1:9/v1", "api_key": "k"}
    flags: Flags = {**endpoint, "no_session": True, "tools": tools, "mode": "auto"}
    conversation = await open_conversation(StartOptions(flags=flags, attended=attended))
    has_sandbox = conversation.files.services.sandbox.walls is not None
    assert has_sandbox == (bool(conversation.info.sandbox) and (attended or bool(tools)))
    await conversation.close()


async def test_settings_may_name_undecodable_paths() -> None:
    agent, _ = scripted("Hi!", settings={"batch.wolo_folder": "/data/\udcff"})
    async with agent:
        assert (await agent.run("Hello")).answer == "Hi!"
