"""Hook files of other agents: their forms, what their hooks read, what their answers mean, and bad files."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from wolo.errors import ExtensionError
from wolo.extensions.hooks.definitions import ForeignHook
from wolo.extensions.hooks.foreign_contracts import read_foreign_answer, to_stdin
from wolo.extensions.hooks.foreign_hook_files import contract_of, read_foreign_hooks
from wolo.extensions.hooks.hook_files import FromFile
from wolo.tools.tool_values import HookReply

SHELL = {
    "hook_event_name": "PreToolUse",
    "session_id": "s1",
    "cwd": "/w",
    "tool_name": "Bash",
    "tool_input": {"command": "rm -rf build"},
    "tool_use_id": "c1",
    "wolo_tool_name": "shell",
    "wolo_tool_input": {"command": "rm -rf build"},
}
EDIT = {
    **SHELL,
    "tool_name": "Edit",
    "tool_input": {"file_path": "/w/a.py", "old_string": "a", "new_string": "b"},
    "wolo_tool_name": "edit",
}
CALL = {**SHELL, "tool_name": "mcp__docs__find", "tool_input": {"q": "x"}, "wolo_tool_name": "mcp__docs__find"}


def of(place: str, content: Any) -> FromFile:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return read_foreign_hooks(data, Path("/w", place), contract_of(place))


def one(place: str, content: Any) -> tuple[str, ForeignHook]:
    read = of(place, content)
    assert read.problems == ()
    [(event, hook)] = read.hooks
    assert isinstance(hook, ForeignHook)
    return event, hook


def hook(contract: Any, event: str, matcher: str = "") -> ForeignHook:
    return ForeignHook(command="x", contract=contract, their_event=event, their_matcher=matcher)


def test_each_form_becomes_a_guard() -> None:
    entry = {"command": "./check.sh", "timeout": 5}
    grouped = {"hooks": {"PreToolUse": [{"matcher": "Execute", "hooks": [{"type": "command", **entry}]}]}}
    event, cursor = one(".cursor/hooks.json", {"version": 1, "hooks": {"beforeShellExecution": [{**entry, "failClosed": True}]}})
    assert (event, cursor.command, cursor.timeout_s, cursor.strict) == ("PreToolUse", "./check.sh", 5, True)
    copilot = {"type": "command", "bash": "./check.sh", "powershell": "x", "cwd": "tools", "env": {"A": "1"}, "timeoutSec": 9}
    event, read = one(".github/hooks/guard.json", {"version": 1, "hooks": {"preToolUse": [copilot]}})
    assert (event, read.command, read.folder, read.variables, read.timeout_s) == (
        "PreToolUse",
        "./check.sh",
        "tools",
        {"A": "1"},
        9,
    )
    assert one(".windsurf/hooks.json", {"hooks": {"pre_run_command": [{"command": "x", "show_output": True}]}})[0] == "PreToolUse"
    gemini = {
        "hooks": {"BeforeTool": [{"matcher": "run_shell_command", "hooks": [{"type": "command", **entry, "timeout": 5000}]}]}
    }
    event, read = one(".gemini/settings.json", {"ui": {}, **gemini})
    assert (event, read.their_event, read.their_matcher, read.timeout_s) == ("PreToolUse", "BeforeTool", "run_shell_command", 5)
    assert one(".factory/settings.json", grouped)[1].contract == "factory"
    assert one(".qwen/settings.json", grouped)[1].their_event == "PreToolUse"
    assert of(".codex/hooks.json", grouped).hooks[0][1].matcher == "Execute"
    toml = b'model = "x"\n[[hooks.PreToolUse]]\nmatcher = "Bash"\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "x"\n'
    assert of(".codex/config.toml", toml).hooks[0][0] == "PreToolUse"


@pytest.mark.parametrize(
    ("content", "event", "matcher", "timeout_s"),
    [
        (
            [
                {
                    "name": "g",
                    "trigger": "PreToolUse",
                    "matcher": "fs_write",
                    "action": {"type": "command", "command": "x"},
                    "timeout": 9,
                }
            ],
            "PreToolUse",
            "fs_write",
            9,
        ),
        ([{"trigger": "Stop", "action": {"type": "command", "command": "x"}, "enabled": True}], "Stop", "", None),
        ({"preToolUse": [{"matcher": "@git", "command": "x", "timeout": 9}]}, "PreToolUse", "@git", 9),
    ],
)
def test_hooks_of_kiro_are_read(content: Any, event: str, matcher: str, timeout_s: float | None) -> None:
    found, read = one(".kiro/hooks/a.json", {"version": "v1", "hooks": content})
    assert (found, read.contract, read.command, read.their_matcher, read.timeout_s) == (event, "kiro", "x", matcher, timeout_s)


def test_older_file_of_kiro_is_one_hook() -> None:
    when, then = {"type": "preToolUse", "toolTypes": ["write", "shell"]}, {"type": "runCommand", "command": "x", "timeout": 5}
    file = {"enabled": True, "name": "n", "version": "1", "when": when, "then": then}
    event, read = one(".kiro/hooks/a.kiro.hook", file)
    assert (event, read.their_event, read.their_matcher, read.timeout_s) == ("PreToolUse", "preToolUse", "write|shell", 5)
    assert of(".kiro/hooks/a.kiro.hook", {**file, "enabled": False}) == FromFile((), ())


def test_file_of_cline_is_its_program(tmp_path: Path) -> None:
    folder = tmp_path / ".clinerules/hooks"
    folder.mkdir(parents=True)
    for name in ("PreToolUse", "TaskStart.py", "TaskCancel", "UserPromptSubmit.ps1", "README.md", "PostToolUse"):
        (folder / name).touch(mode=0o644 if name == "PostToolUse" else 0o755)
    reads = {each.name: read_foreign_hooks(b"", each, contract_of(".clinerules/hooks")) for each in folder.iterdir()}
    found = {name: [(event, each.action) for event, each in read.hooks] for name, read in reads.items() if read.hooks}
    assert found == {
        "PreToolUse": [("PreToolUse", "./.clinerules/hooks/PreToolUse")],
        "TaskStart.py": [("SessionStart", "python3 ./.clinerules/hooks/TaskStart.py")],
    }
    assert {name for name, read in reads.items() if read.problems} == {"TaskCancel", "UserPromptSubmit.ps1", "PostToolUse"}
    (folder / "PreToolUse").chmod(0o644)
    assert "not executable" in read_foreign_hooks(b"", folder / "PreToolUse", "cline").unreadable_guards[0]


def test_prompt_of_cursor_asks_a_model() -> None:
    event, read = one(".cursor/hooks.json", {"hooks": {"beforeSubmitPrompt": [{"type": "prompt", "prompt": "Safe?"}]}})
    assert (event, read.type, read.prompt, read.command) == ("UserPromptSubmit", "prompt", "Safe?", "")


def test_event_in_claudes_spelling_has_claudes_form() -> None:
    read = of(".github/hooks/a.json", {"hooks": {"PreToolUse": [{"type": "command", "command": "x", "matcher": "Bash"}]}})
    assert not isinstance(read.hooks[0][1], ForeignHook)
    assert read.hooks[0][1].matcher == "Bash"


@pytest.mark.parametrize(
    ("place", "content", "why"),
    [
        (".cursor/hooks.json", {"hooks": {"beforeTabFileRead": [{"command": "x"}]}}, "no event beforeTabFileRead"),
        (".cursor/hooks.json", {"hooks": {"preToolUse": [{"type": "http", "url": "x"}]}}, "of type http"),
        (".cursor/hooks.json", {"hooks": {"preToolUse": [{"type": "prompt"}]}}, "has no command"),
        (".cursor/hooks.json", {"hooks": {"preToolUse": [{"command": "x", "matcher": "("}]}}, "no regular expression"),
        (".github/hooks/a.json", {"hooks": {"preToolUse": [{"type": "command", "powershell": "x"}]}}, "PowerShell only"),
        (".github/hooks/a.json", {"hooks": {"preToolUse": [{"command": "x", "env": {"A": 1}}]}}, "Expected str"),
        (".windsurf/hooks.json", {"hooks": {"pre_run_command": ["x"]}}, "no table"),
        (
            ".kiro/hooks/a.json",
            {"hooks": [{"trigger": "PreToolUse", "action": {"type": "agent", "prompt": "x"}}]},
            "of type agent",
        ),
        (".kiro/hooks/a.json", {"hooks": [{"trigger": "PreTaskExec", "action": {"command": "x"}}]}, "no event PreTaskExec"),
        (".kiro/hooks/a.json", {"hooks": ["x"]}, "no table"),
        (".kiro/hooks/a.json", {"hooks": [{"action": {}}]}, "has no command"),
    ],
)
def test_guard_that_cannot_run_is_named(place: str, content: Any, why: str) -> None:
    read = of(place, content)
    assert read.hooks == ()
    assert [why in each for each in read.unreadable_guards] == [True]


@pytest.mark.parametrize(
    ("asked", "data", "fields"),
    [
        (hook("cursor", "beforeShellExecution", "rm"), SHELL, {"command": "rm -rf build", "cwd": "/w", "conversation_id": "s1"}),
        (hook("cursor", "beforeShellExecution", "curl"), SHELL, None),
        (hook("cursor", "beforeShellExecution"), EDIT, None),
        (hook("cursor", "preToolUse", "Shell|Write"), SHELL, {"tool_name": "Shell", "tool_input": {"command": "rm -rf build"}}),
        (hook("cursor", "preToolUse", "Write"), SHELL, None),
        (hook("cursor", "beforeMCPExecution"), CALL, {"tool_name": "find", "tool_input": '{"q": "x"}'}),
        (hook("cursor", "afterFileEdit"), EDIT, {"file_path": "/w/a.py", "edits": [{"old_string": "a", "new_string": "b"}]}),
        (
            hook("copilot", "preToolUse"),
            SHELL,
            {"toolName": "bash", "toolArgs": '{"command": "rm -rf build"}', "sessionId": "s1"},
        ),
        (
            hook("copilot", "preToolUse", "edit"),
            EDIT,
            {"toolName": "edit", "toolArgs": '{"path": "/w/a.py", "old_str": "a", "new_str": "b"}'},
        ),
        (hook("copilot", "preToolUse", "bash"), EDIT, None),
        (
            hook("gemini", "BeforeTool", "run_shell_command"),
            SHELL,
            {"tool_name": "run_shell_command", "hook_event_name": "BeforeTool"},
        ),
        (hook("factory", "PreToolUse", "Execute"), SHELL, {"tool_name": "Execute"}),
        (hook("windsurf", "pre_run_command"), SHELL, {"tool_info": {"command_line": "rm -rf build", "cwd": "/w"}}),
        (hook("windsurf", "pre_mcp_tool_use"), SHELL, None),
        (hook("kiro", "PreToolUse"), SHELL, {"tool_name": "execute_bash", "tool_input": SHELL["tool_input"], "cwd": "/w"}),
        (hook("kiro", "preToolUse", "shell"), SHELL, {"tool_name": "shell", "hook_event_name": "preToolUse"}),
        (hook("kiro", "PreToolUse", "fs_write|fs_append"), EDIT, {"tool_name": "fs_write"}),
        (hook("kiro", "PreToolUse", "fs_.*"), SHELL, None),
        (hook("kiro", "PreToolUse", "@docs"), CALL, {"tool_name": "@docs/find"}),
        (hook("kiro", "PreToolUse", "@builtin"), CALL, None),
        (
            hook("cline", "PreToolUse"),
            SHELL,
            {"hookName": "PreToolUse", "preToolUse": {"toolName": "execute_command", "parameters": {"command": "rm -rf build"}}},
        ),
        (
            hook("cline", "PreToolUse"),
            CALL,
            {
                "preToolUse": {
                    "toolName": "use_mcp_tool",
                    "parameters": {"server_name": "docs", "tool_name": "find", "arguments": '{"q": "x"}'},
                }
            },
        ),
        (hook("cline", "UserPromptSubmit"), {"prompt": "hi"}, {"userPromptSubmit": {"prompt": "hi", "attachments": []}}),
        (hook("cline", "TaskStart"), {"source": "resume"}, None),
        (hook("cline", "TaskResume"), {"source": "startup"}, None),
        (hook("cline", "TaskResume"), {"source": "resume", "session_id": "s"}, {"hookName": "TaskResume", "taskId": "s"}),
    ],
)
def test_stdin_has_the_form_of_the_agent(asked: ForeignHook, data: dict[str, Any], fields: dict[str, Any] | None) -> None:
    stdin = to_stdin(asked, data)
    assert stdin is None if fields is None else stdin is not None and fields.items() <= stdin.items()


def answer(contract: Any, event: str, stdout: str, code: int = 0) -> HookReply:
    read = read_foreign_answer(hook(contract, event), event, code, stdout.encode(), b"no")
    assert isinstance(read, HookReply)
    return read


def test_answers_have_the_words_of_the_agent() -> None:
    denied = answer("cursor", "PreToolUse", '{"permission": "deny", "user_message": "u", "agent_message": "a"}')
    assert (denied.decision, denied.reason) == ("deny", "a")
    assert answer("cursor", "PreToolUse", '{"permission": "ask"}').decision == "ask"
    assert answer("cursor", "PreToolUse", '{"permission": "perhaps"}').decision == "ask"
    assert answer("cursor", "UserPromptSubmit", '{"continue": false}').decision == "deny"
    again = answer("cursor", "Stop", '{"followup_message": "Run the tests."}')
    assert (again.decision, again.reason) == ("deny", "Run the tests.")
    assert answer("copilot", "PreToolUse", '{"permissionDecision": "deny", "permissionDecisionReason": "r"}').reason == "r"
    assert answer("copilot", "Stop", '{"decision": "block", "reason": "r"}').decision == "deny"
    assert answer("gemini", "PreToolUse", '{"decision": "deny", "reason": "r"}').decision == "deny"
    assert answer("windsurf", "PreToolUse", '{"permission": "deny"}').decision == ""
    assert answer("windsurf", "PreToolUse", "", 2).decision == "deny"
    assert answer("copilot", "PreToolUse", "", 2).reason == "no"
    assert answer("cursor", "PreToolUse", "logged").decision == ""
    assert isinstance(read_foreign_answer(hook("cursor", "x"), "PreToolUse", 0, b'{"permission', b""), str)


def test_answers_of_kiro_are_exit_codes_and_text() -> None:
    assert answer("kiro", "PreToolUse", "", 2).reason == "no"
    assert answer("kiro", "PreToolUse", '{"decision": "block"}').decision == ""
    assert answer("kiro", "SessionStart", "It is Monday.").context == "It is Monday."
    assert read_foreign_answer(hook("kiro", "Stop"), "Stop", 2, b"", b"no") == "ended with status 2"


def test_answers_of_cline_count_whatever_the_exit_code() -> None:
    denied = answer("cline", "PreToolUse", 'checking {\n{\n "cancel": true, "errorMessage": "not here"\n}\n', 1)
    assert (denied.decision, denied.reason) == ("deny", "not here")
    assert answer("cline", "PreToolUse", '{"cancel": false, "contextModification": "Use tabs."}').context == "Use tabs."
    assert answer("cline", "PreToolUse", '{"cancel": "yes"}').decision == "ask"
    assert answer("cline", "TaskComplete", "done").decision == ""
    started = answer("cline", "SessionStart", '{"cancel": true, "errorMessage": "closed"}')
    assert (started.stops, started.stop_reason) == (True, "closed")
    assert answer("cline", "Stop", '{"cancel": true}').decision == ""
    assert isinstance(read_foreign_answer(hook("cline", "x"), "PreToolUse", 0, b'{"cancel": tr', b""), str)


PLACES = (
    ".cursor/hooks.json",
    ".github/hooks/a.json",
    ".windsurf/hooks.json",
    ".gemini/settings.json",
    ".codex/hooks.json",
    ".codex/config.toml",
    ".kiro/hooks/a.json",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "bad", [b"{", b"\xff\xfe\0", b'{"a":' * 50_000, b"[]", b'{"hooks": 3}', b"hooks = 3", b"/*" * 90_000, b""]
)
def test_bad_file_is_an_error_of_its_own(place: str, bad: bytes) -> None:
    with suppress(ExtensionError):  # it names the file; anything else is a crash
        assert of(place, bad).hooks == ()
