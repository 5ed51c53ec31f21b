"""Ollama's native API, `/api/chat`: JSON lines, with the context window in each request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from wolo.errors import BadRequest, ProviderError
from wolo.formats.encoding.encoder import BaseFormat, encode_json, sampling_of, split_system
from wolo.formats.encoding.thinking_levels import nearest_level
from wolo.formats.encoding.wire_forms import tool_functions
from wolo.formats.format import Framing, Request, ThinkingLevel, ToolSpec
from wolo.formats.ollama.encode import OllamaDialect, OllamaLayout

if TYPE_CHECKING:
    from wolo.formats.ollama.decode import OllamaDecoder

__all__ = ["Ollama", "OllamaDialect"]

KNOWS_LEVELS_ONLY = re.compile(r"gpt-?oss", re.IGNORECASE)
NOT_PULLED = re.compile(r"model .*not found", re.IGNORECASE | re.DOTALL)


class Ollama(BaseFormat[OllamaDialect]):
    """Chat templates put tools before the conversation."""

    name = "ollama"
    framing: Framing = "lines"

    def path(self, model: str) -> str:
        return "/api/chat"

    def encode(self, request: Request) -> bytes:
        """Keys have a fixed order: equal histories give equal bytes, also across processes."""
        before = (encode_json({"model": request.model})[:-1], b',"messages":[')
        tools = self._tools.take(request.tools, _functions, _functions)
        fields = encode_json(self._fields(request))[1:]
        system, messages = split_system(request.messages, request.system)
        layout = partial(OllamaLayout, self._dialect, request.producer)
        encoded = self._history.encode(messages, system, request.producer, layout)
        return encoded.join(before, (b"]", b',"tools":' if tools else b"", tools, b",", fields))

    def _decoder(self, tools: Sequence[ToolSpec]) -> OllamaDecoder:
        from wolo.formats.ollama.decode import OllamaDecoder  # noqa: PLC0415  # not needed before the response

        return OllamaDecoder(self._dialect, {tool.name: tool.parameters for tool in tools})

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        error = super().read_error(status, headers, body)
        if isinstance(error, BadRequest) and status == 404 and NOT_PULLED.search(error.message):
            error.hint = error.hint if "ollama pull" in error.hint else "`ollama pull NAME` fetches a model."
        elif isinstance(error, BadRequest) and status in (404, 405):
            error.hint = "Check the base URL: Ollama's own API lies at the host itself, such as http://127.0.0.1:11434."
        return error

    def _fields(self, request: Request) -> dict[str, Any]:
        dialect = self._dialect
        fields: dict[str, Any] = {"stream": True}
        if dialect.refuse_overflow:
            fields |= {"truncate": False, "shift": False}
        if (think := self._think(request)) is not None:
            fields["think"] = think
        if request.json_schema is not None:
            fields["format"] = request.json_schema
        if dialect.keep_alive:
            fields["keep_alive"] = dialect.keep_alive
        kept = {
            name: value for name, value in fields.items() if name in ("stream", "think") or name not in request.dropped_fields
        }
        # The server's default window is too small for an agent.
        num_ctx = min(self._dialect.num_ctx, request.context or self._dialect.num_ctx)
        given = {"num_predict": request.max_tokens, **sampling_of(request), "stop": list(request.stop) or None}
        options = {name: value for name, value in given.items() if value is not None and name not in request.dropped_fields}
        return kept | {"options": {"num_ctx": num_ctx, **options}}

    def _think(self, request: Request) -> bool | ThinkingLevel | None:
        """Falls back to a boolean when the value was refused, and to nothing when the field was."""
        style, level = self._dialect.think, request.thinking
        if level is None or style == "none" or "thinking" in request.dropped_fields:
            return None
        if style == "levels" or (style == "auto" and KNOWS_LEVELS_ONLY.search(request.model)):
            if "think" not in request.dropped_fields:
                return nearest_level(level, self._dialect.thinking_levels)
        elif "think" in request.dropped_fields:
            return None
        return level != "off"


def _functions(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": function} for function in tool_functions(tools)]
