"""Calls, matchers and results as Claude Code's hooks know them, and changed arguments as wolo's tools take them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wolo.extensions.hooks.claude_calls import CLAUDE_NAMES, ClaudeCall, to_claude_calls, to_wolo_arguments
from wolo.extensions.hooks.claude_results import failure, replacement_output, to_claude_response
from wolo.extensions.hooks.definitions import complaint
from wolo.extensions.hooks.matchers import matches, names_of
from wolo.tools.toolbox import BUILTIN

START = Path("/home/me/project")
PATCH = """*** Begin Patch
*** Add File: new.txt
+hello
*** Update File: src/old.py
*** Move to: src/moved.py
@@
-a
+b
*** Delete File: .env
*** End Patch"""


def told(tool: str, **arguments: Any) -> list[ClaudeCall]:
    return to_claude_calls(tool, arguments, START, follow_links=False)


# Matchers


@pytest.mark.parametrize(
    ("matcher", "tools", "others"),
    [
        ("", "shell write mcp__a__b", ""),
        (" ", "shell", ""),
        ("*", "shell write mcp__a__b", ""),
        ("Bash", "shell", "jobs read"),
        ("bash|READ", "shell read", "write"),
        ("Write|Edit", "write edit", "read shell"),
        ("Edit, Write", "write edit", "read shell"),
        ("Edit , Write|Bash", "write edit shell", "read"),
        ("MultiEdit", "edit", "write"),
        ("Task", "task", "todo"),
        ("Agent", "task", "ask"),
        ("mcp__github__.*", "mcp__github__get", "mcp__gitlab__get shell"),
        ("mcp__github", "mcp__github__get", "mcp__github2__get"),
        ("mcp__.*__write.*", "mcp__files__write_file", "mcp__files__read"),
        ("Sh", "", "shell"),
        ("she.*", "shell", "read"),
        ("Edit.*", "edit", "write"),
        (".*Fetch", "fetch", "shell"),
        ("ash$", "shell", "task"),
        ("^Web", "fetch", "write"),
        ("^(?!Bash$)", "read write", "shell"),
        ("[^B]ash", "", "shell"),
    ],
)
def test_matcher_selects_as_in_claude_code(matcher: str, tools: str, others: str) -> None:
    def is_selected(tool: str) -> bool:
        return matches(matcher, names_of(tool, CLAUDE_NAMES.get(tool, tool)))

    assert [tool for tool in (*tools.split(), *others.split()) if is_selected(tool)] == tools.split()


def test_odd_python_matcher_gives_no_warning() -> None:
    assert complaint("[[a]") == ""
    assert matches("[[s]hell", ("shell",))


# Calls


@pytest.mark.parametrize(
    ("tool", "arguments", "name", "expected"),
    [
        (
            "shell",
            {"command": "ls", "timeout_s": 1.5},
            "Bash",
            {"command": "ls", "timeout": 1500, "description": "", "run_in_background": False},
        ),
        (
            "shell",
            {"command": "x", "background": True},
            "Bash",
            {"command": "x", "description": "", "run_in_background": True},
        ),
        ("read", {"path": "a.txt", "offset": 3}, "Read", {"file_path": "/home/me/project/a.txt", "offset": 3}),
        ("read", {"path": "/etc/../etc/passwd"}, "Read", {"file_path": "/etc/passwd"}),
        ("write", {"path": "./a/../b", "content": "c"}, "Write", {"file_path": "/home/me/project/b", "content": "c"}),
        (
            "edit",
            {"path": "a", "old": "x", "new": "y"},
            "Edit",
            {"file_path": "/home/me/project/a", "old_string": "x", "new_string": "y", "replace_all": False},
        ),
        (
            "grep",
            {"pattern": "p", "path": "src", "ignore_case": True, "before": 2},
            "Grep",
            {"pattern": "p", "path": "/home/me/project/src", "-i": True, "-B": 2},
        ),
        ("glob", {"pattern": "*.py"}, "Glob", {"pattern": "*.py"}),
        ("fetch", {"url": "https://a.b"}, "WebFetch", {"url": "https://a.b", "prompt": ""}),
        (
            "task",
            {"prompt": "find it", "agent": "explore"},
            "Task",
            {"prompt": "find it", "subagent_type": "explore", "description": "find it"},
        ),
        (
            "todo",
            {"items": [{"text": "a", "status": "pending"}, "b"]},
            "TodoWrite",
            {
                "todos": [
                    {"content": "a", "status": "pending", "activeForm": "a"},
                    {"content": "b", "status": "pending", "activeForm": "b"},
                ]
            },
        ),
        (
            "ask",
            {"questions": [{"question": "Which?", "options": ["a"]}]},
            "AskUserQuestion",
            {
                "questions": [
                    {"question": "Which?", "header": "", "options": [{"label": "a", "description": ""}], "multiSelect": False}
                ]
            },
        ),
        ("skill", {"name": "pdf"}, "Skill", {"skill": "pdf"}),
        ("jobs", {"action": "stop", "id": 2}, "KillShell", {"shell_id": "2"}),
        ("jobs", {"action": "output", "id": 2}, "BashOutput", {"bash_id": "2"}),
        ("mcp__a__b", {"path": "x"}, "mcp__a__b", {"path": "x"}),
    ],
)
def test_each_tool_uses_claude_code_name_and_arguments(
    tool: str, arguments: dict[str, Any], name: str, expected: dict[str, Any]
) -> None:
    (call,) = told(tool, **arguments)
    assert (call.name, call.input) == (name, expected)
    assert to_wolo_arguments(tool, arguments, call, call.input) == arguments


def test_the_home_folder_is_told_in_full() -> None:
    assert told("read", path="~/.ssh/id")[0].file == str(Path.home() / ".ssh/id")


def test_every_acting_tool_has_a_claude_code_name() -> None:
    own = {"apply_patch", "jobs", "lsp", "repo_map", "remember", "expand_message"}
    assert {tool.name for tool in BUILTIN} - own == set(CLAUDE_NAMES)


def test_a_patch_is_told_file_by_file() -> None:
    calls = told("apply_patch", patch=PATCH)
    assert [(call.name, call.file) for call in calls] == [
        ("Write", "/home/me/project/new.txt"),
        ("Edit", "/home/me/project/src/old.py"),
        ("Write", "/home/me/project/src/moved.py"),
        ("Edit", "/home/me/project/.env"),
    ]
    assert calls[0].input["content"] == "hello\n"
    assert (calls[1].input["old_string"], calls[1].input["new_string"]) == ("a\n", "b\n")
    assert to_wolo_arguments("apply_patch", {"patch": PATCH}, calls[0], {"file_path": "x", "content": ""}) is None


def test_several_replacements_are_separate_and_each_is_changeable() -> None:
    arguments = {"path": "a", "edits": [{"old": "1", "new": "2"}, {"old": "3", "new": "4", "replace_all": True}]}
    first, second = told("edit", **arguments)
    assert second.input == {"file_path": "/home/me/project/a", "old_string": "3", "new_string": "4", "replace_all": True}
    changed = to_wolo_arguments("edit", arguments, second, {**second.input, "new_string": "5"})
    assert changed == {"path": "a", "edits": [{"old": "1", "new": "2"}, {"old": "3", "new": "5", "replace_all": True}]}
    moved = to_wolo_arguments("edit", arguments, first, {**first.input, "file_path": "/b"})
    assert moved is not None
    assert moved["path"] == "/b"


def test_linked_file_is_named_by_both_names(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("")
    (tmp_path / "notes.txt").symlink_to(".env")
    (tmp_path / "folder").symlink_to("/etc")
    for path, real in (("notes.txt", tmp_path / ".env"), ("folder/passwd", Path("/etc/passwd"))):
        calls = to_claude_calls("read", {"path": path}, tmp_path, follow_links=True)
        assert [call.file for call in calls] == [str(tmp_path / path), str(real)]


@pytest.mark.parametrize(
    ("tool", "arguments", "changes", "taken"),
    [
        ("shell", {"command": "a", "timeout_s": 2.0}, {"command": "b"}, {"command": "b", "timeout_s": 2.0}),
        ("shell", {"command": "a"}, {"timeout": 3000}, {"command": "a", "timeout_s": 3.0}),
        ("shell", {"command": "a"}, {"run_in_background": True}, {"command": "a", "background": True}),
        ("read", {"path": "a"}, {"file_path": "/b"}, {"path": "/b"}),
        ("read", {"path": "a"}, {"path": "b"}, {"path": "b"}),
        ("write", {"path": "a", "content": "x"}, {"content": "y"}, {"path": "a", "content": "y"}),
        ("fetch", {"url": "http://a", "raw": True}, {"url": "http://b"}, {"url": "http://b", "raw": True}),
        ("grep", {"pattern": "a"}, {"-n": False}, {"pattern": "a", "line_numbers": False}),
        ("todo", {"items": ["a"]}, {"todos": [{"content": "b", "status": "completed"}]}, None),
    ],
)
def test_hook_changes_reach_the_tool(
    tool: str, arguments: dict[str, Any], changes: dict[str, Any], taken: dict[str, Any] | None
) -> None:
    (call,) = told(tool, **arguments)
    expected = taken or {"items": [{"text": "b", "status": "completed"}]}
    found = to_wolo_arguments(tool, arguments, call, {**call.input, **changes})
    if "path" in changes:
        found = {**(found or {}), "path": (found or {})["path"]}
    assert found == expected


def test_argument_omitted_by_hook_is_gone() -> None:
    (call,) = told("read", path="a", limit=3)
    assert to_wolo_arguments("read", {"path": "a", "limit": 3}, call, {"file_path": call.file}) == {"path": "a"}


# Results


def result(output: str = "", view: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"output": output, "is_error": False, "files_changed": [], "view": view, "duration_ms": 7}


def test_each_tool_has_the_claude_code_response() -> None:
    output = {"type": "output", "command": "x", "text": "hi\n", "exit_code": 0, "seconds": 1.0}
    diff = {"type": "diff", "path": "a", "text": "@@ -1 +1,2 @@\n-a\n+b\n+c\n", "added": 2, "removed": 1, "created": False}
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 2, "lines": ["-a", "+b", "+c"]}
    listing = {"type": "listing", "title": "", "lines": ["a.py"], "total": 3}

    def response(tool: str, given: dict[str, Any], **arguments: Any) -> Any:
        return to_claude_response(told(tool, **arguments)[0], given)

    assert response("shell", result("hi\n[note]", output), command="x") == {
        **{"stdout": "hi\n", "stderr": "", "interrupted": False, "isImage": False}
    }
    for added in ("", "\n\nInstructions of this folder:\nUse tabs."):
        read = response("read", result(f"2→b\nc\n[Lines 2 to 3 of 9. Continue with offset=4.]{added}"), path="a")
        assert read["file"] == {
            **{"filePath": "/home/me/project/a", "content": "b\nc", "numLines": 2, "startLine": 2, "totalLines": 9}
        }
    assert response("read", result("1→a\n[1 line.]"), path="a")["file"]["totalLines"] == 1
    written = response("write", result("", {**diff, "created": True}), path="a", content="b")
    assert (written["type"], written["filePath"], written["success"]) == ("create", "/home/me/project/a", True)
    edited = response("edit", result("", diff), path="a", old="a", new="b")
    assert (edited["oldString"], edited["newString"], edited["structuredPatch"]) == ("a", "b", [hunk])
    assert response("glob", result("", listing), pattern="*")["truncated"]
    assert response("grep", result("", listing), pattern="a")["content"] == "a.py"
    assert response("grep", result("", listing), pattern="a", output_mode="files_with_matches")["filenames"] == ["a.py"]
    fetched = {"type": "fetched", "url": "http://b", "status": 200, "size_bytes": 5}
    assert response("fetch", result("text", fetched), url="http://a")["codeText"] == "OK"
    assert response("task", result("done"), prompt="x")["content"] == [{"type": "text", "text": "done"}]
    assert response("mcp__a__b", result("done")) == [{"type": "text", "text": "done"}]
    assert failure(told("shell", command="x")[0], result("no", {**output, "exit_code": 3})) == "Exit code 3\nno"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        ({"stdout": "a", "stderr": "b"}, "a\nb"),
        ({"type": "text", "file": {"content": "a"}}, "a"),
        ([{"type": "text", "text": "a"}, "b"], "a\nb"),
        ({"content": [{"type": "text", "text": "a"}]}, "a"),
        ({"filenames": ["a", "b"]}, "a\nb"),
        ({"result": "a"}, "a"),
        (5, None),
        ({"x": 1}, None),
    ],
)
def test_replacement_output_is_read_in_any_shape(value: Any, text: str | None) -> None:
    assert replacement_output(value) == text
