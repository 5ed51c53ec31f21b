"""The names by which hooks know tools, what exactly a project's hooks would run, and how they are run."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from wolo.extensions.hook_answers import NOTHING
from wolo.extensions.hook_digest import digest
from wolo.extensions.hook_names import concerns, in_our_names, with_other_names
from wolo.extensions.hook_settings import Hook, complaint
from wolo.extensions.hooks import Ground, Hooks, Placed
from wolo.extensions.named_files import programs
from wolo.workspace.processes import Processes


@pytest.mark.parametrize(
    ("matcher", "names", "others"),
    [
        ("", "shell write mcp__a__b", ""),
        ("*", "shell write mcp__a__b", ""),
        ("Bash", "shell", "jobs read"),
        ("bash|READ", "shell read", "write"),
        ("Write|Edit", "write edit apply_patch", "read shell"),
        ("mcp__github__.*", "mcp__github__get", "mcp__gitlab__get shell"),
        ("Sh", "", "shell"),
        ("she.*", "shell", "read"),
    ],
)
def test_a_matcher_is_held_against_the_whole_of_every_name(matcher: str, names: str, others: str) -> None:
    assert [name for name in (*names.split(), *others.split()) if concerns(matcher, name)] == names.split()


def test_a_matcher_that_python_wonders_about_is_no_warning() -> None:
    assert complaint("[[a]") == ""
    assert concerns("[[s]hell", "shell")


def test_arguments_have_two_names_and_the_one_that_was_changed_counts() -> None:
    given = {"path": "a", "old": "x", "new": "y"}
    told = with_other_names("edit", given)
    assert told == {**given, "file_path": "a", "old_string": "x", "new_string": "y"}
    assert in_our_names("edit", told, told) == given
    assert in_our_names("edit", told, {**told, "file_path": "b"}) == {**given, "path": "b"}
    assert in_our_names("edit", told, {**told, "path": "b"}) == {**given, "path": "b"}
    assert in_our_names("write", told, {"file_path": "b", "content": "c"}) == {"path": "b", "content": "c"}
    assert in_our_names("shell", {"command": "a"}, {"command": "b"}) == {"command": "b"}


@pytest.mark.parametrize(
    "command", ["./check.sh", "sh check.sh", 'sh "$CLAUDE_PROJECT_DIR"/check.sh', "cd . && exec ./check.sh -v", "cat<check.sh|sh"]
)
def test_the_digest_knows_the_files_that_a_command_names(command: str, tmp_path: Path) -> None:
    hooks = [("Stop", Hook(command=command))]
    missing = digest(hooks, tmp_path)
    script = tmp_path / "check.sh"
    script.write_text("exit 0")
    there = digest(hooks, tmp_path)
    script.write_text("exit 2")
    changed = digest(hooks, tmp_path)
    assert len({missing, there, changed}) == 3
    assert digest([("Stop", Hook(command=command, matcher="x"))], tmp_path) != changed
    assert script in programs([command], tmp_path, [tmp_path])


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("cd hooks && ./check.sh", "hooks/check.sh"),
        ("bash -c 'cd hooks;. check.sh'", "hooks/check.sh"),
        ('sh "${CLAUDE_PROJECT_DIR:-.}/hooks/check.sh"', "hooks/check.sh"),
        ("`git rev-parse --show-toplevel`/hooks/check.sh", "hooks/check.sh"),
        ("D=hooks; $D/check.sh", "hooks/check.sh"),
        ("for each in hooks/*.sh; do $each; done", "hooks/check.sh"),
        ("env -C hooks ./check.sh", "hooks/check.sh"),
        ("hooks/\\check.sh, -v", "hooks/check.sh"),
        ('"$CLAUDE_PROJECT_DIR"/"my hooks"/check.sh', "my hooks/check.sh"),
        ("my\\ hooks/check.sh", "my hooks/check.sh"),
        ("bash lint -x", "lint"),
        ("[ -x lint ] && . lint", "lint"),
        ("python3 -m hooks.check", "hooks/check.py"),
        ("python3 hooks", "hooks/__main__.py"),
    ],
)
@pytest.mark.parametrize("project", ["project", "two words", "don't", "back\\dash\\1"])
def test_however_a_file_is_named_it_is_found(command: str, file: str, project: str, tmp_path: Path) -> None:
    script = tmp_path / project / file
    script.parent.mkdir(parents=True)
    script.write_text("exit 0")
    hooks = [("Stop", Hook(command=command))]
    before = digest(hooks, tmp_path / project)
    assert script in programs([command], tmp_path / project, [tmp_path])
    script.write_text("exit 2")
    assert digest(hooks, tmp_path / project) != before


def test_links_on_the_way_to_a_program_are_found_with_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/check.sh").write_text("")
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "check").symlink_to("folder/check.sh")
    found = programs(["./check"], tmp_path, [tmp_path])
    assert found == [tmp_path / "check", tmp_path / "folder", tmp_path / "real/check.sh"]


@pytest.mark.parametrize(
    "word", ["~nobody-of-this-name/x.sh", "a\0b.sh", "./" + "y" * 300, "./" + "../" * 2000, "'", "$(", "-m ."]
)
def test_no_word_is_too_strange_to_be_looked_for(word: str, tmp_path: Path) -> None:
    digest([("Stop", Hook(command=word))], tmp_path)
    programs([word], tmp_path, [tmp_path])


def test_what_is_no_program_is_not_kept_from_the_model(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "package.json").write_text("{}")
    assert programs(["prettier --write ./package.json src/ /etc/passwd ~/x.sh; npm run lint"], work, [work]) == []


@pytest.fixture
def processes() -> Iterator[Processes]:
    started = Processes()
    yield started
    started.close_all()


async def unheard(commands: Sequence[str]) -> None:
    pass


def hooks_of(processes: Processes, *commands: str, event: str = "Stop", **more: Any) -> Hooks:
    ground = Ground(processes=processes, shell="/bin/sh", cwd=Path.cwd(), environ=lambda folder: dict(os.environ))
    return Hooks([Placed(event=event, hook=Hook(command=each, **more), source="here") for each in commands], ground)


async def test_all_hooks_of_an_event_run_side_by_side(processes: Processes) -> None:
    """Each waits for a word of the other."""
    os.mkfifo("one")
    os.mkfifo("two")
    hooks = hooks_of(processes, "echo a > one; cat two >&2; exit 2", "cat one > /dev/null; echo b > two")
    answer = await hooks.run("Stop", {}, unheard)
    assert (answer.decision, answer.reason) == ("deny", "b")


async def test_the_same_command_is_run_once_and_other_events_run_nothing(processes: Processes) -> None:
    hooks = hooks_of(processes, "echo x >> ran", "echo x >> ran")
    assert await hooks.run("Stop", {}, unheard) == NOTHING
    assert await hooks.run("Notification", {}, unheard) == NOTHING
    assert Path("ran").read_text() == "x\n"


async def test_a_cancelled_hook_is_gone_with_all_it_started(processes: Processes) -> None:
    hooks = hooks_of(processes, "sleep 600 & echo $! > pid; trap '' TERM; wait; wait", timeout_s=600)
    running = asyncio.ensure_future(hooks.run("Stop", {}, unheard))
    async with asyncio.timeout(20):
        while not (Path("pid").exists() and Path("pid").read_text().strip()):
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not processes.is_anything_alive()


async def test_who_is_slow_is_named_while_they_are_awaited(processes: Processes) -> None:
    heard: list[str] = []

    async def slow(commands: Sequence[str]) -> None:
        heard.extend(commands)
        Path("go").touch()

    command = "while [ ! -e go ]; do sleep 0.05; done"
    began = time.monotonic()
    await hooks_of(processes, command, "true").run("Stop", {}, slow)
    assert heard == [command]
    assert time.monotonic() - began >= 1


async def test_a_failing_listener_ends_the_hooks_and_is_heard_of(processes: Processes) -> None:
    async def broken(commands: Sequence[str]) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await hooks_of(processes, "sleep 600").run("Stop", {}, broken)
    assert not processes.is_anything_alive()
