"""The todo list: the whole of it each time, in any model's spelling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.harness import ToolHarness
from wolo.errors import ToolError
from wolo.messages.message import Message
from wolo.messages.parts import ToolPart
from wolo.tools.todo import latest_todos, todos_of
from wolo.tools.tool_values import TodoItem, TodoList

LIST = (TodoItem("write it", "completed"), TodoItem("try it", "in_progress"), TodoItem("ship it", "pending"))


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)


async def test_list_returns_as_model_and_person_see_it(harness: ToolHarness) -> None:
    items = [{"text": item.text, "status": item.status} for item in LIST]
    result = await harness.call("todo", items=items)
    assert result.text == "[x] write it\n[>] try it\n[ ] ship it"
    assert result.view == TodoList(LIST)


@pytest.mark.parametrize(
    "given",
    [
        {"todos": [{"content": "x", "status": "in_progress", "activeForm": "doing x", "id": "1", "priority": "high"}]},
        {"todos": [{"title": "x", "status": "In Progress"}]},
        {"plan": [{"step": "x", "status": "in-progress"}], "explanation": "because"},
        {"todos": [{"description": "x", "status": "doing"}]},
        {"items": '[{"text": "x", "status": "in_progress"}]'},
        {"items": [{"text": " x\n", "status": "IN_PROGRESS"}]},
    ],
)
async def test_other_agents_spellings_are_understood(harness: ToolHarness, given: dict[str, Any]) -> None:
    assert (await harness.call("todo", **given)).view == TodoList((TodoItem("x", "in_progress"),))


async def test_words_alone_are_items_that_wait(harness: ToolHarness) -> None:
    assert (await harness.call("todo", items=["a", {"text": "b"}])).text == "[ ] a\n[ ] b"


async def test_no_items_clear_the_list(harness: ToolHarness) -> None:
    result = await harness.call("todo", items=[])
    assert (result.text, result.view) == ("The list is empty now.", TodoList(()))


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([{"text": "a"}, {"text": " \n"}], "item 2 has no text"),
        (
            [{"text": "a", "status": "maybe"}],
            "item 1 has the status `maybe`. There are: pending, in_progress, completed, cancelled.",
        ),
        (["x"] * 101, "101 items are too many"),
        ([{"status": "done"}], r"`items\[0\].text` is missing"),
        ([5], "items"),
    ],
)
async def test_malformed_list_is_reported_in_sentence(harness: ToolHarness, items: list[Any], said: str) -> None:
    with pytest.raises(ToolError, match=said):
        await harness.call("todo", items=items)


async def test_a_long_item_is_cut(harness: ToolHarness) -> None:
    assert len((await harness.call("todo", items=["x" * 10_000])).text) < 600


def call_of(input: dict[str, Any], **more: Any) -> Message:
    part = ToolPart(tool="todo", input=input, status="completed", **{"outcome": "ok", **more})
    return Message(role="assistant", parts=(part,))


def test_list_is_the_last_successful_call() -> None:
    first, failed = call_of({"items": ["a"]}), call_of({"items": ["b"]}, outcome="error")
    assert latest_todos([]) is None
    assert latest_todos([failed]) is None
    assert latest_todos([first, failed]) == (TodoItem("a", "pending"),)
    assert latest_todos([first, call_of({"todos": []})]) == ()
    assert latest_todos([call_of({"items": "rubbish"}), call_of({})]) is None


def test_another_tools_call_is_no_list() -> None:
    assert todos_of(ToolPart(tool="ask", input={"items": ["a"]}, outcome="ok")) is None
