"""Working as an agent: `--agent` and the setting `agent`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.fakes.command import run_wolo
from tests.fakes.prompts import typed
from tests.fakes.provider_server import KEY, Asked, ProviderServer
from tests.fakes.replies import text
from wolo.config import consents, layers
from wolo.config.schema import Config
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.conversation.resources.user_files import as_agent, find_main_agent
from wolo.errors import UsageError
from wolo.extensions.agent_files import AgentProfile
from wolo.places import find_places
from wolo.workspace.root import find_site

BOSS = "---\nname: boss\ndescription: decides\nmode: primary\ntools: Read, Grep, mcp__hub\nmax_turns: 7\n---\nYou are the boss."


def write_agent(content: str, name: str = "boss", folder: Path | None = None) -> None:
    path = (folder or find_places().config / "agents") / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


async def asked(provider: ProviderServer, **given: Any) -> Asked:
    provider.script(text("Done."))
    base = {"base_url": provider.base_url, "api_key": KEY, "model": "custom/m", "api": "openai-chat", "no_session": True}
    conversation = await open_conversation(StartOptions(flags={**base, **given}, attended=False))
    try:
        async for _ in conversation.prompt(typed("go")):
            pass
    finally:
        await conversation.close()
    return provider.requests[-1]


def tools(request: Asked) -> set[str]:
    return {tool["function"]["name"] for tool in request.json.get("tools", ())}


async def test_a_primary_agent_is_what_wolo_works_as(provider: ProviderServer) -> None:
    write_agent(BOSS)
    request = await asked(provider, agent="Boss")
    assert request.json["messages"][0]["content"].rstrip().endswith("You are the boss.")
    assert tools(request) == {"read", "grep"}
    provider.forget_prefix()
    assert "the boss" not in str((await asked(provider)).json["messages"])
    provider.forget_prefix()
    assert "the boss" in str((await asked(provider, set=["agent=boss"])).json["messages"])


async def test_options_narrow_the_agent_and_restore_nothing(provider: ProviderServer) -> None:
    write_agent(BOSS)
    assert tools(await asked(provider, agent="boss", tools="read,shell,write")) == {"read"}
    provider.forget_prefix()
    assert tools(await asked(provider, agent="boss", disallow_tools="grep")) == {"read"}


@pytest.mark.parametrize(
    ("offer", "named", "both"),
    [
        (None, ("read",), ("read",)),
        (("read", "shell"), ("read", "grep"), ("read",)),
        (("mcp__hub",), ("mcp__hub__get", "mcp__db"), ("mcp__hub__get",)),
        (("mcp__hub__get", "mcp__db__q"), ("mcp__hub",), ("mcp__hub__get",)),
        ((), ("read",), ()),
    ],
)
def test_tools_are_those_that_both_allow(offer: tuple[str, ...] | None, named: tuple[str, ...], both: tuple[str, ...]) -> None:
    config = Config()
    config = replace(config, settings=replace(config.settings, tools=replace(config.settings.tools, offer=offer)))
    found = as_agent(config, AgentProfile(name="x", description="", tools=named, without=("shell", "nothing")))
    assert (found.settings.tools.offer, found.settings.tools.hide) == (both, ("shell",))


@pytest.mark.parametrize(("own", "said", "most"), [(None, 7, 7), (3, 7, 3), (9, 7, 7)])
def test_turns_are_the_fewer(own: int | None, said: int, most: int) -> None:
    config = Config()
    config = replace(config, settings=replace(config.settings, limits=replace(config.settings.limits, max_turns=own)))
    assert as_agent(config, AgentProfile(name="x", description="", max_turns=said)).settings.limits.max_turns == most


def test_agent_model_is_used_unless_run_names_another() -> None:
    profile = AgentProfile(name="x", description="", model="zai/glm-5.2")
    config = Config()
    assert as_agent(config, profile).settings.model == "zai/glm-5.2"
    named = replace(config, settings=replace(config.settings, model="a/b"), sources={"model": "--model"})
    assert as_agent(named, profile).settings.model == "a/b"
    assert as_agent(config, replace(profile, is_projects=True)).settings.model == ""
    assert as_agent(config, replace(profile, model="sonnet")).settings.model == ""


def test_missing_or_task_only_agent_is_named() -> None:
    write_agent(BOSS)
    write_agent("---\ndescription: x\nmode: subagent\n---\n", "helper")
    work = Path.cwd()
    for name, said in (
        ("bos", "Unknown agent: bos."),
        ("helper", "is for tasks only (mode: subagent)"),
        ("explore", "is for tasks only (mode: subagent)"),
    ):
        config = layers.load(find_site(), {"agent": name})
        with pytest.raises(UsageError) as wrong:
            find_main_agent(config, find_site(work))
        assert said in wrong.value.message
        assert "Agents: boss." in wrong.value.hint
    config = layers.load(find_site(), {"agent": "bos"})
    with pytest.raises(UsageError) as near:
        find_main_agent(config, find_site(work))
    assert "Did you mean boss?" in near.value.hint


def test_project_agent_needs_a_trusted_folder() -> None:
    work = Path.cwd()
    write_agent(BOSS, folder=work / ".wolo/agents")
    config = layers.load(find_site(), {"agent": "boss"})
    with pytest.raises(UsageError) as untrusted:
        find_main_agent(config, find_site(work))
    assert "is not trusted" in untrusted.value.hint
    consents.save_trust(find_places(), work, "trusted")
    config = layers.load(find_site(), {"agent": "boss"})
    assert find_main_agent(config, find_site(work)).is_projects


def test_command_line_and_replay_work_as_an_agent(provider: ProviderServer) -> None:
    write_agent(BOSS)
    provider.script(text("Done."))
    ran = run_wolo("--json", *provider.flags, "--agent", "boss", "go")
    assert ran.exit_code == 0, ran.stderr
    assert tools(provider.requests[0]) == {"read", "grep"}
    assert run_wolo("replay", ran.json["session_id"], "--strict", timeout=120).exit_code == 0
    assert run_wolo("-p", *provider.flags, "--agent", "nobody", "go").exit_code == 2
