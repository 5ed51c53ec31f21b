"""Makes the lines of stream-json: one dict for each event, and the result of a run."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from wolo.agent import events
from wolo.conversation.phrasing import describe_briefly
from wolo.messages.message import RESPONSE_MODEL, Message, Usage
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart

if TYPE_CHECKING:
    from wolo.conversation.conversation import Conversation

Line = dict[str, Any]
CHECK_FIELDS = ("exit_code", "failures", "duration_s", "timed_out")
COMPACTION_FIELDS = ("reason", "tokens_before", "tokens_after", "outputs_shortened", "messages_left_out", "is_summarised")

_SUBTYPES = {
    "done": "success",
    "unverified": "error_verification",
    "max_turns": "error_max_turns",
    "max_cost": "error_max_cost",
    "max_tokens": "error_max_tokens",
    "max_seconds": "error_max_seconds",
    "model_error": "error_model",
    "unavailable": "error_unavailable",
    "interrupted": "error_interrupted",
    "session_error": "error_session",
    "blocked": "error_blocked",
    "goal": "error_goal",
}
STATUS: Mapping[str, str] = {
    "ready": "connected",
    "known": "pending",
    "starting": "pending",
    "failed": "failed",
    "needs consent": "needs-consent",
    "off": "disabled",
}
"""Status of an MCP server in other agents' streams; `pending`: it starts on first use, or is starting."""


def init_line(conversation: Conversation) -> Line:
    info = conversation.info
    return {
        "type": "system",
        "subtype": "init",
        "session_id": info.session_id,
        "model": info.model,
        "thinking": conversation.choice.thinking,
        "prefix_hash": _prefix_hash(conversation),
        "cwd": str(info.cwd),
        "mode": info.mode,
        "sandbox": info.sandbox,
        "tools": list(info.tool_names),
        "mcp_servers": [{"name": each.name, "status": STATUS[each.state]} for each in conversation.servers.statuses()],
    }


def _prefix_hash(conversation: Conversation) -> str:
    """SHA-256 of the system prompt and the tools, without the working directory: equal for the same agent elsewhere."""
    prefix, info = conversation.agent.services.prefix, conversation.info
    text = msgspec.json.encode([prefix.system, prefix.tools], order="deterministic").decode()
    for folder in {str(info.cwd), str(info.root)}:
        text = text.replace(folder, "")
    return sha256(text.encode()).hexdigest()


def event_line(event: events.Event) -> Line | None:
    """The line of an event, without its session id; None: it has none. Deltas are lines of type `stream_event`."""
    match event:
        case events.TextStreamed():
            return {"type": "stream_event", "event": {"type": "text_delta", "text": event.text}}
        case events.ThinkingStreamed():
            return {"type": "stream_event", "event": {"type": "thinking_delta", "thinking": event.text}}
        case events.CallStreamed():
            fragment = {"id": event.id, "slot": event.slot, "name": event.tool, "partial_json": event.fragment}
            return {"type": "stream_event", "event": {"type": "tool_input_delta", **fragment}}
        case events.AnswerEnded():
            return {"type": "assistant", "message": assistant_message(event.message)}
        case events.CallEnded():
            return tool_result(event.part)
        case events.CallDenied():
            return system_line("denied", **denial(event))
        case events.AttemptFailed():
            limit = {"is_limit": True} if event.is_limit else {}
            return system_line("retry", attempt=event.attempt, delay_s=event.delay_s, error=error_object(event.error), **limit)
        case events.ModelReplaced():
            return system_line("fallback", model=event.model, error=error_object(event.error))
        case events.Compacted():
            return system_line("compaction", **_fields(event, COMPACTION_FIELDS))
        case events.Verified():
            found = _fields(event.check, CHECK_FIELDS) | {"new_failures": event.new_failures}
            return system_line("verification", command=event.command, when=event.when, **found)
        case events.JobStarted():
            return system_line("job_started", **_fields(event, ("id", "command", "pid")))
        case events.JobEnded():
            return system_line("job_ended", **_fields(event, ("id", "command", "cause", "exit_code", "duration_s")))
        case events.ModeChanged():
            return system_line("mode", mode=event.mode, text=describe_briefly(event))
        case events.TaskStarted() | events.TaskEnded():
            return system_line("task", **_task(event))
        case events.HookAwaited():
            return system_line("hook_awaited", hook=event.hook, commands=event.commands)
    return None


EVENT_OF_SUBTYPE = {
    "denied": events.CallDenied,
    "retry": events.AttemptFailed,
    "fallback": events.ModelReplaced,
    "compaction": events.Compacted,
}


def event_of_line(line: Mapping[str, Any]) -> events.Event:
    """The event of a line that came from a server, as far as the line has it. Raises KeyError, TypeError or ValueError."""
    if (kind := EVENT_OF_SUBTYPE[line["subtype"]]) is events.CallDenied:
        part = ToolPart(id="", tool=str(line["tool"]), input=dict(line["input"]))
        return events.CallDenied(part=part, reason=str(line["reason"]), agent=str(line.get("agent", "")))
    fields = {name: line[name] for name in kind.__struct_fields__ if name in line}
    if kind is events.AttemptFailed:
        fields |= {"tries": 0, "error": line["error"] or {"kind": "", "message": "The attempt failed."}}
    event: events.Event = msgspec.convert(fields | {"type": kind.__struct_config__.tag}, kind)
    return event


def system_line(subtype: str, **details: Any) -> Line:
    return {"type": "system", "subtype": subtype, **details}


def denial(event: events.CallDenied) -> Line:
    found = {"tool": event.part.tool, "input": event.part.input, "reason": event.reason}
    return found | ({"agent": event.agent} if event.agent else {})


class RunTotals:
    """Collects from the events of a run what its result line states."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.denials: list[Line] = []
        self._changed: set[str] = set()
        self._model = conversation.info.model
        """The model of the last request."""

    def on_event(self, event: events.Event) -> None:
        match event:
            case events.CallDenied():
                self.denials.append(denial(event))
            case events.CallEnded():
                self._changed.update(event.files_changed)
            case events.RequestStarted():
                self._model = event.model

    def result(self, ended: events.TurnEnded, exit_code: int) -> Line:
        info = self._conversation.info
        return (
            result_head(ended.cause, exit_code, ended.error, denied=bool(self.denials))
            | {
                "result": ended.answer,
                "session_id": info.session_id,
                "num_turns": ended.num_answers,
                "duration_ms": round(ended.duration_s * 1000),
                "duration_api_ms": round(ended.provider_s * 1000),
                "total_cost_usd": cost_of(ended.usage),
                "usage": usage_object(ended.usage),
                "model": self._model,
                "stop_reason": ended.finish_reason or None,
                "permission_denials": self.denials,
                "files_changed": sorted(
                    [os.path.relpath(path, info.root) if Path(path).is_relative_to(info.root) else path for path in self._changed]
                ),
                "verification": work_object(ended.work) | _baseline(ended.verification),
            }
            | ({"goal": msgspec.to_builtins(ended.goal)} if ended.goal else {})
        )


def result_head(cause: str, exit_code: int, error: events.ErrorInfo | None, *, denied: bool) -> dict[str, Any]:
    if (subtype := _SUBTYPES.get(cause, "error_config")) == "success" and denied:
        subtype = "error_denied"
    head = {"type": "result", "subtype": subtype, "is_error": subtype != "success"}
    return head | {"exit_code": exit_code, "error": error_object(error)}


def error_object(error: events.ErrorInfo | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {name: getattr(error, name) for name in ("kind", "message", "hint", "status", "code", "resets_at")}


def work_object(work: events.WorkCheck) -> dict[str, Any]:
    """The check that followed the work; its time is in UTC, `line` is for the user."""
    at = None if work.at is None else datetime.fromtimestamp(round(work.at), UTC).isoformat().replace("+00:00", "Z")
    return {"status": work.status, "command": work.command or None, "at": at, "line": work.line or None}


def _baseline(verification: events.Verification | None) -> dict[str, Any]:
    """The user's check before and after the work."""
    if verification is None:
        return {}
    looks = {
        name: _fields(look, CHECK_FIELDS) if look else None
        for name, look in (("before", verification.before), ("after", verification.after))
    }
    tells = bool(verification.new_failures) or (verification.after is not None and verification.after.is_conclusive)
    passed = not verification.new_failures if tells else None
    return {
        "command": verification.command,
        "passed": passed,
        **looks,
        "new_failures": verification.new_failures,
        "runs": verification.runs,
    }


def _fields(value: events.Event | events.Check, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def assistant_message(message: Message) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            content.append({"type": "text", "text": part.text})
        elif isinstance(part, ThinkingPart):
            content.append({"type": "thinking", "thinking": part.text})
        elif isinstance(part, ToolPart):
            content.append({"type": "tool_use", "id": part.id, "name": part.tool, "input": part.input})
    head = {"role": "assistant", "id": message.id, "content": content, "usage": usage_object(message.usage or Usage())}
    return head | ({"model": named} if (named := message.metadata.get(RESPONSE_MODEL)) else {})


def tool_result(part: ToolPart) -> dict[str, Any]:
    content: Any = part.output
    if part.output_parts:
        media = [
            {
                "type": each.type,
                "source": {"type": "base64", "media_type": each.media_type, "data": base64.b64encode(each.data).decode("ascii")},
            }
            for each in part.output_parts
        ]
        content = [{"type": "text", "text": part.output}, *media]
    block = {"type": "tool_result", "tool_use_id": part.id, "content": content, "is_error": part.is_error}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def _task(event: events.TaskStarted | events.TaskEnded) -> dict[str, Any]:
    head = {"tool_use_id": event.part_id, "agent": event.agent, "task_session_id": event.session_id}
    if isinstance(event, events.TaskStarted):
        background = {"background": True} if event.background else {}
        return {"status": "started", **head, "model": event.model, "prompt": event.prompt, **background}
    counted = {"num_turns": event.answers, "num_calls": event.calls, "usage": usage_object(event.usage)}
    told = {"total_cost_usd": cost_of(event.usage), "duration_ms": round(event.duration_s * 1000)}
    return {"status": "ended", **head, "ended": event.ended, **counted, **told, "files_changed": list(event.files_changed)}


def usage_object(usage: Usage) -> dict[str, int]:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    return {name: getattr(usage, name) for name in names}


def cost_of(usage: Usage) -> float | None:
    return usage.cost.total if usage.cost is not None else None
