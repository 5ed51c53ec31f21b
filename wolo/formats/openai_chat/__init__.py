"""Chat Completions: what OpenAI began and nearly every other server speaks, each with quirks that a dialect names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wolo.errors import ProviderError
from wolo.formats.dialect import Dialect
from wolo.formats.encoding.encoder import EncodedHistory, block, encode_json
from wolo.formats.encoding.sampling import sampling_of
from wolo.formats.encoding.schema import bend
from wolo.formats.encoding.tool_block import OfferedTools
from wolo.formats.encoding.tool_names import to_wire
from wolo.formats.errors.classify import classify
from wolo.formats.format import Block, Framing, Request, ToolSpec
from wolo.formats.openai_chat.llm_messages import ChatEncoder, to_llm_messages
from wolo.formats.openai_chat.stream import ChatDecoder
from wolo.formats.openai_chat.thinking import thinking_fields
from wolo.messages.deltas import Delta

__all__ = ["Dialect", "OpenAIChat", "to_llm_messages"]

MESSAGE_FIELDS = frozenset(
    {"reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "thinking", "developer", "role", "name"}
)
"""Refused fields that concern the messages and not the body."""


class OpenAIChat:
    """Remembers the bytes of what it has encoded: a conversation that grew by one message costs one message."""

    name = "openai-chat"
    framing: Framing = "sse"

    def __init__(self, dialect: Dialect, *, provider_hint: str = "") -> None:
        """`provider_hint` is what a person may do when the key is refused."""
        self._dialect = dialect
        self._hint = provider_hint
        self._history = EncodedHistory()
        self._tools = OfferedTools()

    def path(self, model: str) -> str:
        return "/chat/completions"

    def encode(self, request: Request) -> bytes:
        """The keys stand in a fixed order, so equal histories give equal bytes, in this process and in the next."""
        head = {"model": request.model}
        body = [encode_json(head)[:-1], b',"messages":[', self._messages(request), b"]"]
        if tools := self._tools.take(request.tools, self._function):
            body += [b',"tools":', tools]
        return b"".join([*body, b",", encode_json(self._options(request))[1:]])

    def blocks(self) -> Sequence[Block]:
        tools = [block("tools", self._tools.encoded)] if self._tools.encoded else []
        return [*tools, *self._history.blocks()]

    def decoder(self, request: Request) -> ChatDecoder:
        return ChatDecoder(self._dialect, {tool.name: tool.parameters for tool in request.tools})

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        """Calls in it are those of the tools that were encoded last."""
        return ChatDecoder(self._dialect, {tool.name: tool.parameters for tool in self._tools.specs}).read_whole(body)

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return classify(status, headers, body, provider_hint=self._hint)

    def _messages(self, request: Request) -> bytes:
        withheld = request.dropped_fields & MESSAGE_FIELDS
        encoder = ChatEncoder(self._dialect, request.producer, withheld, history=self._history, for_server=True)
        return to_llm_messages(request.messages, system=request.system, encoder=encoder).encoded

    def _function(self, tool: ToolSpec) -> dict[str, Any]:
        function = {
            "name": to_wire(tool.name, self._dialect.reserved_tool_names),
            "description": tool.description,
            "parameters": bend(tool.parameters, null_types=self._dialect.schema_null_types),
        }
        return {"type": "function", "function": {**function, "strict": False} if self._dialect.strict_field else function}

    def _options(self, request: Request) -> dict[str, Any]:
        dialect = self._dialect
        options: dict[str, Any] = {"stream": True}
        if dialect.usage_option:
            options["stream_options"] = {"include_usage": True}
        if request.tools:
            options |= {"tool_choice": "auto"} if "auto" in dialect.tool_choice_levels else {}
            options |= {"parallel_tool_calls": True} if dialect.parallel_flag else {}
            options |= {"tool_stream": True} if dialect.tool_stream else {}
        if "thinking" not in request.dropped_fields:  # refused as a whole, under whatever name
            options |= thinking_fields(dialect, request.model, request.thinking)
        options |= self._sampling(request)
        if request.stop and dialect.stop_sequences:
            options["stop"] = list(request.stop)
        if request.json_schema is not None and dialect.response_format != "none":
            options["response_format"] = self._response_format(request.json_schema)
        kept = {name: value for name, value in options.items() if name not in request.dropped_fields or name == "stream"}
        return kept | self._limit(request)

    def _sampling(self, request: Request) -> dict[str, Any]:
        sampling = sampling_of(request)
        match self._dialect.sampling:
            case "fixed":
                return {}
            case "glm":
                clamped: dict[str, Any] = {name: min(max(value, 0.01), 1.0) for name, value in sampling.items()}
                return clamped | ({"do_sample": False} if sampling.get("temperature", 1.0) <= 0 else {})
            case _:
                return {**sampling}

    def _limit(self, request: Request) -> dict[str, int]:
        """A server that refuses one name for the limit knows the other."""
        first = self._dialect.max_tokens_field
        other = "max_completion_tokens" if first == "max_tokens" else "max_tokens"
        name = next((field for field in (first, other) if field not in request.dropped_fields), None)
        return {name: request.max_tokens} if name and request.max_tokens is not None else {}

    def _response_format(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        if self._dialect.response_format == "json_object":
            return {"type": "json_object"}
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
