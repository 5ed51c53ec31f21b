"""Turns the events of a conversation into spans and metrics of the GenAI conventions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from opentelemetry.context import Context
from opentelemetry.metrics import Meter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from wolo.agent import events
from wolo.agent.asker import RedactingAsker
from wolo.messages.call_arguments import as_json
from wolo.messages.message import RESPONSE_ID, RESPONSE_MODEL, Message, Usage
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart

NAMES = {
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "xai": "x_ai",
    "azure-openai": "azure.ai.openai",
    "azure-foundry": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "vertex": "gcp.vertex_ai",
}
"""Providers that the conventions call otherwise."""
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_LOG = logging.getLogger(__name__)


class Identity(Struct, frozen=True, kw_only=True):
    """What all spans of a conversation share."""

    session_id: str
    agent: str
    content: bool
    """Texts, arguments and results are exported, too."""
    parent: Mapping[str, str] = {}
    """W3C trace context of the program that started wolo."""


class Spans:
    """Gets each event of a conversation and of its subagents."""

    def __init__(self, tracer: Tracer, meter: Meter, identity: Identity) -> None:
        self._tracer = tracer
        self._identity = identity
        self._runs: dict[str, _AgentSpans] = {}
        """By the `task` call; empty: the main agent."""
        self.askers: dict[str, RedactingAsker] = {}
        """By session: they know where a request goes, and what was sent."""
        make, seconds = meter.create_histogram, partial(meter.create_histogram, explicit_bucket_boundaries_advisory=_SECONDS)
        about = "Number of input and output tokens used."
        self._tokens = make("gen_ai.client.token.usage", "{token}", about, explicit_bucket_boundaries_advisory=_TOKENS)
        self._durations = seconds("gen_ai.client.operation.duration", "s", "GenAI operation duration.")
        self._waits = seconds("gen_ai.client.operation.time_to_first_chunk", "s", "Time to receive the first chunk.")
        self._costs = meter.create_counter("wolo.cost", unit="{USD}", description="Cost of requests whose price is known.")

    def on_event(self, event: events.Event, task: str = "") -> None:
        """`task` is the call whose subagent emitted the event. Never raises: telemetry is not worth a turn."""
        try:
            match event:
                case events.TurnStarted() if not task:
                    parent = TraceContextTextMapPropagator().extract(dict(self._identity.parent))
                    self._begin("", self._identity.agent, self._identity.session_id, parent, event.prompt)
                case events.TaskStarted():
                    main = self._runs.get("")
                    parent = main.inside(event.part_id) if main else Context()
                    self._begin(event.part_id, event.agent, event.session_id, parent, None)
                case events.TaskEnded() if run := self._runs.pop(event.part_id, None):
                    self.askers.pop(event.session_id, None)
                    cause = "" if event.ended == "done" else event.ended
                    self._end(run, event.usage, cause, None, [])
                case events.TurnEnded() if not task and (run := self._runs.pop("", None)):
                    answer = [{"role": "assistant", "parts": [{"type": "text", "content": event.answer}]}]
                    self._end(
                        run, event.usage, "" if event.cause == "done" else event.cause, event.error, answer, event.finish_reason
                    )
                case _ if run := self._runs.get(task):
                    self._inside(run, event)
        except Exception:
            _LOG.debug("telemetry failed", exc_info=True)

    def _inside(self, run: _AgentSpans, event: events.Event) -> None:
        match event:
            case events.TextStreamed() | events.ThinkingStreamed() | events.CallStreamed():
                run.first_chunk()
            case events.RequestStarted():
                run.end_chat("superseded")
                provider, _, model = event.model.partition("/")
                asker = self.askers.get(run.session_id)
                run.start_chat(NAMES.get(provider, provider), model, asker.choice.base_url if asker else "")
                if self._identity.content and run.chat is not None and asker is not None:
                    system, messages = asker.last_sent
                    run.chat.set_attribute("gen_ai.input.messages", as_json([_message(each) for each in messages]))
                    if system:
                        run.chat.set_attribute("gen_ai.system_instructions", as_json([{"type": "text", "content": system}]))
            case events.AnswerEnded():
                self._answer(run, event.message)
            case events.AttemptFailed() | events.ModelReplaced():
                run.end_chat(_kind(event.error), event.error.message)
            case events.CallStarted():
                run.calls[event.part.id] = self._call(run, event.part)
            case events.CallEnded():
                span = run.calls.pop(event.part.id, None) or self._call(run, event.part)
                if self._identity.content:
                    span.set_attribute("gen_ai.tool.call.result", event.part.output)
                _end(span, (event.part.outcome or "error") if event.part.is_error else "")

    def _begin(self, task: str, agent: str, session_id: str, parent: Context, prompt: Message | None) -> None:
        span = self._tracer.start_span(
            f"invoke_agent {agent}",
            parent,
            SpanKind.INTERNAL,
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent, "gen_ai.conversation.id": session_id},
        )
        if self._identity.content and prompt is not None:
            span.set_attribute("gen_ai.input.messages", as_json([_message(prompt)]))
        self._runs[task] = _AgentSpans(self._tracer, self._durations, self._waits, span, session_id)

    def _end(
        self,
        run: _AgentSpans,
        usage: Usage,
        cause: str,
        error: events.ErrorInfo | None,
        answer: list[Any],
        finish_reason: str = "",
    ) -> None:
        run.end_chat(_kind(error) if error else cause or "superseded")
        for span in run.calls.values():
            _end(span, cause or "interrupted")
        if run.model:
            run.span.set_attributes({"gen_ai.provider.name": run.provider, "gen_ai.request.model": run.model})
        if finish_reason:
            run.span.set_attribute("gen_ai.response.finish_reasons", [finish_reason])
        run.span.set_attributes(_usage(usage))
        if self._identity.content and answer:
            run.span.set_attribute("gen_ai.output.messages", as_json(answer))
        _end(run.span, _kind(error) if error else cause, error.message if error and self._identity.content else "")

    def _answer(self, run: _AgentSpans, message: Message) -> None:
        if run.chat is None:
            return
        usage = message.usage or Usage()
        model = message.metadata.get(RESPONSE_MODEL) or (message.producer.model if message.producer else run.model)
        run.chat.set_attributes({"gen_ai.response.model": model, **_usage(usage)})
        if response_id := message.metadata.get(RESPONSE_ID):
            run.chat.set_attribute("gen_ai.response.id", response_id)
        if message.finish_reason:
            run.chat.set_attribute("gen_ai.response.finish_reasons", [message.finish_reason])
        if self._identity.content:
            run.chat.set_attribute("gen_ai.output.messages", as_json([_message(message)]))
        shared = {**run.attributes, "gen_ai.response.model": model}
        if usage.cost is not None:
            run.chat.set_attribute("wolo.cost_usd", usage.cost.total)
            self._costs.add(usage.cost.total, shared)
        self._tokens.record(usage.prompt_tokens, {**shared, "gen_ai.token.type": "input"})
        self._tokens.record(usage.output_tokens, {**shared, "gen_ai.token.type": "output"})
        run.end_chat("interrupted" if message.finish_reason == "interrupted" else "")

    def _call(self, run: _AgentSpans, part: ToolPart) -> Span:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": part.tool,
            "gen_ai.tool.call.id": part.wire_id,
            "gen_ai.tool.type": "function",
            "gen_ai.conversation.id": run.session_id,
        }
        if self._identity.content:
            attributes["gen_ai.tool.call.arguments"] = as_json(part.input)
        return self._tracer.start_span(f"execute_tool {part.tool}", run.context, SpanKind.INTERNAL, attributes)


class _AgentSpans:
    """The open spans of one agent."""

    def __init__(self, tracer: Tracer, durations: Any, waits: Any, span: Span, session_id: str) -> None:
        self.span = span
        self.session_id = session_id
        self.context = set_span_in_context(span)
        self.calls: dict[str, Span] = {}
        self.chat: Span | None = None
        self.provider = self.model = ""
        self.attributes: dict[str, Any] = {}
        """Of the metrics of the current request."""
        self._tracer = tracer
        self._durations = durations
        self._waits = waits
        self._is_waiting = False
        self._began = 0.0

    def inside(self, part_id: str) -> Context:
        return set_span_in_context(self.calls[part_id]) if part_id in self.calls else self.context

    def start_chat(self, provider: str, model: str, address: str) -> None:
        self.provider, self.model, self._began = provider, model, perf_counter()
        self.attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            **_server(address),
        }
        self._is_waiting = True
        more: dict[str, Any] = {"gen_ai.request.stream": True, "gen_ai.conversation.id": self.session_id}
        self.chat = self._tracer.start_span(f"chat {model}", self.context, SpanKind.CLIENT, {**self.attributes, **more})

    def first_chunk(self) -> None:
        """Does nothing for those that follow it."""
        if self._is_waiting and self.chat is not None:
            self._is_waiting = False
            waited = perf_counter() - self._began
            self.chat.set_attribute("gen_ai.response.time_to_first_chunk", waited)
            self._waits.record(waited, self.attributes)

    def end_chat(self, error: str = "", message: str = "") -> None:
        if self.chat is None:
            return
        _end(self.chat, error, message)
        self.chat = None
        self._durations.record(perf_counter() - self._began, {**self.attributes, **({"error.type": error} if error else {})})


def _end(span: Span, error: str, message: str = "") -> None:
    if error:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR, message or None))
    span.end()


def _kind(error: events.ErrorInfo) -> str:
    return str(error.status or error.kind)


def _server(address: str) -> dict[str, Any]:
    try:
        parts = urlsplit(address)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return {}
    return {"server.address": parts.hostname, "server.port": port} if parts.hostname and port else {}


def _usage(usage: Usage) -> dict[str, int]:
    thinking = {"gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens} if usage.reasoning_tokens else {}
    return {
        **thinking,
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }


def _message(message: Message) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            parts.append({"type": "text", "content": part.text})
        elif isinstance(part, ThinkingPart):
            parts.append({"type": "reasoning", "content": part.text})
        elif isinstance(part, ToolPart):
            parts.append({"type": "tool_call", "id": part.wire_id, "name": part.tool, "arguments": part.input})
            if part.status in ("completed", "failed"):
                parts.append({"type": "tool_call_response", "id": part.wire_id, "response": part.output})
    made: dict[str, Any] = {"role": message.role, "parts": parts}
    return {**made, "finish_reason": message.finish_reason} if message.finish_reason else made
