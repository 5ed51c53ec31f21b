"""Calls by the names of other agents' tools reach ours, with arguments that ours take."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from wolo.errors import ToolError
from wolo.tools.editing.edit import EditArgs
from wolo.tools.editing.matching import Replacement
from wolo.tools.editing.write import WriteArgs
from wolo.tools.fetch import FetchArgs
from wolo.tools.foreign_calls import EDITORS, OWN_NAMES
from wolo.tools.jobs_tool import JobsArgs
from wolo.tools.questions.present_plan import PresentPlanArgs
from wolo.tools.read import ReadArgs
from wolo.tools.search.glob import GlobArgs
from wolo.tools.search.grep import GrepArgs
from wolo.tools.shell import ShellArgs
from wolo.tools.task import TaskArgs
from wolo.tools.todo import GivenItem, TodoArgs
from wolo.tools.toolbox import BUILTIN, Toolbox
from wolo.tools.web_search import WebSearchArgs

EDITOR = "str_replace_editor"


def decode(toolbox: Toolbox, name: str, arguments: dict[str, Any]) -> tuple[str, Struct]:
    own, own_arguments = toolbox.own_call(name, arguments)
    tool, args = toolbox.decode(own, toolbox.unwrap(own, own_arguments))
    return tool.name, args


@pytest.mark.parametrize(
    ("name", "arguments", "own", "args"),
    [
        ("Bash", {"command": "ls", "description": "List files", "timeout": 120000}, "shell", ShellArgs("ls", timeout_s=120.0)),
        ("Bash", {"command": "make", "timeout": 30, "run_in_background": True}, "shell", ShellArgs("make", 30.0, True)),
        ("Read", {"file_path": "a", "offset": 3, "limit": 2}, "read", ReadArgs("a", 3, 2)),
        ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}, "edit", EditArgs("a", "x", "y")),
        (
            "MultiEdit",
            {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]},
            "edit",
            EditArgs("a", edits=(Replacement("x", "y"),)),
        ),
        ("Write", {"file_path": "a", "content": "x"}, "write", WriteArgs("a", "x")),
        ("Grep", {"pattern": "x", "-i": True, "-C": 2}, "grep", GrepArgs("x", ignore_case=True, context=2)),
        ("Glob", {"pattern": "*.py"}, "glob", GlobArgs("*.py")),
        ("LS", {"path": "src", "ignore": []}, "glob", GlobArgs("*", "src")),
        ("WebFetch", {"url": "https://a.example", "prompt": "What is it?"}, "fetch", FetchArgs("https://a.example")),
        ("WebSearch", {"query": "x"}, "web_search", WebSearchArgs("x")),
        (
            "TodoWrite",
            {"todos": [{"content": "x", "status": "pending", "activeForm": "Doing x"}]},
            "todo",
            TodoArgs((GivenItem("x", "pending"),)),
        ),
        ("update_plan", {"plan": [{"step": "x", "status": "pending"}]}, "todo", TodoArgs((GivenItem("x", "pending"),))),
        ("Task", {"description": "Look", "prompt": "find x", "subagent_type": "explore"}, "task", TaskArgs("find x", "explore")),
        ("ExitPlanMode", {"plan": "1. x"}, "present_plan", PresentPlanArgs("1. x")),
        ("BashOutput", {"bash_id": 2}, "jobs", JobsArgs("output", 2)),
        ("KillShell", {"shell_id": "2"}, "jobs", JobsArgs("stop", 2)),
        (EDITOR, {"command": "view", "path": "a", "view_range": [3, 5]}, "read", ReadArgs("a", 3, 3)),
        (EDITOR, {"command": "view", "path": "a", "view_range": [3, -1]}, "read", ReadArgs("a", 3)),
        (EDITOR, {"command": "create", "path": "a", "file_text": "x"}, "write", WriteArgs("a", "x")),
        (EDITOR, {"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"}, "edit", EditArgs("a", "x", "y")),
        (EDITOR, {"command": "str_replace", "path": "a", "old_str": "x"}, "edit", EditArgs("a", "x", "")),
        (
            EDITOR,
            {"command": "insert", "path": "a", "insert_line": 1, "new_str": "x"},
            "edit",
            EditArgs("a", new="x", insert_line=1),
        ),
        (
            "str_replace_based_edit_tool",
            {"command": "insert", "path": "a", "insert_line": 0, "insert_text": "x"},
            "edit",
            EditArgs("a", new="x", insert_line=0),
        ),
        (
            "local_shell",
            {"command": ["bash", "-lc", "ls | wc"], "timeout_ms": 5000},
            "shell",
            ShellArgs("ls | wc", timeout_s=5.0),
        ),
        ("local_shell", {"command": ["echo", "a b"]}, "shell", ShellArgs("echo 'a b'")),
        (
            "local_shell",
            {"action": {"type": "exec", "command": ["ls"], "env": {}, "working_directory": "a b"}},
            "shell",
            ShellArgs("(cd 'a b' && { ls\n})"),
        ),
        ("shell", {"command": ["bash", "-lc", "ls"], "workdir": "a"}, "shell", ShellArgs("(cd a && { ls\n})")),
        ("functions.shell", {"command": "ls"}, "shell", ShellArgs("ls")),
        ("functions.Bash", {"command": "ls"}, "shell", ShellArgs("ls")),
        ("default_api.read_file", {"absolute_path": "a"}, "read", ReadArgs("a")),
        ("run_terminal_cmd", {"command": "ls", "is_background": False}, "shell", ShellArgs("ls", background=False)),
        ("read_file", {"path": "a", "start_line": 3, "end_line": 5}, "read", ReadArgs("a", 3, 3)),
        ("search_files", {"path": "a", "regex": "x", "file_pattern": "*.py"}, "grep", GrepArgs("x", "a", "*.py")),
        ("search_replace", {"file_path": "a", "old_string": "x", "new_string": "y"}, "edit", EditArgs("a", "x", "y")),
    ],
)
def test_foreign_call_becomes_own(name: str, arguments: dict[str, Any], own: str, args: Struct) -> None:
    assert decode(Toolbox(), name, arguments) == (own, args)


@pytest.mark.parametrize(
    ("name", "arguments", "complaint"),
    [
        ("Teleport", {}, "There is no tool `Teleport`"),
        (EDITOR, {"command": "undo_edit", "path": "a"}, "single edits cannot be undone. Put the old text back with `edit`"),
        (EDITOR, {"command": "fold", "path": "a"}, "with the command `fold`. Use `read`"),
        (EDITOR, {}, "with the command `None`"),
        (EDITOR, {"command": "view", "path": "a", "view_range": [9, 2]}, "must be two line numbers"),
        ("local_shell", {"action": {"command": ["ls"], "env": {"A": "b"}}}, "there is no argument `env`"),
        (
            "Edit",
            {"path": "a", "x": 1},
            "The arguments are: path, old (optional), new (optional), replace_all (optional), edits (optional).",
        ),
        ("Bash", {}, "`command` is missing"),
        ("read_file", {"path": "a", "start_line": 5, "end_line": 3}, "not below the first"),
        ("functions.Teleport", {}, "There is no tool"),
        ("local_shell", {"command": [1]}, "must be text"),
    ],
)
def test_untranslatable_call_names_reason(name: str, arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ToolError) as error:
        decode(Toolbox(), name, arguments)
    assert complaint in error.value.message


def test_foreign_names_are_no_own_names() -> None:
    own = {tool.name for tool in BUILTIN}
    assert not own & {*OWN_NAMES, *EDITORS}
    assert {*OWN_NAMES.values()} <= own


def test_hidden_target_is_not_reached() -> None:
    toolbox = Toolbox().offer(hide=["shell"])
    assert toolbox.own_call("Bash", {"command": "ls"})[0] == "Bash"
    with pytest.raises(ToolError, match="There is no tool `Bash`"):
        decode(toolbox, "Bash", {"command": "ls"})


def test_custom_tool_of_foreign_name_wins() -> None:
    shell = next(tool for tool in BUILTIN if tool.name == "shell").load()
    custom = type("Bash", (type(shell),), {"name": "Bash"})()
    assert decode(Toolbox((*BUILTIN, custom)), "Bash", {"command": "ls"}) == ("Bash", ShellArgs("ls"))
