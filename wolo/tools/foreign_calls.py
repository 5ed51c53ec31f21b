"""Reads calls by the names and arguments of other agents' tools as calls of ours."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from wolo.errors import ToolError

OWN_NAMES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("bash", "execute_bash", "execute_command", "exec_command", "local_shell", "run_command", "run_in_terminal"),
            *("run_shell_command", "run_terminal_cmd", "shell_command", "terminal"),
        ),
        "shell",
    ),
    **dict.fromkeys(("open_file", "read_file", "readfile", "view", "view_file"), "read"),
    **dict.fromkeys(("create_file", "save_file", "write_file", "write_to_file", "writefile"), "write"),
    **dict.fromkeys(
        ("edit_file", "multi_edit", "multiedit", "replace", "replace_in_file", "search_replace", "str_replace"), "edit"
    ),
    **dict.fromkeys(("grep_search", "search_file_content", "search_files"), "grep"),
    **dict.fromkeys(("file_search", "find_files", "glob_file_search"), "glob"),
    **dict.fromkeys(("list_dir", "list_directory", "list_files", "ls"), "glob"),
    **dict.fromkeys(("fetch_url", "url_fetch", "web_fetch", "webfetch"), "fetch"),
    **dict.fromkeys(("google_web_search", "search_web", "websearch"), "web_search"),
    **dict.fromkeys(("todo_write", "todowrite", "update_plan", "write_todos"), "todo"),
    **dict.fromkeys(("agent", "subagent"), "task"),
    **dict.fromkeys(("ask_followup_question", "ask_user", "ask_user_question", "askuserquestion"), "ask"),
    **dict.fromkeys(("exit_plan_mode", "exitplanmode"), "present_plan"),
    **dict.fromkeys(("bash_output", "bashoutput", "kill_bash", "kill_shell", "killbash", "killshell"), "jobs"),
}
"""Names of Claude Code, Codex, Gemini CLI, OpenCode, Cursor, Cline and OpenHands that mean one tool of ours, in lower case."""
EDITORS = ("str_replace_based_edit_tool", "str_replace_editor", "text_editor")
"""One tool for all files: its argument `command` says which of ours is meant."""
_LISTING = ("list_dir", "list_directory", "list_files", "ls")
_SHELLS = ("bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh")
_FIRST_LINE = ("start_line", "startLine", "startLineNumberBaseOne", "start_line_one_indexed")
_LAST_LINE = ("end_line", "endLine", "endLineNumberBaseOne", "end_line_one_indexed_inclusive")
_SHORTEST_MS = 1000
"""A timeout is in milliseconds from this value on: none of ours is so long in seconds, and none of theirs so short."""


def own_call(name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns name and arguments of our tool; an unknown name as it is. Raises ToolError for what none of ours does."""
    foreign = name.strip().removeprefix("functions.").removeprefix("default_api.").lower().replace("-", "_")
    if foreign in EDITORS:
        return _editor_call(name, arguments)
    if (own := OWN_NAMES.get(foreign, name)) == "shell":
        return own, command_arguments(arguments)
    if own == "read":
        return own, _line_numbers(name, arguments)
    if foreign in _LISTING:
        return own, {"pattern": "*", **{key: value for key, value in arguments.items() if key != "recursive" or value}}
    if own == "jobs":
        action = "stop" if foreign.startswith("kill") else "output"
        id = next((arguments[key] for key in ("bash_id", "shell_id", "task_id", "id") if key in arguments), None)
        rest = {key: value for key, value in arguments.items() if key not in ("bash_id", "shell_id", "task_id", "id")}
        return own, {"action": action, "id": id, **rest}
    return own, dict(arguments)


def _editor_call(name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    command = arguments.get("command")
    rest = {key: value for key, value in arguments.items() if key != "command" and value is not None}
    match command:
        case "view":
            if (lines := rest.pop("view_range", None)) is None:
                return "read", rest
            match lines:
                case [int(first), int(last)] if last == -1 or last >= first:
                    return "read", {**rest, "offset": first, **({} if last == -1 else {"limit": last - first + 1})}
            raise ToolError(f"{name}: `view_range` must be two line numbers, such as [1, 40].")
        case "create":
            return "write", {"content" if key == "file_text" else key: value for key, value in rest.items()}
        case "str_replace":
            return "edit", {"new_str": "", **rest}
        case "insert":
            return "edit", {"new_str" if key == "insert_text" else key: value for key, value in rest.items()}
        case "undo_edit":
            raise ToolError(
                f"{name}: single edits cannot be undone. Put the old text back with `edit`, or the whole file with `write`."
            )
    raise ToolError(f"There is no tool `{name}` with the command `{command}`. Use `read`, `write` and `edit`.")


def _line_numbers(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """First and last line become `offset` and `limit`."""
    rest = dict(arguments)
    first = next((rest.pop(key) for key in _FIRST_LINE if key in rest), None)
    last = next((rest.pop(key) for key in _LAST_LINE if key in rest), None)
    if first is not None:
        rest["offset"] = first
    if last is not None:
        begin = rest.get("offset", 1)
        if not isinstance(begin, int) or not isinstance(last, int) or last < begin:
            raise ToolError(f"{name}: the last line must be a number that is not below the first.")
        rest["limit"] = last - begin + 1
    return rest


def command_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A list of words becomes a command line, a directory a `cd` for this command only, milliseconds seconds."""
    action = arguments.get("action")
    call = dict(action) if isinstance(action, dict) else dict(arguments)
    if isinstance(action, dict):
        call = {key: value for key, value in call.items() if key not in ("type", "env", "user") or (key != "type" and value)}
    command = next((call.pop(key) for key in ("command", "cmd") if key in call), None)
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        is_script = len(command) == 3 and command[0] in _SHELLS and command[1] in ("-c", "-lc")
        command = command[2] if is_script else shlex.join(command)
    folders = [value for key in ("workdir", "working_directory", "cwd", "directory") if (value := call.pop(key, None))]
    if folders and isinstance(command, str):
        command = f"(cd {shlex.quote(str(folders[0]))} && {{ {command}\n}})"
    for key in ("timeout_ms", "timeout"):
        value = call.get(key)
        if isinstance(value, int | float) and (key == "timeout_ms" or value >= _SHORTEST_MS):
            del call[key]
            call["timeout_s"] = value / 1000
    return call if command is None else {"command": command, **call}
