"""Translates tool results to Claude Code's form for hooks, and replaced results back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from wolo.extensions.hooks.claude_calls import ClaudeCall

_NUMBERED = re.compile(r"(\d+)→(.*)")
_TOTAL = re.compile(r"\[(?:Lines \d+ to \d+ of )?(\d+)(?: lines?)?\.")
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def to_claude_response(call: ClaudeCall, result: Mapping[str, Any]) -> Any:
    """Builds `tool_response`.

    `result` is wolo's own: `output`, `is_error`, `files_changed`, `view` and `duration_ms`.
    """
    answer = _ANSWERS.get(call.name)
    return answer(call, result) if answer else [{"type": "text", "text": result["output"]}]


def replacement_output(value: Any) -> str | None:
    """Extracts the text of `updatedToolOutput` in any tool's shape; None if there is none."""
    match value:
        case str():
            return value
        case list():
            texts = [each if isinstance(each, str) else each.get("text", "") for each in value if isinstance(each, str | dict)]
            return "\n".join(texts)
        case {"stdout": str(stdout)}:
            return "\n".join(filter(None, (stdout, str(value.get("stderr") or ""))))
        case {"file": {"content": str(content)}} | {"content": str(content)} | {"result": str(content)} | {"text": str(content)}:
            return content
        case {"content": list(blocks)}:
            return replacement_output(blocks)
        case {"filenames": list(names)}:
            return "\n".join(map(str, names))
        case _:
            return None


def failure(call: ClaudeCall, result: Mapping[str, Any]) -> str:
    """Builds `error` of a failed call; for a command it starts with the exit code."""
    code = _view(result, "output").get("exit_code") if call.name == "Bash" else None
    return f"Exit code {code}\n{result['output']}" if code is not None else str(result["output"])


def _view(result: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    view = result.get("view") or {}
    return view if view.get("type") == kind else {}


def _command(call: ClaudeCall, result: Mapping[str, Any]) -> dict[str, Any]:
    printed = _view(result, "output").get("text", result["output"])
    return {"stdout": printed, "stderr": "", "interrupted": False, "isImage": False}


def _read(call: ClaudeCall, result: Mapping[str, Any]) -> dict[str, Any]:
    lines = str(result["output"]).split("\n")
    numbered = [match for match in map(_NUMBERED.fullmatch, lines) if match]
    total = _TOTAL.match(lines[-1])
    file = {
        "filePath": call.file,
        "content": "\n".join(match[2] for match in numbered),
        "numLines": len(numbered),
        "startLine": int(numbered[0][1]) if numbered else 1,
        "totalLines": int(total[1]) if total else len(numbered),
    }
    return {"type": "text", "file": file}


def _write_result(call: ClaudeCall, result: Mapping[str, Any]) -> dict[str, Any]:
    view = _view(result, "diff")
    return {
        "type": "create" if view.get("created") else "update",
        "filePath": call.file,
        "content": call.input.get("content", ""),
        "structuredPatch": _hunks(view.get("text", "")),
        "success": True,
    }


def _edit_result(call: ClaudeCall, result: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "filePath": call.file,
        "oldString": call.input.get("old_string", ""),
        "newString": call.input.get("new_string", ""),
        "replaceAll": call.input.get("replace_all", False),
        "structuredPatch": _hunks(_view(result, "diff").get("text", "")),
        "userModified": False,
        "success": True,
    }


def _hunks(diff: str) -> list[dict[str, Any]]:
    hunks: list[dict[str, Any]] = []
    for line in diff.split("\n"):
        if match := _HUNK.match(line):
            old, old_lines, new, new_lines = (int(each) if each else 1 for each in match.groups())
            hunks.append({"oldStart": old, "oldLines": old_lines, "newStart": new, "newLines": new_lines, "lines": []})
        elif hunks and line[:1] in (" ", "+", "-"):
            hunks[-1]["lines"].append(line)
    return hunks


def _search_result(call: ClaudeCall, result: Mapping[str, Any]) -> dict[str, Any]:
    lines = list(_view(result, "listing").get("lines", ()))
    mode = call.input.get("output_mode", "content")
    if mode == "files_with_matches":
        return {"mode": mode, "filenames": lines, "numFiles": len(lines)}
    return {"mode": mode, "filenames": [], "numFiles": 0, "content": "\n".join(lines), "numLines": len(lines)}


def _names(call: ClaudeCall, result: Mapping[str, Any]) -> dict[str, Any]:
    view = _view(result, "listing")
    names, total = list(view.get("lines", ())), view.get("total", 0)
    return {"filenames": names, "durationMs": result["duration_ms"], "numFiles": len(names), "truncated": total > len(names)}


def _fetch_result(call: ClaudeCall, result: Mapping[str, Any]) -> dict[str, Any]:
    view = _view(result, "fetched")
    code = view.get("status", 0)
    return {
        "bytes": view.get("size_bytes", 0),
        "code": code,
        "codeText": HTTPStatus(code).phrase if code in set(HTTPStatus) else "",
        "result": result["output"],
        "durationMs": result["duration_ms"],
        "url": view.get("url", call.input.get("url", "")),
    }


def _task_result(call: ClaudeCall, result: Mapping[str, Any]) -> dict[str, Any]:
    view = _view(result, "delegated")
    return {
        "status": "completed",
        "agentId": view.get("session_id", ""),
        "content": [{"type": "text", "text": result["output"]}],
        "totalDurationMs": result["duration_ms"],
        "totalTokens": view.get("tokens", 0),
        "totalToolUseCount": len(view.get("calls", ())),
    }


def _list_result(call: ClaudeCall, result: Mapping[str, Any]) -> dict[str, Any]:
    return {"newTodos": call.input.get("todos", [])}


def _skill_result(call: ClaudeCall, result: Mapping[str, Any]) -> dict[str, Any]:
    return {"success": True, "commandName": call.input.get("skill", "")}


_ANSWERS: Mapping[str, Callable[[ClaudeCall, Mapping[str, Any]], dict[str, Any]]] = {
    "Bash": _command,
    "BashOutput": _command,
    "KillShell": _command,
    "Read": _read,
    "Write": _write_result,
    "Edit": _edit_result,
    "Grep": _search_result,
    "Glob": _names,
    "WebFetch": _fetch_result,
    "Task": _task_result,
    "TodoWrite": _list_result,
    "Skill": _skill_result,
}
