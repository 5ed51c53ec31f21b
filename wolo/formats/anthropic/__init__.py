"""The Anthropic Messages API: request bodies, their options and cache marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from wolo.errors import BadRequest, ContextOverflow, ProviderError
from wolo.formats.anthropic.encode import THINKING, AnthropicDialect, AnthropicLayout, resolve_dialect
from wolo.formats.encoding import encoder
from wolo.formats.encoding.encoder import CLOSE, BaseFormat, EncodedMessage, block, encode_json, join_items, sampling_of
from wolo.formats.encoding.thinking_levels import nearest_level
from wolo.formats.encoding.wire_forms import adapt_schema, wire_name
from wolo.formats.format import MOST_SEARCHES, Blocks, Decoder, Request, ThinkingLevel, ToolSpec
from wolo.messages.message import Message
from wolo.messages.unicode import clean

if TYPE_CHECKING:
    from wolo.formats.anthropic.decode import AnthropicDecoder

__all__ = ["Anthropic", "AnthropicDialect"]


class Anthropic(BaseFormat[AnthropicDialect]):
    name = "anthropic"
    _head: tuple[bytes, bytes] = (b"", b"")
    """Tools and system prompt of the last request, without cache marks."""
    _prefix: tuple[Request | None, str] = (None, "")
    """The last encoded request, and its digest."""

    def path(self, model: str) -> str:
        return self._dialect.path.replace("{model}", quote(model, safe=""))

    def encode(self, request: Request) -> bytes:
        """Keys have a fixed order: equal histories give equal bytes, also across processes."""
        text, messages = encoder.split_system(request.messages, request.system)
        text = clean(text)
        self._tools.take(request.tools, _tool_definitions, _tool_definitions)
        tools = self._tools.items or tools_in_history(messages)
        tools = [*tools, WEB_SEARCH] if request.web_search else tools
        system = [{"type": "text", "text": text}] if text.strip() else []
        self._head = (join_items(tools), join_items(system))
        opening, thinks = b"\n".join(self._head), "signature" not in request.dropped_fields
        encoded = self._history.encode(
            messages,
            "",
            (request.producer, opening, thinks),
            lambda: AnthropicLayout(self._dialect, request.producer, opening, thinking=thinks),
        )
        assert isinstance(encoded.layout, AnthropicLayout)  # created there
        self._prefix = (request, encoded.layout.prefix)
        kept = encoded.messages
        changed: dict[int, bytes] = {}
        if self._dialect.cache_marks and not request.web_search and "cache_control" not in request.dropped_fields:
            room = MAX_MARKS
            long = self._dialect.long_cache
            cached = [at for at in reversed(encoded.cached) if _takes_mark(kept[at])]
            if tools and not cached:  # the mark after the system prompt covers both
                tools = [*tools[:-1], with_mark(tools[-1], long=long)]
                room -= 1
            system = [with_mark(each, long=long) for each in system]
            for at in mark_positions(kept, cached, room - len(system)):
                changed[at] = with_mark_at_end(kept[at], long=long)
        before = [encode_json(opening_fields(request, self._dialect))[:-1]]
        if tools:
            before += [b',"tools":', encode_json(tools)]
            before += [] if request.tools or request.web_search else [b',"tool_choice":{"type":"none"}']
        if system:
            before += [b',"system":', encode_json(system)]
        before.append(b',"messages":[')
        dialect = resolve_dialect(self._dialect, request.model)
        may_think = dialect.thinking_style in ("none", "adaptive") or _may_think(kept)
        fields = option_fields(request, dialect, may_think=may_think)
        return encoded.join(before, (b"]", b"," if fields else b"", encode_json(fields)[1:]), changed)

    def blocks(self) -> Blocks:
        head = zip(("tools", "system"), self._head, strict=True)
        return self._history.blocks(*(block(label, encoded) for label, encoded in head if encoded))

    def decoder(self, request: Request) -> Decoder:
        if self._prefix[0] is not request:
            self.encode(request)
        return super().decoder(request)

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """Report `max_tokens` as the refused field when a smaller limit could still fit the window."""
        error = super().read_error(status, headers, body)
        if isinstance(error, ContextOverflow) and "max_tokens" in error.message:
            error.field = "max_tokens"
        elif isinstance(error, BadRequest) and error.field is None and "effort" in error.message:
            error.field = "effort"
        return error

    def _decoder(self, tools: Sequence[ToolSpec]) -> AnthropicDecoder:
        from wolo.formats.anthropic.decode import AnthropicDecoder  # noqa: PLC0415  # not needed before the response

        return AnthropicDecoder((tool.name for tool in tools), self._prefix[1])


def _may_think(kept: Sequence[EncodedMessage]) -> bool:
    """Thinking with a budget requires that the current round of calls starts with thinking."""
    opened_by: dict[str, Any] | None = None
    for item in (item for each in reversed(kept) for item in reversed(each.items)):
        first = item["content"][0]["type"]
        if item["role"] == "user" and first != "tool_result":
            break
        if item["role"] == "assistant":
            opened_by = item
    return opened_by is None or opened_by["content"][0]["type"] in THINKING


BUDGETS: Mapping[ThinkingLevel, int] = {
    "minimal": 1_024,
    "low": 4_096,
    "medium": 10_240,
    "high": 20_480,
    "xhigh": 32_768,
    "max": 63_999,
}
"""Thinking budgets in tokens."""
LEAST_BUDGET = 1_024
SHARE_OF_THINKING = 0.8
"""Maximum share of the output limit that thinking may use."""
EFFORTS: Mapping[ThinkingLevel, str] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
WEB_SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": MOST_SEARCHES}
SMALL_LIMIT = 4_096
"""Limit used after a server refused a higher one; every model supports it."""
UNIONS = ("anyOf", "oneOf", "allOf")

Fields = dict[str, Any]


def opening_fields(request: Request, dialect: AnthropicDialect) -> Fields:
    """The first fields of the body; clouds want some elsewhere."""
    fields: Fields = {} if "{model}" in dialect.path else {"model": request.model}
    if dialect.body_version:
        fields["anthropic_version"] = dialect.body_version
    if dialect.body_betas:
        fields["anthropic_beta"] = dialect.body_betas
    fields["max_tokens"] = max_tokens_of(request, dialect)
    return {**fields, "stream": True} if dialect.stream_field else fields


def max_tokens_of(request: Request, dialect: AnthropicDialect) -> int:
    limit = request.max_tokens or request.max_output
    if limit is None:
        limit = min(dialect.max_tokens, request.context // 2) if request.context else dialect.max_tokens
    if request.max_output:
        limit = min(limit, request.max_output)
    return min(limit, SMALL_LIMIT) if "max_tokens" in request.dropped_fields else max(limit, 1)


def option_fields(request: Request, dialect: AnthropicDialect, *, may_think: bool) -> Fields:
    """`may_think` False: the history does not allow thinking, so it is disabled for this request."""
    fields = thinking_fields(request, dialect, may_think=may_think)
    thinks = fields.get("thinking", {}).get("type") in ("enabled", "adaptive") or (
        "thinking" not in fields and dialect.thinks_unasked
    )
    if not thinks and dialect.sampling == "open":
        # Newer models refuse temperature and top_p together, so only the first is sent.
        kept = ((name, value) for name, value in sampling_of(request).items() if name not in request.dropped_fields)
        fields |= {name: min(max(value, 0.0), 1.0) for name, value in islice(kept, 1)}
    if stop := [each for each in request.stop if each.strip()]:
        fields["stop_sequences"] = stop
    if request.json_schema is not None and dialect.structured_output:
        from wolo.formats.encoding.answer_schema import ANTHROPIC, strict_schema  # noqa: PLC0415  # only typed answers need it

        strict = strict_schema(request.json_schema, ANTHROPIC)
        form = {} if strict is None else {"format": {"type": "json_schema", "schema": strict}}
        fields["output_config"] = {**fields.get("output_config", {}), **form}
    if "effort" in request.dropped_fields and "output_config" in fields:
        fields["output_config"] = {name: value for name, value in fields["output_config"].items() if name != "effort"}
    return {name: value for name, value in fields.items() if name not in request.dropped_fields and value != {}}


def thinking_fields(request: Request, dialect: AnthropicDialect, *, may_think: bool) -> Fields:
    """Empty when no level is set and the server's default applies."""
    level = request.thinking
    if dialect.thinking_style == "none":
        return {}
    if level is None and not dialect.thinks_unasked:
        return {}
    if level is not None and dialect.thinking_levels:
        level = nearest_level(level, dialect.thinking_levels)
    shown = {"display": dialect.thinking_display} if dialect.thinking_display else {}
    if level == "off" and dialect.thinking_off == "refused":
        return {"thinking": {"type": "adaptive", **shown}, "output_config": {"effort": "low"}}
    if level == "off":
        return {"thinking": {"type": dialect.thinking_off}}
    if dialect.thinking_style == "adaptive":
        effort = {} if level is None else {"output_config": {"effort": EFFORTS[level]}}
        return {"thinking": {"type": "adaptive", **shown}, **effort}
    budget = min(BUDGETS[level or "medium"], int(max_tokens_of(request, dialect) * SHARE_OF_THINKING))
    if budget < LEAST_BUDGET or not may_think:
        return {"thinking": {"type": "disabled"}} if dialect.thinks_unasked else {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget, **shown}}


# Tools


def _tool_definitions(tools: Iterable[ToolSpec]) -> list[Fields]:
    return [
        {
            "name": wire_name(tool.name),
            "description": clean(tool.description),
            "input_schema": without_unions(adapt_schema(tool.parameters)),
        }
        for tool in tools
    ]


def tools_in_history(messages: Sequence[Message]) -> list[Fields]:
    """Tools of earlier calls: they must be declared even when no tools are offered."""
    names = dict.fromkeys(wire_name(call.tool) for message in messages if message.role == "assistant" for call in message.calls)
    return [{"name": name, "description": "", "input_schema": {"type": "object", "properties": {}}} for name in names]


def without_unions(schema: Mapping[str, Any]) -> Fields:
    """Merge root unions into optional properties, because the API refuses unions at the root."""
    plain = {name: value for name, value in schema.items() if name not in UNIONS}
    properties: Fields = {}
    for union in UNIONS:
        for branch in schema.get(union, ()):
            inner = without_unions(branch)
            properties = {**inner.get("properties", {}), **properties}
            if union == "allOf" and "required" in inner:
                plain["required"] = list(dict.fromkeys([*plain.get("required", ()), *inner["required"]]))
    return {**plain, "properties": {**properties, **plain.get("properties", {})}} if properties else plain


MARK = {"type": "ephemeral"}
LONG_MARK = {"type": "ephemeral", "ttl": "1h"}
MAX_MARKS = 4
REACH_BLOCKS = 20
"""Number of blocks a mark looks back for an earlier cache entry."""


def mark_positions(kept: Sequence[EncodedMessage], cached: Sequence[int], room: int) -> list[int]:
    """Indexes of the messages to mark, at most `room`; `cached` are those that the user marked, last one first.

    Priority: end of the conversation, then blocks marked by the user, then the end of the previous request. The latter is found
    without a mark unless the last step exceeds `REACH_BLOCKS`, in which case it comes second.
    """
    markable = (at for at in range(len(kept) - 1, -1, -1) if _takes_mark(kept[at]))
    if (last := next(markable, None)) is None:
        return []
    before = list(islice((at for at in markable if kept[at].items[-1]["role"] == "user"), 1))
    between = kept[before[0] + 1 : last + 1] if before else ()
    is_far = sum(len(item["content"]) for each in between for item in each.items) > REACH_BLOCKS
    positions = [last, *before, *cached] if is_far else [last, *cached, *before]
    return sorted(list(dict.fromkeys(positions))[:room])


def with_mark_at_end(kept: EncodedMessage, *, long: bool) -> bytes:
    """Encode a message with a cache mark on its last block that supports one."""
    last = kept.items[-1]
    content = list(last["content"])
    at = max(at for at, block in enumerate(content) if block["type"] not in THINKING)
    content[at] = with_mark(content[at], long=long)
    return join_items([*kept.items[:-1], {**last, "content": content}])


def with_mark(block: Mapping[str, Any], *, long: bool) -> dict[str, Any]:
    return {**block, "cache_control": LONG_MARK if long else MARK}


def _takes_mark(kept: EncodedMessage) -> bool:
    is_markable = any(block["type"] not in THINKING for block in kept.items[-1]["content"]) if kept.items else False
    return is_markable and kept.block.label != CLOSE
