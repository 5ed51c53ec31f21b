"""Guards as people write them for Claude Code: each stops here what it stops there, and lets the rest through."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from wolo.extensions.hooks.definitions import Hook
from wolo.extensions.hooks.hook_runner import HookEnvironment, HookRunner, RegisteredHook
from wolo.workspace.processes.process_runner import Processes

READ = "import json, os, re, sys\ndata = json.load(sys.stdin)\n"
COMMAND = """
if data["tool_name"] == "Bash" and re.search(r"rm\\s+-rf|git push --force", data["tool_input"]["command"]):
    print("dangerous", file=sys.stderr); sys.exit(2)
"""
SECRETS = """
path = data.get("tool_input", {}).get("file_path", "")
if data["tool_name"] in ("Read", "Edit", "Write") and os.path.basename(path).startswith(".env"):
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}))
"""
OUTSIDE = """
root = os.environ["CLAUDE_PROJECT_DIR"]
if not data["tool_input"]["file_path"].startswith(root + "/"):
    print(json.dumps({"decision": "block", "reason": "outside"}))
"""
CONTENT = """
given = data["tool_input"]
if "AKIA" in given.get("content", "") + given.get("new_string", ""):
    sys.exit(2)
"""
HOSTS = """
if data["tool_name"] == "WebFetch" and "evil" in data["tool_input"]["url"]:
    print(json.dumps({"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}}))
"""
AGENTS = """
if data["tool_name"] in ("Task", "Agent") and data["tool_input"]["subagent_type"] == "general":
    print(json.dumps({"continue": False, "stopReason": "no agents"}))
"""
PLANS = """
if data["permission_mode"] == "plan" and data["tool_name"] not in ("Read", "Grep", "Glob"):
    sys.exit(2)
"""
RESPONSES = """
if data["tool_name"] == "Write" and data["tool_response"]["filePath"].endswith(".tmp"):
    print(json.dumps({"decision": "block", "reason": "no temporary files"}))
"""

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+AKIA\n*** Add File: .env.local\n+a\n*** End Patch"


def edit(path: str, new: str = "y", **more: Any) -> tuple[str, dict[str, Any]]:
    return "edit", {"path": path, "old": "x", "new": new, **more}


PATCHED = ("apply_patch", {"patch": PATCH})
SEVERAL = ("edit", {"path": "a", "edits": [{"old": "a", "new": "b"}, {"old": "c", "new": "AKIA"}]})
GUARDS: list[tuple[str, str, Sequence[tuple[str, dict[str, Any]]], Sequence[tuple[str, dict[str, Any]]]]] = [
    ("Bash", COMMAND, [("shell", {"command": "cd /x && rm -rf build"})], [("shell", {"command": "ls"})]),
    (
        "Read|Edit|Write",
        SECRETS,
        [("read", {"path": ".env"}), ("read", {"path": "src/../.env"}), ("read", {"path": "link"}), edit(".env.local"), PATCHED],
        [("read", {"path": "src/env.py"}), edit("a.env")],
    ),
    (
        "Edit, Write",
        OUTSIDE,
        [
            edit("../x"),
            edit("/etc/passwd"),
            edit("~/.bashrc"),
            edit("outside/x"),
            ("write", {"path": "src/../../x", "content": ""}),
        ],
        [edit("src/a.py"), ("write", {"path": "./b", "content": ""})],
    ),
    (
        "Write|Edit|MultiEdit",
        CONTENT,
        [("write", {"path": "a", "content": "AKIA1"}), edit("a", "AKIA"), PATCHED, SEVERAL],
        [edit("a"), ("write", {"path": "a", "content": "b"})],
    ),
    ("", HOSTS, [("fetch", {"url": "https://evil.example"})], [("fetch", {"url": "https://a.example"}), edit("a")]),
    ("Task|Agent", AGENTS, [("task", {"prompt": "x", "agent": "general"})], [("task", {"prompt": "x", "agent": "explore"})]),
    (".*", PLANS, [("shell", {"command": "ls"})], [("read", {"path": "a"}), ("grep", {"pattern": "a"})]),
]


@pytest.fixture
def processes() -> Iterator[Processes]:
    started = Processes()
    yield started
    started.close_all()


async def unheard(commands: Sequence[str]) -> None:
    pass


def guarding(processes: Processes, matcher: str, body: str, event: str = "PreToolUse") -> HookRunner:
    script = Path.home() / "guard.py"
    script.write_text(READ + body)
    command = f"{shlex.quote(sys.executable)} -S {shlex.quote(str(script))}"
    environ = {**os.environ, "CLAUDE_PROJECT_DIR": str(Path.cwd())}
    ground = HookEnvironment(processes=processes, shell="/bin/sh", cwd=Path.cwd(), environ=lambda folder: environ)
    return HookRunner([RegisteredHook(event=event, hook=Hook(command=command, matcher=matcher), source="here")], ground)


async def decision(hooks: HookRunner, tool: str, arguments: dict[str, Any], event: str = "PreToolUse", **more: Any) -> str:
    told = {"session_id": "s", "cwd": str(Path.cwd()), "permission_mode": "plan", "tool_use_id": "t"}
    answer = await hooks.run(event, {**told, "tool_name": tool, "tool_input": arguments, **more}, unheard)
    assert answer.notices == ()
    return answer.decision


@pytest.mark.parametrize(("matcher", "body", "stopped", "let"), GUARDS, ids=[each[1].split()[1] for each in GUARDS])
async def test_a_guard_for_claude_code_guards(
    processes: Processes, matcher: str, body: str, stopped: Sequence[Any], let: Sequence[Any]
) -> None:
    Path("link").symlink_to(".env")
    Path("outside").symlink_to("/etc")
    hooks = guarding(processes, matcher, body)
    assert [await decision(hooks, *call) for call in stopped] == ["ask" if body is HOSTS else "deny"] * len(stopped)
    assert [await decision(hooks, *call) for call in let] == [""] * len(let)


async def test_result_guard_reads_the_tool_answer(processes: Processes) -> None:
    hooks = guarding(processes, "Write", RESPONSES, "PostToolUse")
    response = {"output": "", "is_error": False, "files_changed": [], "view": None, "duration_ms": 1}
    for path, expected in (("a.tmp", "deny"), ("a.txt", "")):
        call = ("write", {"path": path, "content": ""})
        assert await decision(hooks, *call, "PostToolUse", tool_response=response) == expected


async def test_one_file_change_of_a_patch_is_reported(processes: Processes) -> None:
    changed = {"hookSpecificOutput": {"updatedInput": {"file_path": "/x", "content": ""}}}
    hooks = guarding(processes, "Write", f"print(json.dumps({json.loads(json.dumps(changed))!r}))")
    told = {"tool_name": "apply_patch", "tool_input": {"patch": PATCH}, "tool_use_id": "t"}
    answer = await hooks.run("PreToolUse", told, unheard)
    assert (answer.decision, answer.updated_input) == ("deny", None)
