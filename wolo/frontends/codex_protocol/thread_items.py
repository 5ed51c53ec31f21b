"""Translates the events of a turn into Codex's thread items."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any, Literal

from msgspec import Struct

from wolo.agent import events
from wolo.conversation.phrasing import describe_briefly
from wolo.messages.message import Usage
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart
from wolo.tools.tool_values import Diff, Output, TodoList, View
from wolo.tools.toolbox import MCP_PREFIX

Phase = Literal["started", "updated", "completed", "delta"]
_DENIED = frozenset(("denied_by_person", "denied_by_rule"))
EDITS = frozenset(("write", "edit", "apply_patch"))


class ThreadItem(Struct, frozen=True):
    id: str
    type: str
    fields: dict[str, Any]
    """In snake case; `status` is in_progress, completed, failed or declined."""

    @property
    def wire(self) -> dict[str, Any]:
        """The form of `exec`, which has neither diffs nor declined calls."""
        fields = dict(self.fields)
        if fields.get("status") == "declined":
            fields["status"] = "failed"
        if "changes" in fields:
            fields["changes"] = [{"path": each["path"], "kind": each["kind"]} for each in fields["changes"]]
        return {"id": self.id, "type": self.type, **fields}


ItemEvent = tuple[Phase, ThreadItem]


class ItemWriter:
    """The items of one thread. Calls that only look at files have none, as in Codex they would be commands."""

    def __init__(self) -> None:
        self._num_items = 0
        self._calls: dict[str, str] = {}
        """Item ids of running calls."""
        self._streamed: dict[str, str] = {}
        """Item ids of the text and the thinking that are being streamed."""
        self._todo_id = ""
        self._todos: list[dict[str, Any]] = []

    def on_event(self, event: events.Event) -> Iterator[ItemEvent]:
        match event:
            case events.TextStreamed():
                yield from self._stream("agent_message", event.text)
            case events.ThinkingStreamed():
                yield from self._stream("reasoning", event.text)
            case events.AnswerEnded():
                for part in event.message.parts:
                    kind = {TextPart: "agent_message", ThinkingPart: "reasoning"}.get(type(part), "")
                    if kind and (text := getattr(part, "text", "")):
                        id = self._streamed.pop(kind, "") or self._next_id()
                        yield "completed", ThreadItem(id, kind, {"text": text})
                self._streamed.clear()
            case events.CallStarted():
                yield from self.begin(event.part)
            case events.CallProgressed() if event.part_id in self._calls:
                yield "delta", ThreadItem(self._calls[event.part_id], "command_execution", {"delta": event.text})
            case events.CallEnded():
                yield from self._end(event)
            case events.CallDenied():
                yield self._error(f"{event.part.tool} was denied: {event.reason}")
            case events.AttemptFailed() | events.ModelReplaced():
                yield self._error(describe_briefly(event))
            case events.Noticed(level="warning"):
                yield self._error(event.text)
            case events.TurnEnded() if self._todo_id:
                yield "completed", ThreadItem(self._todo_id, "todo_list", {"items": self._todos})
                self._todo_id = ""

    def begin(self, part: ToolPart, view: View | None = None) -> Iterator[ItemEvent]:
        """The item of a call that begins, or that the user is asked about before, with the changes it would make."""
        if part.id not in self._calls and (item := self._call(part, "in_progress")):
            self._calls[part.id] = item.id
            if item.type == "file_change":
                item.fields["changes"] = changes_of(view)
            yield "started", item

    def item_of(self, part: ToolPart) -> str:
        """The id of a running call's item; empty: it has none."""
        return self._calls.get(part.id, "")

    def _next_id(self) -> str:
        self._num_items += 1
        return f"item_{self._num_items - 1}"

    def _error(self, message: str) -> ItemEvent:
        return "completed", ThreadItem(self._next_id(), "error", {"message": message})

    def _stream(self, kind: str, text: str) -> Iterator[ItemEvent]:
        if kind not in self._streamed:
            self._streamed[kind] = self._next_id()
            yield "started", ThreadItem(self._streamed[kind], kind, {"text": ""})
        yield "delta", ThreadItem(self._streamed[kind], kind, {"delta": text})

    def _call(self, part: ToolPart, status: str) -> ThreadItem | None:
        """None: the call has no item."""
        id = self._calls.get(part.id) or self._next_id()
        if part.tool == "shell":
            fields = {"command": str(part.input.get("command", "")), "aggregated_output": "", "status": status}
            return ThreadItem(id, "command_execution", fields)
        if part.tool in EDITS:
            return ThreadItem(id, "file_change", {"changes": [], "status": status})
        if part.tool.startswith(MCP_PREFIX):
            server, _, tool = part.tool.removeprefix(MCP_PREFIX).partition("__")
            return ThreadItem(id, "mcp_tool_call", {"server": server, "tool": tool, "arguments": part.input, "status": status})
        if part.tool == "web_search":
            return ThreadItem(id, "web_search", {"query": str(part.input.get("query", ""))})
        self._num_items -= part.id not in self._calls
        return None

    def _end(self, event: events.CallEnded) -> Iterator[ItemEvent]:
        part, view = event.part, event.view
        if isinstance(view, TodoList):
            self._todos = [{"text": each.text, "completed": each.status in ("completed", "cancelled")} for each in view.items]
            phase: Phase = "updated" if self._todo_id else "started"
            self._todo_id = self._todo_id or self._next_id()
            yield phase, ThreadItem(self._todo_id, "todo_list", {"items": self._todos})
            return
        yield from self.begin(part)
        item = self._call(part, "declined" if part.outcome in _DENIED else "failed" if part.is_error else "completed")
        self._calls.pop(part.id, None)
        if item is None:
            return
        fields = dict(item.fields)
        if item.type == "command_execution":
            fields["aggregated_output"] = view.text if isinstance(view, Output) else part.output
            if isinstance(view, Output) and view.exit_code is not None:
                fields["exit_code"] = view.exit_code
                fields["status"] = "failed" if view.exit_code else fields["status"]
        elif item.type == "file_change":
            fields["changes"] = changes_of(view)
        elif item.type == "mcp_tool_call":
            content = [{"type": "text", "text": part.output}]
            fields |= (
                {"error": {"message": part.output}}
                if part.is_error
                else {"result": {"content": content, "structured_content": None}}
            )
        yield "completed", ThreadItem(item.id, item.type, fields)


def changes_of(view: View | None) -> list[dict[str, Any]]:
    """The changed files; `diff` is the whole text of a new or deleted one."""
    changes = view.changes if isinstance(view, Diff) else ()
    return [
        {
            "path": each.path,
            "kind": "add" if each.before is None else "delete" if each.after is None else "update",
            "diff": "".join(
                unified_diff(each.before.splitlines(keepends=True), each.after.splitlines(keepends=True), n=3)
                if each.before is not None and each.after is not None
                else (each.after or each.before or "")
            ),
        }
        for each in changes
    ]


def wire_usage(usage: Usage) -> dict[str, int]:
    """`input_tokens` counts cached ones, too."""
    return {
        "input_tokens": usage.prompt_tokens,
        "cached_input_tokens": usage.cache_read_tokens,
        "cache_write_input_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_output_tokens": usage.reasoning_tokens,
    }
