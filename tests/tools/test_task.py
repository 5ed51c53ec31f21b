"""The tool `task`: what it means to do, what the model reads of it, and which agents it finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from wolo.errors import ToolError
from wolo.guard.intents import CallIntent
from wolo.tools.task import Task, TaskArgs, find
from wolo.tools.tool import CallContext, ShellState, ToolServices
from wolo.tools.tool_values import (
    BUILTIN,
    MOST_DESCRIPTION,
    MOST_OFFERED,
    CallResult,
    SubagentOffer,
    TaskRequest,
    describe_subagents,
)
from wolo.tools.toolbox import NEEDS_SUBAGENTS, Toolbox
from wolo.workspace.files.file_reading import FileLedger
from wolo.workspace.root import Workspace


@pytest.fixture
def services(tmp_path: Path) -> ToolServices:
    work = Path.cwd()
    return ToolServices(
        workspace=Workspace(work),
        ledger=FileLedger(tmp_path / "locks"),
        save_output=lambda name, data: tmp_path / name,
        shell=ShellState(work),
    )


def test_it_means_to_call_that_agent(services: ToolServices) -> None:
    assert Task().intents(TaskArgs("look", "explore"), services) == (CallIntent("task:explore", only_reads=True),)
    assert Task().intents(TaskArgs("do it"), services) == (CallIntent("task:general"),)
    assert Task().intents(TaskArgs("do it", " "), services) == (CallIntent("task:general"),)


def test_agent_ignores_case_and_errors_name_right_ones() -> None:
    assert find("Explore", BUILTIN).name == "explore"
    offers = (
        *BUILTIN,
        SubagentOffer(name="EXPLORE", description=""),
        SubagentOffer(name="secret", description="", is_hidden=True),
    )
    assert find("EXPLORE", offers).name == "EXPLORE"
    assert find("secret", offers).is_hidden
    with pytest.raises(ToolError, match="no agent `nobody`") as wrong:
        find("nobody", offers)
    assert wrong.value.message.endswith("The agents are: EXPLORE, explore, general.")


def test_an_empty_prompt_is_no_task(services: ToolServices) -> None:
    with pytest.raises(ToolError, match="prompt is empty"):
        Task().intents(TaskArgs(" \n"), services)


async def test_task_runs_in_background_or_continues_another(services: ToolServices) -> None:
    requests = []

    async def delegate(request: TaskRequest, call: CallContext) -> CallResult:
        requests.append(request)
        return CallResult("done")

    services = replace(services, delegate=delegate, find_task=lambda id: "explore")
    for arguments in ({"background": True}, {"run_in_background": True}, {"resume": " id1 ", "agent": "general"}):
        tool, args = Toolbox().decode("task", {"prompt": "look", **arguments})
        await tool.run(args, CallContext(services))
    assert [(request.background, request.resume, request.agent) for request in requests] == [
        *((True, "", "general"),) * 2,
        (False, "id1", "explore"),
    ]
    assert Task().intents(TaskArgs("look", resume="id1"), services) == (CallIntent("task:explore", only_reads=True),)
    with pytest.raises(ToolError, match="No task can be resumed here"):
        Task().intents(TaskArgs("look", resume="id1"), replace(services, find_task=None))


async def test_call_goes_to_the_available_runner(services: ToolServices) -> None:
    heard = []

    async def delegate(request: TaskRequest, call: CallContext) -> CallResult:
        heard.append((request.agent, request.prompt, call.part_id))
        return CallResult("done")

    services = replace(services, delegate=delegate)
    call = services.for_call("call_1", lambda text: None, part_id="part_1")
    assert (await Task().run(TaskArgs("look", "EXPLORE"), call)).text == "done"
    assert heard == [("explore", "look", "part_1")]


async def test_only_agent_is_told_so(services: ToolServices) -> None:
    with pytest.raises(ToolError, match="do it yourself"):
        await Task().run(TaskArgs("look"), CallContext(services))


async def test_earlier_list_is_repeated_in_a_replay(services: ToolServices) -> None:
    services = replace(services, recorded_result=lambda call_id: CallResult(f"recorded {call_id}"))
    assert (await Task().run(TaskArgs("look"), services.for_call("call_7", lambda text: None))).text == "recorded call_7"


@pytest.mark.parametrize("written", [{"subagent_type": "explore"}, {"agent_type": "explore", "description": "a title"}])
def test_other_spellings_of_its_arguments_are_understood(written: dict[str, str]) -> None:
    _, args = Toolbox().decode("Task", {"prompt": "look", **written})
    assert args == TaskArgs("look", "explore")


def test_agent_list_has_equal_bytes_every_time() -> None:
    offers = [
        SubagentOffer(name="b", description="does\nb"),
        SubagentOffer(name="a", description=""),
        SubagentOffer(name="c", description="", is_hidden=True),
    ]
    assert describe_subagents(offers) == describe_subagents(offers[::-1]) == "Agents:\n- a\n- b: does b"
    toolbox = Toolbox(more={"task": describe_subagents(offers)})
    spec = next(spec for spec in toolbox.specs() if spec.name == "task")
    assert spec.description.endswith("end your turn.\nAgents:\n- a\n- b: does b")
    assert toolbox.offer().specs() == toolbox.specs()


def test_agent_list_is_bounded_for_any_content() -> None:
    offers = [SubagentOffer(name=f"agent-{number:04}", description="x" * 10_000) for number in range(5_000)]
    told = describe_subagents(offers)
    assert len(told) < MOST_OFFERED * (MOST_DESCRIPTION + 20) + 2_000
    assert "agent-0000: xxx" in told
    assert "and agent-0024, agent-0025" in told


def test_an_agent_gives_no_tasks_to_a_third() -> None:
    toolbox = Toolbox().offer(None, NEEDS_SUBAGENTS)
    assert "task" not in toolbox.names
    with pytest.raises(ToolError, match="no tool `task`"):
        toolbox.decode("task", {"prompt": "look"})
