"""The Chat Completions API, as served by OpenAI and most other providers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wolo.formats.chat_dialect import ChatDialect
from wolo.formats.encoding.encoder import BaseFormat, encode_json, sampling_of, split_system
from wolo.formats.encoding.thinking_levels import GLM_ALWAYS_THINKS, GLM_EFFORTS, always_thinks, glm_version, nearest_level
from wolo.formats.encoding.wire_forms import tool_functions
from wolo.formats.format import Request, ThinkingLevel, ToolSpec
from wolo.formats.openai_chat.encode import ChatEncoder, to_llm_messages

if TYPE_CHECKING:
    from wolo.formats.openai_chat.decode import ChatDecoder

__all__ = ["ChatDialect", "OpenAIChat", "to_llm_messages"]

MESSAGE_FIELDS = frozenset(
    {"reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "thinking", "developer", "role", "name"}
)
"""Refused fields that belong to messages, not to the request body."""

WEB_SEARCH = {"type": "web_search", "web_search": {"enable": True, "search_engine": "search-prime", "search_result": True}}
"""As GLM's servers take it."""


class OpenAIChat(BaseFormat[ChatDialect]):
    name = "openai-chat"

    def path(self, model: str) -> str:
        return "/chat/completions"

    def encode(self, request: Request) -> bytes:
        """Keys have a fixed order: equal histories give equal bytes, also across processes."""
        before = (encode_json({"model": request.model})[:-1], b',"messages":[')
        tools = (
            encode_json([WEB_SEARCH])
            if request.web_search
            else self._tools.take(request.tools, self._functions, (self.name, self._dialect))
        )
        system, messages = split_system(request.messages, request.system)
        options = encode_json(self._options(request))[1:]
        withheld = request.dropped_fields & MESSAGE_FIELDS
        encoder = ChatEncoder(self._dialect, request.producer, withheld, history=self._history, for_server=True)
        return encoder.join(messages, system, before, (b"]", b',"tools":' if tools else b"", tools, b",", options))

    def _decoder(self, tools: Sequence[ToolSpec]) -> ChatDecoder:
        from wolo.formats.openai_chat.decode import ChatDecoder  # noqa: PLC0415  # not needed before the response

        return ChatDecoder(self._dialect, {tool.name: tool.parameters for tool in tools})

    def _functions(self, tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
        dialect = self._dialect
        functions = tool_functions(tools, dialect.reserved_tool_names, null_types=dialect.schema_null_types)
        strict = {"strict": False} if dialect.strict_field else {}
        return [{"type": "function", "function": {**function, **strict}} for function in functions]

    def _options(self, request: Request) -> dict[str, Any]:
        dialect = self._dialect
        options: dict[str, Any] = {"stream": True}
        if dialect.usage_option:
            options["stream_options"] = {"include_usage": True}
        if request.tools:
            options |= {"tool_choice": "auto"} if "auto" in dialect.tool_choice_levels else {}
            options |= {"parallel_tool_calls": True} if dialect.parallel_flag else {}
            options |= {"tool_stream": True} if dialect.tool_stream else {}
        if "thinking" not in request.dropped_fields:  # the whole group was refused
            options |= thinking_fields(dialect, request.model, request.thinking)
        sampling = sampling_of(request)
        if dialect.sampling == "glm":
            options |= {name: min(max(value, 0.01), 1.0) for name, value in sampling.items()}
            options |= {"do_sample": False} if sampling.get("temperature", 1.0) <= 0 else {}
        elif dialect.sampling == "open":
            options |= sampling
        if request.stop and dialect.stop_sequences:
            options["stop"] = list(request.stop)
        if request.json_schema is not None and dialect.response_format != "none":
            options["response_format"] = {"type": dialect.response_format}
            if dialect.response_format == "json_schema":
                from wolo.formats.encoding.answer_schema import OPENAI, strict_schema  # noqa: PLC0415  # only typed answers need it

                strict = strict_schema(request.json_schema, OPENAI)
                form = {"schema": request.json_schema} if strict is None else {"schema": strict, "strict": True}
                options["response_format"]["json_schema"] = {"name": "answer", **form}
        kept = {name: value for name, value in options.items() if name not in request.dropped_fields or name == "stream"}
        first = dialect.max_tokens_field  # the other name when the server refused this one
        other = "max_completion_tokens" if first == "max_tokens" else "max_tokens"
        name = next((field for field in (first, other) if field not in request.dropped_fields), None)
        return kept | ({name: request.max_tokens} if name and request.max_tokens is not None else {})


GLM_KNOWS_EFFORT = (5, 2)
GLM_THINKS = (4, 5)
QWEN_BUDGETS: dict[ThinkingLevel, int] = {"minimal": 1024, "low": 4096, "medium": 16384, "high": 32768}
_ON = {"type": "enabled", "clear_thinking": False}


def thinking_fields(dialect: ChatDialect, model: str, level: ThinkingLevel | None) -> dict[str, Any]:
    """Fields for the request body; empty when no level is set and the server's default applies."""
    if level is not None and dialect.thinking_levels:
        level = nearest_level(level, dialect.thinking_levels)
    if dialect.thinking_param_style == "glm":
        # `clear_thinking: false` keeps reasoning of earlier turns, which improves answers and caching.
        version = glm_version(model)
        if version is not None and version < GLM_THINKS:
            return {}
        if version is not None and version >= GLM_ALWAYS_THINKS:
            effort = {} if level is None else {"reasoning_effort": GLM_EFFORTS[level]}
            return {"thinking": {"clear_thinking": False} if level == "off" else _ON, **effort}
        if level == "off":
            return {"thinking": {"type": "disabled", "clear_thinking": False}}
        if version == GLM_KNOWS_EFFORT and level is not None:
            return {"thinking": _ON, "reasoning_effort": level}
        return {"thinking": _ON}
    if level is None:
        return {}
    on = level != "off"
    match dialect.thinking_param_style:
        case "deepseek":
            return {"thinking": {"type": "enabled" if on else "disabled"}}
        case "kimi":
            return {"thinking": {"type": "enabled" if on else "disabled"}} if on or not always_thinks("kimi", model) else {}
        case "qwen":
            return {"enable_thinking": on, **({"thinking_budget": QWEN_BUDGETS[level]} if level in QWEN_BUDGETS else {})}
        case "template_kwargs":
            return {"chat_template_kwargs": {"enable_thinking": on}}
        case "openrouter":
            return {"reasoning": {"effort": "xhigh" if level == "max" else level} if on else {"enabled": False}}
        case "effort":
            return {"reasoning_effort": level if on else "none"}
        case _:
            return {}
