"""More tools than a provider takes: they wait, are found, and never end a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.tools.harness import ToolHarness
from wolo.agent.prompt_prefix import stated_tool_limit
from wolo.errors import ToolError, UsageError
from wolo.formats.format import ToolSpec
from wolo.guard.intents import Intent
from wolo.tools.find_tools import MOST_FOUND, FindTools, best
from wolo.tools.tool import FIND_TOOLS, CallContext, ToolServices
from wolo.tools.tool_values import CallResult
from wolo.tools.toolbox import BUILTIN, Toolbox


class Foreign:
    reads_only = False

    def __init__(self, name: str, about: str = "") -> None:
        self.name = name
        self.spec = ToolSpec(name, about, {"type": "object"})

    def intents(self, args: Mapping[str, Any], services: ToolServices) -> Sequence[Intent]:
        return ()

    async def run(self, args: Mapping[str, Any], call: CallContext) -> CallResult:
        return CallResult(self.name)


def many(count: int, server: str = "big") -> list[Foreign]:
    return [Foreign(f"mcp__{server}__tool_{number:03}", f"Does thing {number}.") for number in range(count)]


def names(toolbox: Toolbox) -> list[str]:
    return [spec.name for spec in toolbox.specs(compacted=True)]


async def find(toolbox: Toolbox, query: str) -> str:
    tool, args = toolbox.decode(FIND_TOOLS, {"query": query})
    return (await tool.run(args, ToolHarness(Path.cwd()).context)).text


def with_limit(most: int | None) -> Toolbox:
    return Toolbox(BUILTIN, most=most).offer()


def test_accepted_number_of_tools_is_offered_at_once() -> None:
    own = len(Toolbox().names)
    toolbox = with_limit(own + 11)
    toolbox.add(many(10))
    assert FIND_TOOLS not in names(toolbox)
    assert len(names(toolbox)) == own + 10
    unlimited = with_limit(None)
    unlimited.add(many(500))
    assert len(names(unlimited)) == own + 500


async def test_surplus_tools_wait_for_a_search() -> None:
    toolbox = with_limit(30)
    toolbox.add([*many(100), Foreign("mcp__hub__create_issue", "Open an issue."), Foreign("mcp__hub__list_issues")])
    before = names(toolbox)
    assert before[-1] == FIND_TOOLS
    spec = toolbox.specs(compacted=True)[-1]
    assert "There are tools of: big (100), hub (2)." in spec.description
    assert "mcp__hub__create_issue" in spec.description
    said = await find(toolbox, "open an issue")
    assert said.startswith("You can call these from now on:\n- mcp__hub__create_issue: Open an issue.")
    after = names(toolbox)
    assert after[: len(before)] == before
    assert after[len(before) :] == ["mcp__hub__create_issue", "mcp__hub__list_issues"]
    assert "No tool matches sing. There are tools of: big (100)." in await find(toolbox, "sing")


async def test_whatever_is_found_there_are_never_too_many() -> None:
    most = len(Toolbox().names) + 6
    toolbox = with_limit(most)
    toolbox.add(many(200))
    for number in range(0, 60, 3):
        wanted = [f"mcp__big__tool_{each:03}" for each in range(number, number + 3)]
        await find(toolbox, " ".join(wanted))
        assert len(names(toolbox)) <= most
        assert names(toolbox)[-3:] == wanted


async def test_waiting_tool_can_be_called_by_name() -> None:
    toolbox = with_limit(30)
    toolbox.add(many(100))
    tool, args = toolbox.decode("mcp__big__tool_007", {"a": 1})
    assert ((await tool.run(args, ToolHarness(Path.cwd()).context)).text, args) == ("mcp__big__tool_007", {"a": 1})


def test_late_tools_wait_and_nobody_changes_places() -> None:
    toolbox = with_limit(40)
    toolbox.add(many(10, "first"))
    before = names(toolbox)
    toolbox.add(many(50, "second"))
    assert names(toolbox) == [*before, FIND_TOOLS]
    toolbox.add(many(5, "third"))
    assert names(toolbox)[:-5] == [*before, FIND_TOOLS]


def test_other_agents_with_part_have_own_search() -> None:
    toolbox = with_limit(30)
    toolbox.add(many(100))
    child = toolbox.offer(None, ("task",), most=25)
    assert names(child)[-1] == FIND_TOOLS
    assert isinstance(child.decode(FIND_TOOLS, {})[0], FindTools)
    assert child.decode(FIND_TOOLS, {})[0] is not toolbox.decode(FIND_TOOLS, {})[0]
    hidden = toolbox.offer(None, (FIND_TOOLS,))
    assert FIND_TOOLS not in names(hidden)
    with pytest.raises(UsageError):
        toolbox.offer(("find_tool",))


def test_a_refusal_for_too_many_makes_them_wait() -> None:
    toolbox = with_limit(None)
    toolbox.add(many(200))
    assert toolbox.limit(128)
    assert len(names(toolbox)) == len(Toolbox().names) + 1
    assert not toolbox.limit(128)
    assert not Toolbox().limit(3)


async def test_empty_search_is_explained_to_the_model() -> None:
    toolbox = with_limit(30)
    toolbox.add(many(100))
    with pytest.raises(ToolError, match="`query` is missing"):
        await find(toolbox, " ")


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create a pull request", "mcp__hub__createPullRequest"),
        ("pull requests", "mcp__hub__createPullRequest"),
        ("mcp__db__query", "mcp__db__query"),
        ("run SQL", "mcp__db__query"),
        ("QUERIES", ""),
    ],
)
def test_the_best_match_comes_first(query: str, first: str) -> None:
    tools = {
        each.name: each
        for each in (
            Foreign("mcp__hub__createPullRequest", "Opens a request to merge a branch."),
            Foreign("mcp__hub__merge", "Merges what somebody requested."),
            Foreign("mcp__db__query", "Run an SQL statement."),
            *many(50),
        )
    }
    found = best(query, tools)
    assert (found[:1] or [""])[0] == first
    assert len(found) <= MOST_FOUND


@pytest.mark.parametrize(
    ("said", "most"),
    [
        ("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 201.", 128),
        ("tools: at most 128 items are allowed", 128),
        ("Too many tools (300): the limit is 64", 64),
        ("A max of 128 functions are supported.", 128),
        ("The number of function_declarations exceeds the limit of 512", 512),
        ("max_tokens must be at most 4096", None),
        ("Invalid 'tools[3].function.name': string too long, at most 4", None),
        ("tools are not supported", None),
    ],
)
def test_a_refusal_for_their_number_is_recognised(said: str, most: int | None) -> None:
    assert stated_tool_limit(said) == most


async def test_window_filling_tools_wait_with_requests_stable() -> None:
    toolbox = Toolbox(BUILTIN, budget=1_000).offer()
    toolbox.add(many(20, "small"))
    first = toolbox.specs()
    assert FIND_TOOLS not in names(toolbox)
    toolbox.add(many(400, "large"))
    second = toolbox.specs()
    assert second[: len(first)] == first
    assert [spec.name for spec in second[len(first) :]] == [FIND_TOOLS]
    await find(toolbox, "mcp__large__tool_007")
    third = toolbox.specs()
    assert third[: len(second)] == second
    assert [spec.name for spec in third[len(second) :]] == ["mcp__large__tool_007"]
    assert FIND_TOOLS in names(toolbox.offer())  # also for a subagent
