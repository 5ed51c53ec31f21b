"""Programs that hooks run, and how they are started."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from wolo.extensions.hooks.definitions import Hook
from wolo.extensions.hooks.hook_runner import HookEnvironment, HookRunner, RegisteredHook, digest
from wolo.extensions.hooks.response import NOTHING
from wolo.extensions.referenced_files import find_programs, runs_relative_program
from wolo.workspace.processes.process_runner import Processes


@pytest.mark.parametrize(
    "command", ["./check.sh", "sh check.sh", 'sh "$CLAUDE_PROJECT_DIR"/check.sh', "cd . && exec ./check.sh -v", "cat<check.sh|sh"]
)
def test_digest_covers_files_named_by_a_command(command: str, tmp_path: Path) -> None:
    hooks = [("Stop", Hook(command=command))]
    missing = digest(hooks, tmp_path)
    script = tmp_path / "check.sh"
    script.write_text("exit 0")
    there = digest(hooks, tmp_path)
    script.write_text("exit 2")
    changed = digest(hooks, tmp_path)
    assert len({missing, there, changed}) == 3
    assert digest([("Stop", Hook(command=command, matcher="x"))], tmp_path) != changed
    assert script in find_programs([command], tmp_path, [tmp_path])


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
    assert script in find_programs([command], tmp_path / project, [tmp_path])
    script.write_text("exit 2")
    assert digest(hooks, tmp_path / project) != before


def test_links_on_the_way_to_program_are_found(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/check.sh").write_text("")
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "check").symlink_to("folder/check.sh")
    found = find_programs(["./check"], tmp_path, [tmp_path])
    assert found == [tmp_path / "check", tmp_path / "folder", tmp_path / "real/check.sh"]


@pytest.mark.parametrize(
    "word", ["~nobody-of-this-name/x.sh", "a\0b.sh", "./" + "y" * 300, "./" + "../" * 2000, "'", "$(", "-m ."]
)
def test_any_word_can_be_looked_up(word: str, tmp_path: Path) -> None:
    assert digest([("Stop", Hook(command=word))], tmp_path) != digest([("Stop", Hook(command="other"))], tmp_path)
    assert all(found.is_relative_to(tmp_path) for found in find_programs([word], tmp_path, [tmp_path]))


def test_missing_program_does_not_block_the_model(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "package.json").write_text("{}")
    assert find_programs(["prettier --write ./package.json src/ /etc/passwd ~/x.sh; npm run lint"], work, [work]) == []


RELATIVE = """
./check.sh | sh check.sh | cat<check.sh\\|sh | hooks/check.sh -v | timeout 5 ./guard | nice -n 5 ./guard | cd hooks && ./check.sh
cd hooks;. check.sh | bash -c 'cd hooks;. check.sh' | cd hooks; bash lint | python3 guard.py | python3 -m guard
env -C hooks ./check.sh | D=hooks; $D/check.sh | for each in hooks/*.sh; do $each; done | bash lint | uv run guard.py
python3 ./absent.py | A=1 ./absent | exec ./absent | python3 hooks/absent | x=$(./guard) | if ./guard; then :; fi | node .
sh -c './absent' | . ./env | xargs ./guard | find . -exec ./guard {} ; | ../elsewhere/x.sh | npx ./tool | "./check.sh" -v
"""
OTHERS = """
prettier --write . | npm run lint | make check | jq -r .tool_input.file_path \\| xargs prettier --write | git log origin/main
/usr/bin/true | "$CLAUDE_PROJECT_DIR"/.claude/hooks/x.sh | "${CLAUDE_PROJECT_DIR}/.claude/hooks/x.sh" | ~/bin/x.sh
$HOME/bin/x.sh | `git rev-parse --show-toplevel`/hooks/check.sh | sh ~/x.sh | python3 -m pytest | ls src/ | cat src/a.txt
find . -delete | find src/ -name x | echo a >> log; exit 2 | grep -q 'rm -rf /' && exit 2 | npx prettier --write src/
cat > /tmp/x | true
"""


def lines_of(text: str) -> list[str]:
    lines = " | ".join(text.strip().splitlines()).replace("\\\\|", "\0").split(" | ")
    return [line.replace("\0", "|") for line in lines]


@pytest.mark.parametrize(
    ("command", "is_relative"), [*((each, True) for each in lines_of(RELATIVE)), *((each, False) for each in lines_of(OTHERS))]
)
def test_relative_program_is_recognised_under_any_name(command: str, is_relative: bool, tmp_path: Path) -> None:
    work, named_in = tmp_path / "work", tmp_path / "settings"
    for folder in (work / "hooks", work / "src", named_in):
        folder.mkdir(parents=True)
    for name in ("check.sh", "hooks/check.sh", "lint", "hooks/lint", "guard.py", "guard", "index.js"):
        (work / name).write_text("#!/bin/sh\n")
        (work / name).chmod(0o755)
    (work / "index.js").chmod(0o644)
    (work / "src/a.txt").write_text("a")
    assert runs_relative_program(command, work, named_in) is is_relative


@pytest.fixture
def processes() -> Iterator[Processes]:
    started = Processes()
    yield started
    started.close_all()


async def unheard(commands: Sequence[str]) -> None:
    pass


def hooks_of(processes: Processes, *commands: str, event: str = "Stop", **more: Any) -> HookRunner:
    ground = HookEnvironment(processes=processes, shell="/bin/sh", cwd=Path.cwd(), environ=lambda folder: dict(os.environ))
    return HookRunner([RegisteredHook(event=event, hook=Hook(command=each, **more), source="here") for each in commands], ground)


async def test_event_hooks_run_side_by_side(processes: Processes) -> None:
    """Each waits for a word of the other."""
    os.mkfifo("one")
    os.mkfifo("two")
    hooks = hooks_of(processes, "echo a > one; cat two >&2; exit 2", "cat one > /dev/null; echo b > two")
    answer = await hooks.run("Stop", {}, unheard)
    assert (answer.decision, answer.reason) == ("deny", "b")


async def test_relative_user_program_is_never_from_the_checkout(processes: Processes, tmp_path: Path) -> None:
    settings = tmp_path / "settings"
    settings.mkdir()
    for folder, word in ((Path.cwd(), "checkout"), (settings, "settings")):
        (folder / "guard").write_text(f"#!/bin/sh\necho {word} >> {tmp_path}/ran; exit 2\n")
        (folder / "guard").chmod(0o755)
    ground = HookEnvironment(processes=processes, shell="/bin/sh", cwd=Path.cwd(), environ=lambda folder: dict(os.environ))
    for command in ("./guard", "sh guard", "cat guard | sh", "sh < guard", "exec ./guard", "pwd > /dev/null; . ./guard"):
        placed = RegisteredHook(event="Stop", hook=Hook(command=command), source="here", named_in=settings)
        await HookRunner([placed], ground).run("Stop", {}, unheard)
    placed = RegisteredHook(event="Stop", hook=Hook(command="pwd >&2; exit 2"), source="here", named_in=settings)
    assert (await HookRunner([placed], ground).run("Stop", {}, unheard)).reason == str(Path.cwd())
    assert set((tmp_path / "ran").read_text().split()) == {"settings"}


async def test_equal_command_runs_once_and_other_events_nothing(processes: Processes) -> None:
    hooks = hooks_of(processes, "echo x >> ran", "echo x >> ran")
    assert await hooks.run("Stop", {}, unheard) == NOTHING
    assert await hooks.run("Notification", {}, unheard) == NOTHING
    assert Path("ran").read_text() == "x\n"


async def test_cancelled_hook_is_gone_with_its_processes(processes: Processes) -> None:
    hooks = hooks_of(processes, "sleep 600 & echo $! > pid; trap '' TERM; wait; wait", timeout_s=600)
    running = asyncio.ensure_future(hooks.run("Stop", {}, unheard))
    async with asyncio.timeout(20):
        while not (Path("pid").exists() and Path("pid").read_text().strip()):
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not processes.is_anything_alive()


async def test_slow_hook_is_named_while_awaited(processes: Processes) -> None:
    heard: list[str] = []

    async def slow(commands: Sequence[str]) -> None:
        heard.extend(commands)
        Path("go").touch()

    command = "while [ ! -e go ]; do sleep 0.05; done"
    began = time.monotonic()
    await hooks_of(processes, command, "true").run("Stop", {}, slow)
    assert heard == [command]
    assert time.monotonic() - began >= 1


async def test_failing_listener_ends_the_hooks_and_is_reported(processes: Processes) -> None:
    async def broken(commands: Sequence[str]) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await hooks_of(processes, "sleep 600").run("Stop", {}, broken)
    assert not processes.is_anything_alive()
