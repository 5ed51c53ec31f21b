"""The `if` of hooks, as Claude Code evaluates it; what cannot be told runs the hook."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from wolo.extensions.hooks.claude_calls import to_claude_calls
from wolo.extensions.hooks.definitions import RULE
from wolo.extensions.hooks.hook_files import read_hooks
from wolo.extensions.hooks.matchers import holds, names_of

START = Path("/home/me/project")


def runs(condition: str, tool: str, **arguments: Any) -> bool:
    (call,) = to_claude_calls(tool, arguments, START, follow_links=False)
    return holds(condition, call, names_of(tool, call.name), START)


@pytest.mark.parametrize(
    ("condition", "command", "expected"),
    [
        ("Bash(git *)", "FOO=bar git push", True),
        ("Bash(git *)", "npm test && git push", True),
        ("Bash(git *)", "npm test", False),
        ("Bash(git:*)", "git", True),
        ("Bash(git:*)", "gitk", False),
        ("Bash(rm *)", "echo $(rm -rf /)", True),
        ("Bash(rm *)", "echo `rm x`", True),
        ("Bash(rm *)", "echo $(date)", False),
        ("Bash(rm *)", "sudo rm -rf /", True),
        ("Bash(rm *)", "bash -c 'rm x'", True),
        ("Bash(git push *)", "echo $(date)", True),
        ("Bash(git push *)", "git status", False),
        ("Bash(git push *)", "git push origin main", True),
        ("Bash(npm run *:prod)", "npm run deploy:prod", True),
        ("Bash(ls)", "ls", True),
        ("Bash(ls)", "ls -a", False),
        ("Bash", "anything", True),
        ("Bash(*)", "anything", True),
        ("Edit(*.ts)", "git push", False),
    ],
)
def test_commands(condition: str, command: str, expected: bool) -> None:
    assert runs(condition, "shell", command=command) is expected


@pytest.mark.parametrize(
    ("condition", "path", "expected"),
    [
        ("Edit(*.ts)", "src/a.ts", True),
        ("Edit(*.ts)", "src/a.py", False),
        ("Edit(src/**)", "src/deep/a.py", True),
        ("Edit(src/**)", "lib/src/a.py", False),
        ("Edit(**/src/**)", "lib/src/a.py", True),
        ("Write(/src/a.py)", "src/a.py", True),
        ("Edit(//etc/**)", "/etc/passwd", True),
        ("Edit(//etc/**)", "etc/passwd", False),
        ("Read(*.ts)", "src/a.ts", False),
        ("Edit", "a", True),
    ],
)
def test_files(condition: str, path: str, expected: bool) -> None:
    assert runs(condition, "edit", path=path, old="a", new="b") is expected


def test_files_of_the_home_directory() -> None:
    assert runs("Edit(~/notes/*.md)", "edit", path=str(Path.home() / "notes/a.md"), old="a", new="b")
    assert not runs("Edit(~/notes/*.md)", "edit", path=str(Path.home() / "a.md"), old="a", new="b")
    assert not runs("Edit(~/notes/*.md)", "edit", path="/notes/a.md", old="a", new="b")


def test_hosts_and_other_tools() -> None:
    assert runs("WebFetch(domain:example.com)", "fetch", url="https://docs.example.com/x")
    assert not runs("WebFetch(domain:example.com)", "fetch", url="https://notexample.com/x")
    assert runs("mcp__hub__*", "mcp__hub__get", a=1)
    assert not runs("mcp__hub__*", "mcp__db__get", a=1)


def test_invalid_condition_is_a_problem_and_unreadable_guard() -> None:
    assert re.fullmatch(RULE, "Bash(git *)")
    assert not re.fullmatch(RULE, "Bash(git *) && Edit")

    def problems(event: str, condition: object) -> tuple[int, int]:
        content = {"hooks": {event: [{"hooks": [{"command": "x", "if": condition}]}]}}
        found = read_hooks(json.dumps(content).encode(), Path("hooks.json"))
        return len(found.problems), len(found.unreadable_guards)

    assert problems("PreToolUse", "Bash(git *)") == (0, 0)
    assert problems("PreToolUse", "Bash(git *) && Edit") == (1, 1)
    assert problems("PostToolUse", "a b") == (1, 0)
    assert problems("Stop", "Bash(git *)") == (1, 0)
