"""Calls carry what a front end draws: kind, places, and the texts before and after a change, also before the call runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.harness import ToolHarness
from wolo.tools.editing.drawn_arguments import arguments_in_view
from wolo.tools.tool import call_kind, locations_of, preview
from wolo.tools.tool_values import Diff, Location, Output, View

MOVE = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y\n*** End Patch"
DELETE = "*** Begin Patch\n*** Delete File: a.py\n*** End Patch"
CALLS = {
    "write": ("write", {"path": "a.py", "content": "z\n"}, "edit"),
    "edit": ("edit", {"path": "a.py", "old": "x", "new": "y"}, "edit"),
    "delete": ("apply_patch", {"patch": DELETE}, "delete"),
    "move": ("apply_patch", {"patch": MOVE}, "move"),
}


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)


def seen_before(harness: ToolHarness, name: str, **arguments: object) -> View | None:
    tool, args = harness.toolbox.decode(name, arguments)
    return preview(tool, args, harness.services)


def test_edits_that_a_diff_shows_are_in_view(harness: ToolHarness) -> None:
    harness.put("a.py", "x\n")
    given = {"path": "a.py", "edits": [{"old": "x", "new": "y"}]}
    tool, args = harness.toolbox.decode("edit", given)
    assert {*arguments_in_view(given, args, preview(tool, args, harness.services))} == {*given}


@pytest.mark.parametrize("case", CALLS)
async def test_change_shows_equally_before_and_after(harness: ToolHarness, case: str) -> None:
    name, arguments, kind = CALLS[case]
    harness.put("a.py", "x\n")
    await harness.call("read", path="a.py")
    tool, args = harness.toolbox.decode(name, arguments)
    assert call_kind(tool, args) == kind
    before = preview(tool, args, harness.services)
    assert (harness.root / "a.py").read_text() == "x\n"
    assert isinstance(before, Diff)
    result = await harness.call(name, **arguments)
    assert result.view == before
    assert {change.path for change in before.changes} == set(result.files_changed)


async def test_failing_call_has_no_view_and_no_trace(harness: ToolHarness) -> None:
    path = harness.put("a.py", "x\n")
    assert seen_before(harness, "edit", path="a.py", old="missing", new="y") is None
    assert seen_before(harness, "edit", path="b.py", old="missing", new="y") is None
    assert harness.services.ledger.count_miss(path) == 1


async def test_large_file_carries_only_the_passage(harness: ToolHarness) -> None:
    harness.put("big.txt", "".join(f"line {number}\n" for number in range(20_000)))
    view = seen_before(harness, "edit", path="big.txt", old="line 9999\n", new="changed\n")
    assert isinstance(view, Diff)
    (change,) = view.changes
    assert change.is_excerpt
    assert change.line == 10_000
    assert change.before == "line 9996\nline 9997\nline 9998\nline 9999\nline 10000\nline 10001\nline 10002\n"
    assert change.after == change.before.replace("line 9999", "changed")


async def test_places_are_absolute_with_known_lines(harness: ToolHarness) -> None:
    path = str(harness.put("a.py", "x\ny\n"))
    tool, args = harness.toolbox.decode("read", {"path": "a.py", "offset": 2})
    assert locations_of(args, tool.intents(args, harness.services)) == (Location(path, 2),)
    tool, args = harness.toolbox.decode("edit", {"path": "a.py", "old": "y", "new": "z"})
    intents = tool.intents(args, harness.services)
    assert locations_of(args, intents) == (Location(path),)
    assert locations_of(args, intents, preview(tool, args, harness.services)) == (Location(path, 2),)


def test_a_command_is_its_view(harness: ToolHarness) -> None:
    assert seen_before(harness, "shell", command="make") == Output("make", "", None, 0.0)
