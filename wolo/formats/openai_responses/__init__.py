"""OpenAI's Responses API, used without server-side state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from wolo.formats.encoding.encoder import BaseFormat, block, encode_json, sampling_of, split_system
from wolo.formats.encoding.thinking_levels import nearest_level
from wolo.formats.encoding.wire_forms import tool_functions
from wolo.formats.format import Blocks, Request, ToolSpec
from wolo.formats.openai_responses.encode import ResponsesDialect, ResponsesLayout
from wolo.messages.unicode import clean

if TYPE_CHECKING:
    from wolo.formats.openai_responses.decode import ResponsesDecoder

__all__ = ["OpenAIResponses", "ResponsesDialect"]

FEWEST_OUTPUT_TOKENS = 16
"""Lower limits are refused."""
LONGEST_CACHE_KEY = 64
WEB_SEARCH = b'[{"type":"web_search"}]'
MUST_STAY = ("stream", "store")


class OpenAIResponses(BaseFormat[ResponsesDialect]):
    name = "openai-responses"
    _instructions = b""
    """The encoded system prompt of the last request, where the dialect sends it so."""

    def path(self, model: str) -> str:
        return "/responses"

    def encode(self, request: Request) -> bytes:
        """Keys have a fixed order: equal histories give equal bytes, also across processes."""
        system, messages = split_system(request.messages, request.system)
        self._instructions = b""
        if self._dialect.system == "instructions":
            self._instructions = encode_json(text) if (text := clean(system)).strip() else b""
            system = ""
        layout = partial(ResponsesLayout, self._dialect, request.producer)
        encoded = self._history.encode(messages, system, request.producer, layout)
        head = [encode_json({"model": request.model})[:-1]]
        if self._instructions:
            head += [b',"instructions":', self._instructions]
        tools = WEB_SEARCH if request.web_search else self._tools.take(request.tools, self._functions, (self.name, self._dialect))
        options = encode_json(self._options(request))[1:]
        return encoded.join((*head, b',"input":['), (b"]", b',"tools":' if tools else b"", tools, b",", options))

    def blocks(self) -> Blocks:
        system = (block("system", self._instructions),) if self._instructions else ()
        return self._history.blocks(*self._tools.blocks, *system)

    def _decoder(self, tools: Sequence[ToolSpec]) -> ResponsesDecoder:
        from wolo.formats.openai_responses.decode import ResponsesDecoder  # noqa: PLC0415  # not needed before the response

        return ResponsesDecoder({tool.name: tool.parameters for tool in tools}, self._dialect.reserved_tool_names)

    def _functions(self, tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
        """`strict` would require every property."""
        dialect = self._dialect
        functions = tool_functions(tools, dialect.reserved_tool_names, null_types=dialect.schema_null_types)
        return [{"type": "function", **function, "strict": False if dialect.strict_field else None} for function in functions]

    def _options(self, request: Request) -> dict[str, Any]:
        dialect, dropped = self._dialect, request.dropped_fields
        options: dict[str, Any] = {"stream": True, "store": False}
        if dialect.encrypted_reasoning:
            options["include"] = ["reasoning.encrypted_content"]
        if request.web_search:
            options["include"] = [*options.get("include", ()), "web_search_call.action.sources"]
        level = request.thinking  # without one the model's default applies
        if level is not None and dialect.thinking_levels:
            level = nearest_level(level, dialect.thinking_levels)
        effort = {"effort": "none" if level == "off" else level} if dialect.effort and level is not None else {}
        summary = {"summary": dialect.summary} if dialect.summary and effort.get("effort") != "none" else {}
        reasoning = {name: value for name, value in (effort | summary).items() if name not in dropped}
        options |= {"reasoning": reasoning} if reasoning else {}
        if request.tools and dialect.parallel_flag:
            options["parallel_tool_calls"] = True
        if request.max_tokens is not None:
            options["max_output_tokens"] = max(request.max_tokens, FEWEST_OUTPUT_TOKENS)
        options |= sampling_of(request) if dialect.sampling == "open" else {}
        text: dict[str, Any] = {}
        if request.json_schema is not None and dialect.json_schema:
            from wolo.formats.encoding.answer_schema import OPENAI, strict_schema  # noqa: PLC0415  # only typed answers need it

            strict = strict_schema(request.json_schema, OPENAI)
            form = {"schema": request.json_schema if strict is None else strict, "strict": strict is not None}
            text["format"] = {"type": "json_schema", "name": "answer", **form}
        text |= {"verbosity": dialect.verbosity} if dialect.verbosity else {}
        text = {name: value for name, value in text.items() if name not in dropped}
        options |= {"text": text} if text else {}
        if dialect.cache_key and request.session_id:
            options["prompt_cache_key"] = clean(request.session_id)[:LONGEST_CACHE_KEY]
        return {name: value for name, value in options.items() if name in MUST_STAY or name not in dropped}
