"""Thread items in the form of the app server: camel case, and the fields that it adds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wolo.frontends.codex_protocol.thread_items import ItemEvent, ThreadItem, wire_usage
from wolo.messages.message import Usage

Notification = tuple[str, dict[str, Any]]
"""Method and parameters, without the ids of thread and turn."""
_DELTAS = {
    "agent_message": "item/agentMessage/delta",
    "reasoning": "item/reasoning/textDelta",
    "command_execution": "item/commandExecution/outputDelta",
}


def notifications(event: ItemEvent, cwd: Path) -> Iterator[Notification]:
    phase, item = event
    if item.type == "error":
        yield "warning", {"message": item.fields["message"]}
    elif item.type == "todo_list":
        steps = [
            {"step": each["text"], "status": "completed" if each["completed"] else "pending"} for each in item.fields["items"]
        ]
        if phase != "completed":
            yield "turn/plan/updated", {"explanation": None, "plan": steps}
    elif phase == "delta":
        more = {"contentIndex": 0} if item.type == "reasoning" else {}
        yield _DELTAS[item.type], {"itemId": item.id, "delta": item.fields["delta"], **more}
    else:
        yield f"item/{phase}", {"item": to_app_item(item, cwd)}


def to_app_item(item: ThreadItem, cwd: Path) -> dict[str, Any]:
    fields, status = item.fields, {"in_progress": "inProgress"}.get(item.fields.get("status", ""), item.fields.get("status"))
    match item.type:
        case "agent_message":
            more: dict[str, Any] = {"type": "agentMessage", "text": fields["text"], "phase": None, "memoryCitation": None}
        case "reasoning":
            more = {"type": "reasoning", "summary": [], "content": [fields["text"]] if fields["text"] else []}
        case "command_execution":
            more = {
                "type": "commandExecution",
                "command": fields["command"],
                "cwd": str(cwd),
                "processId": None,
                "source": "agent",
                "status": status,
                "commandActions": [],
                "aggregatedOutput": fields["aggregated_output"] or None,
                "exitCode": fields.get("exit_code"),
                "durationMs": None,
            }
        case "file_change":
            kinds = {kind: {"type": kind, **({"move_path": None} if kind == "update" else {})} for kind in _KINDS}
            changes = [{**each, "kind": kinds[each["kind"]]} for each in fields["changes"]]
            more = {"type": "fileChange", "changes": changes, "status": status}
        case "mcp_tool_call":
            result = fields.get("result")
            more = {
                "type": "mcpToolCall",
                "server": fields["server"],
                "tool": fields["tool"],
                "status": "failed" if status == "declined" else status,
                "arguments": fields["arguments"],
                "result": result and {"content": result["content"], "structuredContent": None},
                "error": fields.get("error"),
                "durationMs": None,
            }
        case _:
            more = {"type": "webSearch", "query": fields.get("query", ""), "action": None}
    return {"id": item.id, **more}


_KINDS = ("add", "delete", "update")


def token_usage(usage: Usage, total: Usage, window: int | None) -> dict[str, Any]:
    return {"total": _breakdown(total), "last": _breakdown(usage), "modelContextWindow": window}


def _breakdown(usage: Usage) -> dict[str, int]:
    counts = wire_usage(usage)
    return {
        "totalTokens": counts["input_tokens"] + counts["output_tokens"],
        "inputTokens": counts["input_tokens"],
        "cachedInputTokens": counts["cached_input_tokens"],
        "outputTokens": counts["output_tokens"],
        "reasoningOutputTokens": counts["reasoning_output_tokens"],
    }
