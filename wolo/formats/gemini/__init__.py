"""Google's Gemini API: alternating user and model contents, and signed function calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from wolo.errors import ProviderError
from wolo.formats.encoding.encoder import EncodedHistory, OfferedTools, block, encode_json, split_system
from wolo.formats.encoding.wire_forms import adapt_schema
from wolo.formats.format import Blocks, Framing, Request, ToolSpec
from wolo.formats.gemini.decode import GeminiDecoder, read_refusal
from wolo.formats.gemini.encode import NAME, GeminiDialect, GeminiLayout, gemini_name, resolve_dialect, thinking_config
from wolo.formats.gemini.openapi_schema import reduce_schema
from wolo.messages.deltas import Delta
from wolo.messages.unicode import clean

__all__ = ["Gemini", "GeminiDialect"]

OTHER_NAMES = {
    "top_p": "topP",
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "stop": "stopSequences",
    "thinking": "thinkingConfig",
    "thinking_budget": "thinkingBudget",
    "response_format": "responseJsonSchema",
    "tool_choice": "toolConfig",
}
"""Names in other formats of fields that a server may refuse."""
CONTENT_FIELDS = frozenset({"thoughtSignature", "functionResponse.parts", "id"})
"""Refused fields that belong to contents, not to the request body."""
MOST_STOPS = 5
JSON_TYPE = "application/json"


class Gemini:
    """Reuses the encoded bytes of earlier messages, so a new message costs only itself."""

    name = NAME
    framing: Framing = "sse"

    def __init__(self, dialect: GeminiDialect, *, provider_hint: str = "") -> None:
        """`provider_hint` is added to the error when the key is rejected."""
        self._dialect = dialect
        self._hint = provider_hint
        self._history = EncodedHistory()
        self._tools = OfferedTools()
        self._encoded_system = b""

    def path(self, model: str) -> str:
        """Tuned models have a folder of their own."""
        below = self._dialect.models_path.rstrip("/")
        folder, slash, name = model.partition("/")
        if slash and folder == "tunedModels":
            below, model = f"{below.rpartition('/')[0]}/tunedModels", name
        return f"{below}/{quote(model.removeprefix('models/'), safe='')}:streamGenerateContent?alt=sse"

    def encode(self, request: Request) -> bytes:
        """Keys have a fixed order: equal histories give equal bytes, also across processes."""
        dialect = resolve_dialect(self._dialect, request.model)
        dropped = {OTHER_NAMES.get(field, field) for field in request.dropped_fields}
        system, messages = split_system(request.messages, request.system)
        has_field = dialect.system_instruction and "systemInstruction" not in dropped
        self._encoded_system = encode_json({"parts": [{"text": clean(system)}]}) if has_field and system.strip() else b""
        withheld = CONTENT_FIELDS.intersection(dropped)
        contents = self._history.encode(
            messages,
            "" if has_field else system,
            (request.producer, dialect, withheld),
            lambda: GeminiLayout(dialect, request.producer, withheld),
        )
        before = [b"{"]
        if self._encoded_system:
            before += [b'"systemInstruction":', self._encoded_system, b","]
        field = dialect.schema_field if "parametersJsonSchema" not in dropped else "parameters"
        if tools := self._tools.take(request.tools, partial(_declarations, field=field), field):
            before += [b'"tools":[{"functionDeclarations":', tools, b"}],"]
            if dialect.tool_mode and "toolConfig" not in dropped:
                before += [b'"toolConfig":', encode_json({"functionCallingConfig": {"mode": dialect.tool_mode}}), b","]
        options = self._options(request, dialect, dropped)
        after = (b',"generationConfig":', encode_json(options)) if options else ()
        return contents.join((*before, b'"contents":['), (b"]", *after, b"}"))

    def blocks(self) -> Blocks:
        system = (block("system", self._encoded_system),) if self._encoded_system else ()
        return self._history.blocks(*self._tools.blocks, *system)

    def decoder(self, request: Request) -> GeminiDecoder:
        return GeminiDecoder((tool.name for tool in request.tools), self._hint)

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        return GeminiDecoder((tool.name for tool in self._tools.specs), self._hint).read_whole(body)

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return read_refusal(status, headers, body, self._hint)

    def _options(self, request: Request, dialect: GeminiDialect, dropped: Collection[str]) -> dict[str, Any]:
        thinking = thinking_config(dialect, request.thinking)
        options: dict[str, Any] = {
            "maxOutputTokens": request.max_tokens,
            "stopSequences": [clean(stop) for stop in request.stop if stop][:MOST_STOPS] or None,
            "thinkingConfig": {name: value for name, value in thinking.items() if name not in dropped} or None,
        }
        if dialect.sampling == "open":
            options |= {OTHER_NAMES.get(name, name): value for name, value in request.sampling.items()}
        may_have_schema = "responseJsonSchema" not in dropped and (dialect.json_beside_tools != "no" or not request.tools)
        if request.json_schema is not None and may_have_schema:
            is_reduced = dialect.schema_field == "parameters"
            schema = reduce_schema(request.json_schema) if is_reduced else request.json_schema
            options |= {"responseMimeType": JSON_TYPE, "responseSchema" if is_reduced else "responseJsonSchema": schema}
        return {name: value for name, value in options.items() if value is not None and name not in dropped}


def _declarations(tools: Iterable[ToolSpec], field: str) -> list[dict[str, Any]]:
    """Omits the schema of tools without arguments: Gemini refuses an empty object."""
    declarations: list[dict[str, Any]] = []
    for tool in tools:
        name = gemini_name(tool.name)
        schema = adapt_schema(tool.parameters) if field == "parametersJsonSchema" else reduce_schema(tool.parameters)
        has_arguments = bool(schema.get("properties")) or bool(set(schema) - {"type", "properties", "description", "title"})
        described = {"name": name, "description": clean(tool.description) or name}
        declarations.append(described | ({field: schema} if has_arguments else {}))
    return declarations
