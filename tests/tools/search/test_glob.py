"""Finding files by name: sorted, without what git ignores, bounded, and silent about protected files."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.clock import processor_time_below
from tests.tools.harness import ToolHarness
from wolo.errors import ToolError
from wolo.guard.intents import ReadIntent
from wolo.tools.search.glob import Glob, GlobArgs
from wolo.tools.tool_values import CallResult, Listing


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)


async def glob(harness: ToolHarness, pattern: str, path: str = ".") -> CallResult:
    return await Glob().run(GlobArgs(pattern, path), harness.context)


async def test_names_are_sorted_without_git_ignored_ones(harness: ToolHarness) -> None:
    for name in ("b.py", "a/z.py", "a/b/c.py", "a-b.py", "node_modules/x.py", ".git/x.py", "notes.txt", ".ci/d.py"):
        harness.put(name, "")
    harness.put(".gitignore", "node_modules/\n")
    result = await glob(harness, "*.py")
    assert result.text.splitlines() == [".ci/d.py", "a/b/c.py", "a/z.py", "a-b.py", "b.py"]
    assert result.view == Listing("*.py", (".ci/d.py", "a/b/c.py", "a/z.py", "a-b.py", "b.py"), 5)


@pytest.mark.parametrize(
    "pattern", ["src/**/*.py", "./src/**/*.py", "{root}/src/**/*.py", "/src/**/*.py", "src/", "**/src/*/b.py"]
)
async def test_pattern_works_in_the_usual_notations(harness: ToolHarness, pattern: str) -> None:
    harness.put("src/x/b.py", "")
    harness.put("other.txt", "")
    assert (await glob(harness, pattern.format(root=harness.root))).text == "src/x/b.py"


async def test_path_narrows_while_names_stay_workspace_relative(harness: ToolHarness) -> None:
    harness.put("src/a.py", "")
    harness.put("lib/b.py", "")
    assert (await glob(harness, "*.py", "src")).text == "src/a.py"
    assert (await glob(harness, "*.py", str(harness.root / "lib"))).text == "lib/b.py"


async def test_no_match_is_an_answer_brackets_get_hint(harness: ToolHarness) -> None:
    result = await glob(harness, "*.rs")
    assert (result.text, result.is_error) == ("[No file matches *.rs.]", False)
    harness.put("app/[id]/page.tsx", "")
    assert "write \\[" in (await glob(harness, "app/[id]/*")).text
    assert (await glob(harness, "app/\\[id\\]/*")).text == "app/[id]/page.tsx"


@pytest.mark.parametrize(
    ("pattern", "path", "problem"),
    [
        ("", ".", "empty"),
        ("[a", ".", "not closed"),
        ("*", "missing/folder", "does not exist"),
        ("*", "", "empty"),
        ("*", "a\0b", "NUL"),
        ("*", "pipe", "neither a file nor a folder"),
    ],
)
async def test_unsearchable_place_is_refused_with_reason(harness: ToolHarness, pattern: str, path: str, problem: str) -> None:
    os.mkfifo(harness.root / "pipe")
    with pytest.raises(ToolError, match=problem):
        await glob(harness, pattern, path)


async def test_protected_files_are_counted_not_named(harness: ToolHarness) -> None:
    harness.put(".env", "TOKEN=1")
    harness.put("sub/.env", "TOKEN=2")
    harness.put("a.py", "")
    harness.services = replace(harness.services, is_readable=lambda path: path.name != ".env")
    assert (await glob(harness, "**")).text == "a.py\n[2 protected files were left out.]"


async def test_a_search_outside_says_so_before_it_happens(harness: ToolHarness, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (harness.root / "link").symlink_to(outside)
    for path in ("../outside", "link", str(outside)):
        assert Glob().intents(GlobArgs("*", path), harness.services) == (ReadIntent(outside, path, inside=False),)
    assert Glob().intents(GlobArgs("*"), harness.services) == (ReadIntent(harness.root, ".", inside=True),)


async def test_link_out_of_the_workspace_is_not_followed(harness: ToolHarness, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("x")
    (harness.root / "away").symlink_to(tmp_path)
    (harness.root / "loop").symlink_to(harness.root)
    harness.put("a.txt", "")
    assert (await glob(harness, "*.txt")).text == "a.txt"


async def test_line_break_in_a_name_stays_recognisable(harness: ToolHarness) -> None:
    (harness.root / "a\nb\x1b[31m.txt").touch()
    (harness.root / os.fsdecode(b"latin-\xe9.txt")).touch()
    assert (await glob(harness, "*.txt")).text == "a\\x0ab\\x1b[31m.txt\nlatin-\ufffd.txt"


async def test_many_names_are_cut_and_counted(harness: ToolHarness) -> None:
    for number in range(700):
        (harness.root / f"file{number:04}").touch()
    lines = (await glob(harness, "*")).text.splitlines()
    assert len(lines) == 501
    assert lines[-1] == "[500 of 700 files: narrow the pattern.]"


async def test_long_names_are_cut_by_size_too(harness: ToolHarness) -> None:
    for number in range(300):
        (harness.root / f"{number:03}{'x' * 200}").touch()
    result = await glob(harness, "*")
    assert len(result.text) < 26_000
    assert "of 300 files" in result.text


async def test_large_tree_with_loops_is_answered_in_time(harness: ToolHarness) -> None:
    for folder in range(100):
        (harness.root / f"d{folder}").mkdir()
        (harness.root / f"d{folder}/loop").symlink_to(harness.root)
        for number in range(70):
            (harness.root / f"d{folder}/f{number}").touch()
    with processor_time_below(5):
        assert "of 7,000 files" in (await glob(harness, "f*")).text


async def test_a_cancelled_search_stops_working(harness: ToolHarness) -> None:
    looked_at: list[Path] = []

    def slow(path: Path) -> bool:
        looked_at.append(path)
        time.sleep(0.001)
        return True

    for number in range(3000):
        (harness.root / f"d{number % 300}").mkdir(exist_ok=True)
        (harness.root / f"d{number % 300}/f{number}").touch()
    harness.services = replace(harness.services, is_readable=slow)
    task = asyncio.create_task(glob(harness, "f*"))
    async with asyncio.timeout(60):
        while not looked_at:
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.5)
    seen = len(looked_at)
    await asyncio.sleep(0.1)
    assert len(looked_at) == seen < 3000
