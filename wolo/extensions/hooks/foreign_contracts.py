"""Speaks with hooks of other agents in their own form: what they read on stdin, and what their answer means."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from wolo.extensions.hooks.definitions import ForeignHook, pattern
from wolo.extensions.hooks.matchers import matches
from wolo.extensions.hooks.response import BLOCKS, NO_REASON, NOTHING, TEXT_IS_CONTEXT, read_answer
from wolo.messages.terminal_text import clean
from wolo.operating_system import os
from wolo.tools.tool_values import HookDecision, HookReply

_MOST_CONTENT = 1 << 20
"""Bytes of a file that a hook is shown before it is read."""
_NAMES: Mapping[str, Mapping[str, str]] = {
    "cursor": {"Bash": "Shell", "WebFetch": "Fetch"},
    "copilot": {
        **{"Bash": "bash", "Read": "view", "Write": "create", "Edit": "edit", "Grep": "grep", "Glob": "glob"},
        **{"WebFetch": "web_fetch", "WebSearch": "web_search", "Task": "task", "TodoWrite": "update_todo"},
        **{"AskUserQuestion": "ask_user", "Skill": "skill"},
    },
    "gemini": {
        **{"Bash": "run_shell_command", "Read": "read_file", "Write": "write_file", "Edit": "replace", "Grep": "grep_search"},
        **{"Glob": "glob", "WebFetch": "web_fetch", "WebSearch": "google_web_search", "TodoWrite": "write_todos"},
        **{"AskUserQuestion": "ask_user", "Skill": "activate_skill"},
    },
    "factory": {"Bash": "Execute", "Write": "Create", "WebFetch": "FetchUrl"},
    "cline": {
        **{"Bash": "execute_command", "Read": "read_file", "Write": "write_to_file", "Edit": "replace_in_file"},
        **{"Grep": "search_files", "Glob": "list_files", "WebFetch": "web_fetch", "WebSearch": "web_search"},
        **{"AskUserQuestion": "ask_followup_question"},
    },
}
"""Tools by Claude Code's names."""
_KIRO_NAMES: Mapping[str, tuple[str, ...]] = {
    **{"Bash": ("execute_bash", "shell"), "Read": ("fs_read", "read"), "Write": ("fs_write", "write")},
    **{"Edit": ("str_replace", "fs_write", "write"), "Grep": ("grep", "read"), "Glob": ("glob", "read")},
    **{"WebFetch": ("web_fetch", "web"), "WebSearch": ("web_search", "web")},
}
"""The names of several versions; a hook is given the one that it asks for."""
_KIRO_ARGUMENTS = {
    **{"file_path": ("path",), "content": ("text", "file_text")},
    **{"old_string": ("oldStr", "old_str"), "new_string": ("newStr", "new_str")},
}
_COPILOT_ARGUMENTS = {"file_path": "path", "content": "file_text", "old_string": "old_str", "new_string": "new_str"}
_EDITS = ("Edit", "Write")
_ABOUT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("beforeShellExecution", "afterShellExecution", "pre_run_command", "post_run_command"), ("Bash",)),
    **dict.fromkeys(("beforeMCPExecution", "afterMCPExecution", "pre_mcp_tool_use", "post_mcp_tool_use"), ("mcp__",)),
    **dict.fromkeys(("beforeReadFile", "pre_read_code", "post_read_code"), ("Read",)),
    **dict.fromkeys(("afterFileEdit", "pre_write_code", "post_write_code"), _EDITS),
}
"""Events for some tools only."""


def to_stdin(hook: ForeignHook, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Translates from Claude Code's form; None: the hook is not about this call."""
    if not _is_about(hook, data):
        return None
    match hook.contract:
        case "cursor":
            return _for_cursor(hook.their_event, data)
        case "copilot":
            return _for_copilot(data)
        case "windsurf":
            return _for_windsurf(hook.their_event, data)
        case "kiro":
            return _for_kiro(hook, data)
        case "cline":
            return _for_cline(hook.their_event, data)
        case _:
            return {**data, "hook_event_name": hook.their_event, **_tool_fields(hook.contract, data)}


def _is_about(hook: ForeignHook, data: Mapping[str, Any]) -> bool:
    tool = data.get("tool_name")
    if tool is None:  # two events of Cline are one here
        return (data.get("source") == "resume") is (hook.their_event == "TaskResume") or not hook.their_event.startswith("Task")
    tools = _ABOUT.get(hook.their_event)
    if tools is not None and not tool.startswith(tools):
        return False
    if hook.their_event.endswith("ShellExecution"):
        command = str(data["tool_input"].get("command", ""))
        return hook.their_matcher in ("", "*") or pattern(hook.their_matcher).search(command) is not None
    names = (*_kiro_names(tool),) if hook.contract == "kiro" else (_tool(hook.contract, tool),)
    return matches(hook.their_matcher, tuple(dict.fromkeys((*names, tool, str(data.get("wolo_tool_name", ""))))))


def _kiro_names(tool: str) -> tuple[str, ...]:
    if not tool.startswith("mcp__"):
        return (*_KIRO_NAMES.get(tool, (tool.lower(),)), "@builtin")
    server, _, name = tool.removeprefix("mcp__").partition("__")
    return f"@{server}/{name}", f"@{server}", "@mcp"


def _tool(contract: str, name: str) -> str:
    if name.startswith("mcp__") and contract in ("cursor", "copilot"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return f"MCP:{tool}" if contract == "cursor" else f"{server}-{tool}"
    return _NAMES.get(contract, {}).get(name, name)


def _tool_fields(contract: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {"tool_name": _tool(contract, data["tool_name"])} if "tool_name" in data else {}


def _output(data: Mapping[str, Any]) -> str:
    return str((data.get("wolo_tool_response") or {}).get("output", ""))


def _for_cursor(event: str, data: Mapping[str, Any]) -> dict[str, Any]:
    arguments, cwd = data.get("tool_input") or {}, str(data.get("cwd", ""))
    common = {
        "conversation_id": data.get("session_id", ""),
        "generation_id": data.get("tool_use_id") or data.get("session_id", ""),
        "model": data.get("model", ""),
        "hook_event_name": event,
        "cursor_version": "",
        "workspace_roots": [cwd],
        "user_email": None,
        "transcript_path": data.get("transcript_path"),
    }
    duration = data.get("duration_ms", 0)
    server, _, tool = str(data.get("tool_name", "")).removeprefix("mcp__").partition("__")
    parts: dict[str, dict[str, Any]] = {
        "beforeShellExecution": {"command": arguments.get("command", ""), "cwd": cwd, "sandbox": False},
        "afterShellExecution": {"command": arguments.get("command", ""), "output": _output(data), "duration": duration},
        "beforeMCPExecution": {"tool_name": tool, "tool_input": json.dumps(arguments), "server": server},
        "afterMCPExecution": {
            **{"tool_name": tool, "tool_input": json.dumps(arguments), "result_json": json.dumps(_output(data))},
            "duration": duration,
        },
        "afterFileEdit": {"file_path": arguments.get("file_path", ""), "edits": _edits(arguments)},
        "beforeSubmitPrompt": {"prompt": data.get("prompt", ""), "attachments": []},
        "stop": {"status": "completed", "loop_count": int(bool(data.get("stop_hook_active")))},
    }
    if event == "beforeReadFile":
        path = str(arguments.get("file_path", ""))
        return {**common, "file_path": path, "content": _content(path), "attachments": []}
    if event in parts:
        return {**common, **parts[event]}
    rest = {name: value for name, value in data.items() if not name.startswith("wolo_") and name != "hook_event_name"}
    if "tool_name" in data:
        failed = data.get("error")
        rest |= {**_tool_fields("cursor", data), "duration": duration, "cwd": cwd}
        rest |= {"error_message": failed, "failure_type": "error"} if failed else {"tool_output": _output(data)}
    return {**common, **rest}


def _edits(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    new = arguments.get("new_string", arguments.get("content", ""))
    return [{"old_string": arguments.get("old_string", ""), "new_string": new}]


def _content(path: str) -> str:
    """Empty where the file cannot be read, as the call then fails by itself."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return file.read(_MOST_CONTENT).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _for_copilot(data: Mapping[str, Any]) -> dict[str, Any]:
    common: dict[str, Any] = {
        "sessionId": data.get("session_id", ""),
        "timestamp": round(time.time() * 1000),
        "cwd": data.get("cwd", ""),
        "transcriptPath": data.get("transcript_path"),
    }
    if "tool_name" in data:
        arguments = {_COPILOT_ARGUMENTS.get(name, name): value for name, value in data["tool_input"].items()}
        is_args = data["hook_event_name"] != "PermissionRequest"
        common |= {"toolName": _tool("copilot", data["tool_name"])}
        common |= {"toolArgs": json.dumps(arguments)} if is_args else {"toolInput": arguments}
        if "wolo_tool_response" in data:
            kind = "failure" if data.get("error") else "success"
            common["toolResult"] = {"resultType": kind, "textResultForLlm": _output(data)}
            common |= {"error": data["error"]} if data.get("error") else {}
        return common
    error = {"error": {"name": "Error", "message": str(data.get("error", ""))}} if "error" in data else {}
    same = {name: data[name] for name in ("prompt", "source", "reason", "trigger", "message") if name in data}
    ends = {"stopReason": "end_turn"} if data["hook_event_name"] in ("Stop", "SubagentStop") else {}
    agent = {"agentName": data["agent_type"]} if "agent_type" in data else {}
    return {**common, **same, **error, **ends, **agent}


def _for_windsurf(event: str, data: Mapping[str, Any]) -> dict[str, Any]:
    arguments, cwd = data.get("tool_input") or {}, str(data.get("cwd", ""))
    server, _, tool = str(data.get("tool_name", "")).removeprefix("mcp__").partition("__")
    kind = event.partition("_")[2]
    info: dict[str, dict[str, Any]] = {
        "read_code": {"file_path": arguments.get("file_path", "")},
        "write_code": {"file_path": arguments.get("file_path", ""), "edits": _edits(arguments)},
        "run_command": {"command_line": arguments.get("command", ""), "cwd": cwd},
        "mcp_tool_use": {"mcp_server_name": server, "mcp_tool_name": tool, "mcp_tool_arguments": arguments},
        "user_prompt": {"user_prompt": data.get("prompt", "")},
        "cascade_response": {"response": data.get("last_assistant_message", "")},
    }
    return {
        "agent_action_name": event,
        "trajectory_id": data.get("session_id", ""),
        "execution_id": data.get("tool_use_id") or data.get("session_id", ""),
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tool_info": info[kind],
    }


def _for_kiro(hook: ForeignHook, data: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a tool, and the prompt, have the same names as Claude Code's."""
    stdin = {name: value for name, value in data.items() if not name.startswith("wolo_")} | {"hook_event_name": hook.their_event}
    if "tool_name" in data:
        names, arguments = _kiro_names(data["tool_name"]), dict(data["tool_input"])
        theirs = {new: arguments[old] for old, more in _KIRO_ARGUMENTS.items() if old in arguments for new in more}
        if "path" in theirs:
            done = {"Write": "create", "Edit": "str_replace"}.get(data["tool_name"])
            theirs |= {"command": done} if done else {"operations": [{"mode": "Line", "path": theirs["path"]}]}
        stdin["tool_name"] = next((each for each in names if matches(hook.their_matcher, (each,))), names[0])
        stdin["tool_input"] = arguments | theirs
    return stdin


def _for_cline(event: str, data: Mapping[str, Any]) -> dict[str, Any]:
    task, tool = data.get("session_id", ""), str(data.get("tool_name", ""))
    own = data.get("tool_input") or {}
    if tool.startswith("mcp__"):
        server, _, name = tool.removeprefix("mcp__").partition("__")
        tool, own = "use_mcp_tool", {"server_name": server, "tool_name": name, "arguments": own}
    elif "old_string" in own:
        own = {**own, "diff": f"------- SEARCH\n{own['old_string']}\n=======\n{own.get('new_string', '')}\n+++++++ REPLACE\n"}
    named = {{"file_path": "path", "pattern": "regex"}.get(name, name): value for name, value in own.items()}
    arguments = {name: value if isinstance(value, str) else json.dumps(value) for name, value in named.items()}
    called = {"toolName": _tool("cline", tool), "parameters": arguments}
    result = {"result": _output(data), "success": "error" not in data, "executionTimeMs": data.get("duration_ms", 0)}
    about: dict[str, dict[str, Any]] = {
        "PreToolUse": called,
        "PostToolUse": {**called, **result},
        "UserPromptSubmit": {"prompt": data.get("prompt", ""), "attachments": []},
    }
    return {
        "clineVersion": "",
        "hookName": event,
        "timestamp": str(round(time.time() * 1000)),
        "taskId": task,
        "workspaceRoots": [str(data.get("cwd", ""))],
        "userId": "",
        event[0].lower() + event[1:]: about.get(event, {"taskMetadata": {"taskId": task, "ulid": task}}),
    }


def variables(hook: ForeignHook, folder: Path | None) -> dict[str, str]:
    """Environment of the hook; its own values may name variables."""
    named = {"CURSOR_PROJECT_DIR": str(folder)} if hook.contract == "cursor" and folder else {}
    return {**named, **{name: os.path.expandvars(value) for name, value in hook.variables.items()}}


def read_foreign_answer(hook: ForeignHook, event: str, exit_code: int, stdout: bytes, stderr: bytes) -> HookReply | str:
    """As `read_answer`, for the other agent's words."""
    if hook.contract in ("gemini", "factory"):
        return read_answer(event, exit_code, stdout, stderr)
    if hook.contract == "kiro" and exit_code == 0:
        is_shown = event in (*TEXT_IS_CONTEXT, "PreToolUse")
        return HookReply(context=clean(stdout.decode("utf-8", "replace")).strip()[:16_000]) if is_shown else NOTHING
    if hook.contract == "kiro" and exit_code == BLOCKS and event not in ("PreToolUse", "UserPromptSubmit"):
        return f"ended with status {exit_code}"  # it blocks nothing there
    if hook.contract == "cline":  # what is printed last counts, whatever the exit code
        stdout = _last_object(stdout)
        exit_code = 0 if stdout else exit_code
    if exit_code != 0:
        return read_answer(event, exit_code, stdout, stderr)
    if hook.contract == "windsurf" or not stdout.strip().startswith(b"{"):
        return NOTHING  # of Windsurf's only the exit code counts
    try:
        table = msgspec.json.decode(stdout, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return f"printed JSON that cannot be understood: {clean(str(error))}"
    # The fields of Cursor, Copilot and Cline, which have no name in common with another meaning
    nested = each if isinstance(each := table.get("hookSpecificOutput"), dict) else {}
    fields = {**table, **nested}
    word = next((fields[name] for name in ("permission", "permissionDecision", "behavior", "decision") if fields.get(name)), "")
    decision: HookDecision = _WORDS.get(word, "") if isinstance(word, str) else ""
    reasons = (
        *("agent_message", "agentMessage", "user_message", "userMessage", "permissionDecisionReason"),
        *("message", "reason", "errorMessage"),
    )
    reason = next((each for name in reasons if isinstance(each := fields.get(name), str) and each), "")
    if not isinstance(cancel := table.get("cancel", False), bool):
        word = cancel
    is_cancelled = (cancel is True or table.get("shouldContinue") is False) and event != "Stop"
    if table.get("continue") is False or is_cancelled:
        decision = "deny"
    if isinstance(follow_up := table.get("followup_message"), str) and follow_up and event in ("Stop", "SubagentStop"):
        decision, reason = "deny", follow_up
    contexts = (fields.get(name) for name in ("additional_context", "additionalContext", "contextModification"))
    context = next((each for each in contexts if isinstance(each, str)), "")
    is_unclear = bool(word) and not decision
    if is_unclear and event == "PreToolUse":
        decision, reason = "ask", f"A hook answered {json.dumps(word)}, which wolo does not understand."
    shown = clean(re.sub(r"\s+", " ", reason)).strip()[:4_000]
    return HookReply(
        decision=decision,
        reason=(shown or NO_REASON) if decision in ("deny", "ask") else shown,
        context=clean(context)[:16_000],
        unclear=json.dumps(word) if is_unclear else "",
        stops=decision == "deny" and event == "SessionStart",
        stop_reason=shown,
    )


def _last_object(stdout: bytes) -> bytes:
    """JSON among other lines; as it is, if it cannot be read; empty if there is none."""
    ends = stdout.rfind(b"}") + 1 or len(stdout)
    parts = [stdout[found.start() : ends] for found in re.finditer(rb"^[ \t]*\{", stdout, re.MULTILINE)][:100]
    for part in parts:
        with suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            msgspec.json.decode(part, type=dict[str, Any])
            return part
    return parts[0] if parts else b""


_WORDS: Mapping[str, HookDecision] = {"allow": "allow", "deny": "deny", "ask": "ask", "block": "deny", "approve": "allow"}
