"""The Messages API: Claude's own, and what other providers serve in its likeness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wolo.errors import BadRequest, ContextOverflow, ProviderError
from wolo.formats.anthropic.dialect import AnthropicDialect, settled
from wolo.formats.anthropic.marks import MOST, cached_stretches, marked, places, with_mark
from wolo.formats.anthropic.messages import THINKING, AnthropicLayout
from wolo.formats.anthropic.options import limit, offered, options, remembered
from wolo.formats.anthropic.stream import AnthropicDecoder
from wolo.formats.encoding.encoder import EncodedHistory, Kept, block, encode_json, joined, split_system
from wolo.formats.encoding.tool_block import OfferedTools
from wolo.formats.errors.classify import classify
from wolo.formats.format import Block, Framing, Request, ToolSpec
from wolo.messages.deltas import Delta
from wolo.messages.message import Message
from wolo.messages.unicode import clean

__all__ = ["Anthropic", "AnthropicDialect"]


class Anthropic:
    """Remembers the bytes of what it has encoded: a conversation that grew by one message costs one message."""

    name = "anthropic"
    framing: Framing = "sse"

    def __init__(self, dialect: AnthropicDialect, *, provider_hint: str = "") -> None:
        """`provider_hint` is what a person may do when the key is refused."""
        self._dialect = dialect
        self._hint = provider_hint
        self._history = EncodedHistory()
        self._tools = OfferedTools()
        self._head: tuple[bytes, bytes] = (b"", b"")
        """Tools and system prompt of the last request, without marks."""
        self._prefix: tuple[Request | None, str] = (None, "")
        """The request that was encoded last, and the digest of it."""

    def path(self, model: str) -> str:
        return "/v1/messages"

    def encode(self, request: Request) -> bytes:
        """The keys stand in a fixed order, so equal histories give equal bytes, in this process and in the next."""
        text, messages = split_system(request.messages, request.system)
        text = clean(text)
        self._tools.take(request.tools, offered)
        tools = self._tools.written or remembered(messages)
        system = [{"type": "text", "text": text}] if text.strip() else []
        self._head = (joined(tools), joined(system))
        kept, prefix = self._lay(request, messages)
        self._prefix = (request, prefix)
        has_marks = self._dialect.cache_marks and "cache_control" not in request.dropped_fields
        return self._body(request, tools, system, kept, has_marks=has_marks)

    def blocks(self) -> Sequence[Block]:
        tools, system = self._head
        head = [*([block("tools", tools)] if tools else []), *([block("system", system)] if system else [])]
        return [*head, *self._history.blocks()]

    def decoder(self, request: Request) -> AnthropicDecoder:
        if self._prefix[0] is not request:
            self.encode(request)
        return self._new_decoder(request.tools)

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        """An answer to the request that was encoded last."""
        return self._new_decoder(self._tools.specs).read_whole(body)

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The answer's limit counts into the window: with a smaller one the conversation may still fit."""
        error = classify(status, headers, body, provider_hint=self._hint)
        if isinstance(error, ContextOverflow) and "max_tokens" in error.message:
            error.field = "max_tokens"
        elif isinstance(error, BadRequest) and error.field is None and "effort" in error.message:
            error.field = "effort"
        return error

    def _new_decoder(self, tools: Sequence[ToolSpec]) -> AnthropicDecoder:
        return AnthropicDecoder((tool.name for tool in tools), self._prefix[1])

    def _lay(self, request: Request, messages: tuple[Message, ...]) -> tuple[list[Kept], str]:
        opening = b"\n".join(self._head)
        thinks = "signature" not in request.dropped_fields
        kept, layout = self._history.lay(
            messages,
            "",
            (request.producer, opening, thinks),
            lambda: AnthropicLayout(self._dialect, request.producer, opening, thinking=thinks),
        )
        assert isinstance(layout, AnthropicLayout)  # made two lines above
        return kept, layout.prefix

    def _body(
        self,
        request: Request,
        tools: list[dict[str, Any]],
        system: list[dict[str, Any]],
        kept: list[Kept],
        *,
        has_marks: bool,
    ) -> bytes:
        encoded = [each.encoded for each in kept]
        if has_marks:
            room = MOST
            long = self._dialect.long_cache
            cached = cached_stretches(kept)
            if tools and not cached:  # the mark behind the system prompt serves for both
                tools = [*tools[:-1], with_mark(tools[-1], long=long)]
                room -= 1
            system = [with_mark(each, long=long) for each in system]
            for at in places(kept, cached, room - len(system)):
                encoded[at] = marked(kept[at])
        body = [encode_json({"model": request.model, "max_tokens": limit(request, self._dialect), "stream": True})[:-1]]
        if tools:
            body += [b',"tools":', encode_json(tools)]
            body += [] if request.tools else [b',"tool_choice":{"type":"none"}']
        if system:
            body += [b',"system":', encode_json(system)]
        body.append(b',"messages":[')
        body += [piece for each in encoded for piece in (each, b",")][:-1]  # joined once, with the rest: the history is large
        body.append(b"]")
        fields = options(request, settled(self._dialect, request.model), may_think=_may_think(kept))
        return b"".join([*body, b"," if fields else b"", encode_json(fields)[1:]])


def _may_think(kept: Sequence[Kept]) -> bool:
    """A model that counts its thinking wants to see some at the beginning of the round of calls it is in."""
    opened_by: dict[str, Any] | None = None
    for item in (item for each in reversed(kept) for item in reversed(each.laid.items)):
        first = item["content"][0]["type"]
        if item["role"] == "user" and first != "tool_result":
            break
        if item["role"] == "assistant":
            opened_by = item
    return opened_by is None or opened_by["content"][0]["type"] in THINKING
