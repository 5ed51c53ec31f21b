"""Translates tool results to Claude Code's form for hooks, and replaced results back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from wolo.extensions.hooks.claude_calls import ClaudeCall
from wolo.messages.line_numbers import remove_numbers, split_output

_TOTAL = re.compile(r"\[(?:Lines \d+ to \d+ of )?(\d+)(?: lines?)?\.")
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def to_claude_response(call: ClaudeCall, result: Mapping[str, Any]) -> Any:
    """Builds `tool_response`.

    `result` is wolo's own: `output`, `is_error`, `files_changed`, `view` and `duration_ms`.
    """
    output, duration_ms = result["output"], result["duration_ms"]
    patch = _hunks(_view(result, "diff").get("text", ""))
    match call.name:
        case "Bash" | "BashOutput" | "KillShell":
            printed = _view(result, "output").get("text", output)
            return {"stdout": printed, "stderr": "", "interrupted": False, "isImage": False}
        case "Read":
            return _read(call.file, str(output))
        case "Write":
            kind = "create" if _view(result, "diff").get("created") else "update"
            content = call.input.get("content", "")
            return {"type": kind, "filePath": call.file, "content": content, "structuredPatch": patch, "success": True}
        case "Edit":
            return {
                "filePath": call.file,
                "oldString": call.input.get("old_string", ""),
                "newString": call.input.get("new_string", ""),
                "replaceAll": call.input.get("replace_all", False),
                "structuredPatch": patch,
                "userModified": False,
                "success": True,
            }
        case "Grep":
            lines = list(_view(result, "listing").get("lines", ()))
            mode = call.input.get("output_mode", "content")
            if mode == "files_with_matches":
                return {"mode": mode, "filenames": lines, "numFiles": len(lines)}
            return {"mode": mode, "filenames": [], "numFiles": 0, "content": "\n".join(lines), "numLines": len(lines)}
        case "Glob":
            view = _view(result, "listing")
            names = list(view.get("lines", ()))
            is_cut = view.get("total", 0) > len(names)
            return {"filenames": names, "durationMs": duration_ms, "numFiles": len(names), "truncated": is_cut}
        case "WebFetch":
            view = _view(result, "fetched")
            code = view.get("status", 0)
            phrase = HTTPStatus(code).phrase if code in set(HTTPStatus) else ""
            url, size = view.get("url", call.input.get("url", "")), view.get("size_bytes", 0)
            return {"bytes": size, "code": code, "codeText": phrase, "result": output, "durationMs": duration_ms, "url": url}
        case "Task":
            view = _view(result, "delegated")
            content = [{"type": "text", "text": output}]
            totals = {"totalTokens": view.get("tokens", 0), "totalToolUseCount": len(view.get("calls", ()))}
            agent = {"status": "completed", "agentId": view.get("session_id", "")}
            return {**agent, "content": content, "totalDurationMs": duration_ms, **totals}
        case "TodoWrite":
            return {"newTodos": call.input.get("todos", [])}
        case "Skill":
            return {"success": True, "commandName": call.input.get("skill", "")}
        case _:
            return [{"type": "text", "text": output}]


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


def _read(file: str, output: str) -> dict[str, Any]:
    page, note = split_output(output)
    first, lines = remove_numbers(page) or (1, [])
    total = _TOTAL.match(note)
    content = {
        "filePath": file,
        "content": "\n".join(lines),
        "numLines": len(lines),
        "startLine": first,
        "totalLines": int(total[1]) if total else len(lines),
    }
    return {"type": "text", "file": content}


def _hunks(diff: str) -> list[dict[str, Any]]:
    hunks: list[dict[str, Any]] = []
    for line in diff.split("\n"):
        if match := _HUNK.match(line):
            old, old_lines, new, new_lines = (int(each) if each else 1 for each in match.groups())
            hunks.append({"oldStart": old, "oldLines": old_lines, "newStart": new, "newLines": new_lines, "lines": []})
        elif hunks and line[:1] in (" ", "+", "-"):
            hunks[-1]["lines"].append(line)
    return hunks
