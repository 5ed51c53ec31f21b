"""Translates the events of a turn into messages of the protocol."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from wolo.agent import events
from wolo.agent.budget import add
from wolo.agent.hook_calls import STOP_FAILURES, HookedResult
from wolo.conversation.conversation import Conversation
from wolo.extensions.hooks.claude_results import to_claude_response
from wolo.extensions.hooks.matchers import PERMISSION_MODES
from wolo.frontends.claude_protocol.wire_calls import to_wire_call, to_wire_names
from wolo.frontends.stream_json import STATUS, cost_of, tool_result
from wolo.frontends.streams import error_text
from wolo.messages.message import Message, Usage
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart, blob_of, new_id

WireMessage = dict[str, Any]


def wire_answer(id: str, model: str, block: WireMessage, usage: Usage) -> WireMessage:
    """The message of one block, whose stop reason is not known yet."""
    head = {"id": id, "type": "message", "role": "assistant", "model": model, "content": [block]}
    return {**head, "stop_reason": None, "stop_sequence": None, "usage": wire_usage(usage)}


def wire_usage(usage: Usage) -> WireMessage:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "server_tool_use": {"web_search_requests": 0},
        "service_tier": "standard",
    }


class PartialMessages:
    """Events of the Messages API for what is streamed. Calls come whole: their arguments have other names in wolo."""

    def __init__(self) -> None:
        self._head: WireMessage | None = None
        """The message that has not begun yet."""
        self._kind = ""
        """Of the open block; empty: none is open."""
        self._num_blocks = 0

    def begin(self, id: str, model: str) -> None:
        usage = wire_usage(Usage())
        message = {"id": id, "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
        self._head, self._kind, self._num_blocks = {**message, "stop_reason": None, "stop_sequence": None}, "", 0

    def on_delta(self, kind: str, text: str) -> Iterator[WireMessage]:
        yield from self._start()
        if self._kind != kind:
            yield from self._stop()
            yield from self._open({"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})})
        yield self._delta({"type": f"{kind}_delta", kind: text})

    def end(self, blocks: list[WireMessage], stop_reason: str | None, usage: WireMessage) -> Iterator[WireMessage]:
        yield from self._start()
        was_streamed = bool(self._kind or self._num_blocks)
        yield from self._stop()
        for block in blocks if not was_streamed else ():
            if block["type"] == "tool_use":
                continue
            yield from self.on_delta(block["type"], block[block["type"]])
            yield from self._stop()
        for block in blocks:
            if block["type"] == "tool_use":
                yield from self._open({**block, "input": {}})
                yield self._delta({"type": "input_json_delta", "partial_json": json.dumps(block["input"], ensure_ascii=False)})
                yield from self._stop()
        yield {"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": None}, "usage": usage}
        yield {"type": "message_stop"}

    def _start(self) -> Iterator[WireMessage]:
        if self._head is not None:
            head, self._head = self._head, None
            yield {"type": "message_start", "message": head}

    def _open(self, block: WireMessage) -> Iterator[WireMessage]:
        self._kind = block["type"]
        yield {"type": "content_block_start", "index": self._num_blocks, "content_block": block}

    def _delta(self, delta: WireMessage) -> WireMessage:
        return {"type": "content_block_delta", "index": self._num_blocks, "delta": delta}

    def _stop(self) -> Iterator[WireMessage]:
        if self._kind:
            yield {"type": "content_block_stop", "index": self._num_blocks}
            self._kind = ""
            self._num_blocks += 1


VERSION = "2.1.248"
"""Version of Claude Code whose protocol this is; the SDKs look at it."""
SIGNATURE = "anthropic.signature"
_SUBTYPES = {"done": "success", "max_turns": "error_max_turns", "max_cost": "error_max_budget_usd"}
_OUTPUT_ERROR = "error_max_structured_output_retries"
_STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refused": "refusal"}
_MCP_STATUS = {**STATUS, "needs consent": "pending", "known": "connected"}


class ModelTotals(Struct):
    """Usage of one model since the process began."""

    usage: Usage = Usage()
    cost: float = 0.0
    """US dollars, as far as prices are known."""
    is_cost_known: bool = True

    def add(self, usage: Usage) -> None:
        cost = cost_of(usage)
        self.usage, self.cost = add(self.usage, usage), self.cost + (cost or 0.0)
        self.is_cost_known = self.is_cost_known and cost is not None


class MessageWriter:
    """The messages of one session; totals are those of the process."""

    def __init__(self, conversation: Conversation, session_id: str, *, partial: bool) -> None:
        """`partial`: deltas are sent too."""
        self.conversation = conversation
        self._session_id = session_id
        self._partial = PartialMessages() if partial else None
        self._message_id = ""
        """Of the answer that is being received."""
        self._model = conversation.info.model
        """The model of the last request."""
        self._totals: dict[str, ModelTotals] = {}
        self._tasks: dict[str, events.TaskStarted] = {}
        self._denials: list[WireMessage] = []

    def init(self) -> WireMessage:
        info, skills = self.conversation.info, self.conversation.user_files.skills(self.conversation.choice)
        servers = mcp_servers(self.conversation)
        tools = [*(spec.name for spec in self.conversation.tools), *(tool["name"] for each in servers for tool in each["tools"])]
        return self._system(
            "init",
            cwd=str(info.cwd),
            model=info.model,
            permissionMode=PERMISSION_MODES[info.mode],
            tools=to_wire_names(tools),
            mcp_servers=[{"name": each["name"], "status": each["status"]} for each in servers],
            agents=[each.name for each in self.conversation.subagents.agents.offers],
            skills=[each.name for each in skills.for_model],
            slash_commands=[],
            plugins=[],
            apiKeySource="none",
            output_style=self.conversation.permissions.config.settings.output_style or "default",
            claude_code_version=f"{VERSION} (wolo)",
        )

    def on_event(self, event: events.Event) -> Iterator[WireMessage]:
        match event:
            case events.RequestStarted():
                self._model, self._message_id = event.model, new_id("msg")
                if self._partial is not None:
                    self._partial.begin(self._message_id, event.model)
            case events.TextStreamed() | events.ThinkingStreamed() if self._partial is not None:
                for delta in self._partial.on_delta("text" if isinstance(event, events.TextStreamed) else "thinking", event.text):
                    yield self._wrap({"type": "stream_event", "event": delta, "parent_tool_use_id": None})
            case events.AnswerEnded():
                yield from self._answer(event.message)
            case events.CallEnded():
                result = tool_result(event.part)
                yield self._wrap({**result, "parent_tool_use_id": None, "tool_use_result": self._tool_output(event)})
            case events.CallDenied():
                call = to_wire_call(event.part.tool, event.part.input, self.conversation.info.cwd)
                self._denials.append({"tool_name": call.name, "tool_use_id": event.part.id, "tool_input": call.input})
                if event.part.outcome == "denied_by_rule":
                    yield self._system(
                        "permission_denied",
                        tool_name=call.name,
                        tool_use_id=event.part.id,
                        decision_reason=event.reason,
                        message=event.part.output,
                    )
            case events.AttemptFailed():
                yield self._system(
                    "api_retry",
                    attempt=event.attempt,
                    max_retries=event.tries,
                    retry_delay_ms=round(event.delay_s * 1000),
                    error_status=event.error.status,
                    error=STOP_FAILURES.get(event.error.kind, "unknown"),
                )
            case events.ModelReplaced():
                yield self._system("informational", content=f"{event.model} answers now: {event.error.message}", level="warning")
            case events.CompactionStarted():
                yield self._system("status", status="compacting")
            case events.Compacted() if event.reason != "masked":
                trigger = "manual" if event.reason in ("manual", "restored") else "auto"
                metadata = {"trigger": trigger, "pre_tokens": event.tokens_before, "post_tokens": event.tokens_after}
                yield self._system("compact_boundary", compact_metadata=metadata)
            case events.ModeChanged():
                yield self._system("status", status=None, permissionMode=PERMISSION_MODES[event.mode])
            case events.TaskStarted():
                self._tasks[event.session_id] = event
                about = {"task_id": event.session_id, "tool_use_id": event.part_id, "task_type": "local_agent"}
                yield self._system("task_started", **about, description=event.agent, prompt=event.prompt)
            case events.TaskEnded():
                yield self._task_end(event)

    def on_task_event(self, event: events.Event, call_id: str, *, with_text: bool) -> Iterator[WireMessage]:
        """Calls and results of a subagent; `with_text`: its words, too."""
        parent = {"parent_tool_use_id": call_id}
        match event:
            case events.AnswerEnded():
                model = next((each.model for each in self._tasks.values() if each.part_id == call_id), self._model)
                for part in event.message.parts:
                    block = self._block(part) if with_text or isinstance(part, ToolPart) else None
                    if block is not None:
                        body = wire_answer(event.message.id, model, block, event.message.usage or Usage())
                        yield self._wrap({"type": "assistant", "message": body, **parent})
            case events.CallEnded():
                yield self._wrap({**tool_result(event.part), **parent, "tool_use_result": self._tool_output(event)})

    def result(self, ended: events.TurnEnded, structured: Mapping[str, Any]) -> WireMessage:
        """`structured`: the field of a typed answer, or nothing."""
        subtype = _SUBTYPES.get(ended.cause, "error_during_execution")
        if ended.error is not None and ended.error.kind == "output":
            subtype = _OUTPUT_ERROR
        denials, self._denials = self._denials, []
        outcome: WireMessage = {"result": ended.answer, **structured}
        if subtype != "success":
            error = ended.error
            text = error_text(error) if error else _CAUSES.get(ended.cause, ended.cause)
            outcome = {"errors": [text]}
        return self._wrap(
            {
                "type": "result",
                "subtype": subtype,
                "is_error": subtype != "success",
                "duration_ms": round(ended.duration_s * 1000),
                "duration_api_ms": round(ended.provider_s * 1000),
                "num_turns": ended.num_answers,
                "stop_reason": _STOP_REASONS.get(ended.finish_reason),
                **outcome,
                "total_cost_usd": sum(each.cost for each in self._totals.values()),
                "usage": wire_usage(ended.usage),
                "modelUsage": {model: self._model_usage(totals) for model, totals in self._totals.items()},
                "permission_denials": denials,
            }
        )

    def replay(self, message: Mapping[str, Any]) -> WireMessage:
        """A prompt of the program, as it was received."""
        return self._wrap({"type": "user", "message": message, "parent_tool_use_id": None, "isReplay": True})

    def state(self, name: str) -> WireMessage:
        """Tells the SDK, which keeps it from the program, whether another turn follows."""
        return self._system("session_state_changed", state=name, sdk_host_only=True)

    def _answer(self, message: Message) -> Iterator[WireMessage]:
        """One message for each block, as a streamed response has them."""
        usage = message.usage or Usage()
        self._totals.setdefault(self._model, ModelTotals()).add(usage)
        blocks = [block for part in message.parts if (block := self._block(part)) is not None]
        if self._partial is not None:
            stop = _STOP_REASONS.get(message.finish_reason)
            for event in self._partial.end(blocks, stop, wire_usage(usage)):
                yield self._wrap({"type": "stream_event", "event": event, "parent_tool_use_id": None})
        for block in blocks:
            body = wire_answer(self._message_id or message.id, self._model, block, usage)
            yield self._wrap({"type": "assistant", "message": body, "parent_tool_use_id": None})

    def _block(self, part: Any) -> WireMessage | None:
        match part:
            case TextPart() if part.text:
                return {"type": "text", "text": part.text}
            case ThinkingPart() if part.text:
                return {"type": "thinking", "thinking": part.text, "signature": blob_of(part.blobs, SIGNATURE)}
            case ToolPart():
                call = to_wire_call(part.tool, part.input, self.conversation.info.cwd)
                return {"type": "tool_use", "id": part.id, "name": call.name, "input": call.input}
        return None

    def _tool_output(self, event: events.CallEnded) -> Any:
        part = event.part
        call = to_wire_call(part.tool, part.input, self.conversation.info.cwd)
        if part.outcome != "ok" or call.call is None:
            return part.output
        result = HookedResult(part=part, view=event.view, files_changed=event.files_changed)
        return to_claude_response(call.call, result.payload)

    def _task_end(self, event: events.TaskEnded) -> WireMessage:
        started = self._tasks.pop(event.session_id, None)
        self._totals.setdefault(started.model if started else self._model, ModelTotals()).add(event.usage)
        counts = {"tool_uses": event.calls, "duration_ms": round(event.duration_s * 1000)}
        return self._system(
            "task_notification",
            task_id=event.session_id,
            tool_use_id=event.part_id,
            status={"done": "completed", "interrupted": "stopped"}.get(event.ended, "failed"),
            output_file="",
            summary=f"{event.agent}: {event.ended}",
            usage={"total_tokens": event.usage.context_tokens, **counts},
        )

    def _model_usage(self, totals: ModelTotals) -> WireMessage:
        usage, model = totals.usage, self.conversation.choice.model
        return {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "thinkingTokens": usage.reasoning_tokens,
            "cacheReadInputTokens": usage.cache_read_tokens,
            "cacheCreationInputTokens": usage.cache_write_tokens,
            "webSearchRequests": 0,
            "costUSD": totals.cost,
            "costBasis": "list" if totals.is_cost_known else "unknown",
            "contextWindow": model.context or 0,
            "maxOutputTokens": model.max_output or 0,
        }

    def _system(self, subtype: str, **fields: Any) -> WireMessage:
        return self._wrap({"type": "system", "subtype": subtype, **fields})

    def _wrap(self, message: WireMessage) -> WireMessage:
        return {**message, "session_id": self._session_id, "uuid": str(uuid.uuid4())}


_CAUSES = {
    "max_turns": "Reached the maximum number of turns.",
    "max_cost": "Reached the maximum budget.",
    "max_tokens": "Reached the maximum number of tokens.",
    "max_seconds": "Reached the time limit.",
    "interrupted": "The turn was interrupted.",
    "blocked": "A hook or a permission ended the turn.",
}


def mcp_servers(conversation: Conversation) -> list[WireMessage]:
    """Status of the MCP servers, with their tools."""
    return [
        {
            "name": each.name,
            "status": _MCP_STATUS[each.state],
            **({"error": each.why} if each.why else {}),
            "tools": [{"name": name, "description": about} for name, about in each.tools],
        }
        for each in conversation.servers.statuses()
    ]


def failure(message: str, session_id: str = "") -> WireMessage:
    """The result of a session that cannot begin or go on."""
    head = {"type": "result", "subtype": "error_during_execution", "is_error": True, "stop_reason": None, "errors": [message]}
    numbers = dict.fromkeys(("duration_ms", "duration_api_ms", "num_turns", "total_cost_usd"), 0)
    totals = {"usage": wire_usage(Usage()), "modelUsage": {}, "permission_denials": []}
    return {**head, **numbers, **totals, "session_id": session_id, "uuid": str(uuid.uuid4())}
