"""Decode Messages API responses: stream events become deltas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from wolo.errors import Unavailable
from wolo.formats import response_end
from wolo.formats.anthropic.encode import PREFIX, REDACTED, SIGNATURE
from wolo.formats.encoding.wire_forms import names_by_wire
from wolo.formats.tolerant_json import (
    PayloadReader,
    as_raw,
    mapping_at,
    read_object,
    short_text,
    text_at,
    token_count,
    token_counts,
)
from wolo.messages.deltas import BreakDelta, CallDelta, Delta, FinishDelta, TextDelta, ThinkingDelta, UsageDelta
from wolo.messages.message import Usage
from wolo.messages.parts import Blob
from wolo.messages.unicode import whole

if TYPE_CHECKING:
    from wolo.formats.web_findings import WebFindings

FIELD = "thinking"
CACHE_COUNTS = ("cache_creation_input_tokens", "cache_read_input_tokens")


class _OpenBlock(Struct):
    kind: str
    slot: int = 0
    whole_input: str = ""
    """Arguments sent with the block start; used when no fragments follow."""
    signature: list[str] = []


class AnthropicDecoder:
    """Decodes one response; `close` reports the finish."""

    held_chars = 0
    findings: WebFindings | None = None

    def __init__(self, tools: Iterable[str], prefix: str) -> None:
        """`tools` are the names offered; thinking is stamped with `prefix`, the digest of the request."""
        self._events = AnthropicReader()
        self._read = self._events.read
        self._own_names = names_by_wire(tools)
        self.stamp = (Blob(PREFIX, prefix),) if prefix else ()
        self._open: dict[int, _OpenBlock] = {}
        self._prefilled: dict[int, Mapping[str, Any]] = {}
        """Blocks contained in the first event, until their own events arrive or the response ends."""
        self._counts: dict[str, int] = {}
        self._id = ""
        self._model: object = ""
        self._block_count = 0
        self._call_count = 0
        self._finish = ""
        self._explanation = ""
        self.is_complete = False

    def feed(self, *payloads: bytes) -> Sequence[Delta]:
        """Skips invalid JSON. Raises a ProviderError for error events and for two mixed responses."""
        deltas: list[Delta] = []
        for payload in payloads:
            event = self._read(payload)
            if event is None or (self.is_complete and event.type != "message_start"):
                continue  # ignore everything after the end
            if self._prefilled:
                deltas += self._begin_prefilled(event)
            deltas += self._read_event(event, payload)
        return deltas

    def _read_event(self, event: AnthropicEvent, payload: bytes) -> Sequence[Delta]:
        piece = event.delta
        if event.type != "content_block_delta" or piece is None:
            return self._on_event(event, payload)
        if piece.type == "text_delta":
            return (TextDelta(piece.text),) if piece.text else ()
        if piece.type is None and piece.text:
            return (TextDelta(piece.text),)
        if piece.citation:
            if self.findings is not None:
                self.findings.add(_object(piece.citation), text="cited_text")
            return ()
        opened = self._open.get(self._index(event))
        if piece.thinking:
            return (ThinkingDelta(piece.thinking, FIELD),)
        if opened is not None and piece.signature:
            opened.signature.append(piece.signature)
        if opened is None or opened.kind != "tool_use" or not piece.partial_json:
            return ()  # ignores calls of the server's own tools
        opened.whole_input = ""
        return (CallDelta(opened.slot, arguments=piece.partial_json),)

    def close(self) -> Sequence[Delta]:
        """Raises Unavailable when the response is incomplete, ContextOverflow when it exceeded the window."""
        if not self.is_complete:
            raise response_end.ended_early_error(self._events.skipped)
        deltas = [delta for index in list(self._open) for delta in self._complete(index)]
        reason = response_end.resolve_finish(self._finish, has_calls=self._call_count > 0)
        return [
            *deltas,
            *([self.findings.mark()] if self.findings is not None else ()),
            FinishDelta(reason, self._finish, self._explanation, *map(short_text, (self._id, self._model))),
        ]

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        if (document := read_object(body)) is None:
            raise response_end.bad_body_error(body)
        if response_end.is_error(document):
            raise response_end.response_error(200, {}, body)
        if (blocks := _blocks(document.get("content"))) is None:
            raise response_end.no_message_error()
        deltas: list[Delta] = []
        for index, block in enumerate(blocks):
            deltas += [*self._begin(index, block), *self._complete(index)]
        self._set_finish(document.get("stop_reason"), document.get("stop_details"))
        self.is_complete = True
        return [*deltas, *self._count(document.get("usage")), *self.close()]

    # Message events

    def _on_event(self, event: AnthropicEvent, payload: bytes) -> Sequence[Delta]:
        match event.type:
            case "content_block_start":
                return self._begin(self._index(event), _object(event.content_block))
            case "content_block_stop":
                return self._complete(self._index(event))
            case "message_start":
                message = _object(event.message)
                message_id = str(message.get("id") or "")
                if message_id and self._id and message_id != self._id:  # spliced in by a proxy
                    raise Unavailable("The provider mixed two responses in one stream.", status=200)
                self._id, self._model = self._id or message_id, message.get("model")
                self._prefilled = dict(enumerate(_blocks(message.get("content")) or ()))
                self._set_finish(message.get("stop_reason"), message.get("stop_details"))
                return self._count(message.get("usage"))
            case "message_delta":
                if event.delta is not None:
                    self._set_finish(event.delta.stop_reason, _object(event.delta.stop_details))
                return self._count(_object(event.usage))
            case "message_stop":
                self.is_complete = True
            case "[DONE]":
                self.is_complete = self.is_complete or bool(self._finish)
            case "error":
                raise response_end.response_error(200, {}, payload)
            case "":
                if response_end.is_error(read_object(payload) or {}):
                    raise response_end.response_error(200, {}, payload)
            case _:
                pass  # pings and unknown events
        return ()

    def _begin_prefilled(self, event: AnthropicEvent) -> list[Delta]:
        """Emit prefilled blocks before the one this event is about; all of them at the end of the response."""
        is_end = event.type in ("message_delta", "message_stop", DONE)
        if not is_end and not (event.type or "").startswith("content_block"):
            return []
        about = self._index(event)
        deltas: list[Delta] = []
        for index in [each for each in self._prefilled if is_end or each <= about]:
            block, is_before = self._prefilled.pop(index), is_end or index < about
            if is_before or event.type != "content_block_start":  # that event contains the block itself
                deltas += self._begin(index, block)
            if is_before:
                deltas += self._complete(index)
        return deltas

    def _count(self, usage: object) -> Sequence[Delta]:
        """The latest nonzero count of each kind stays."""
        if not isinstance(usage, Mapping) or not usage:
            return ()
        named: dict[str, Any] = {name: usage.get(name) for name in ("input_tokens", *CACHE_COUNTS, "output_tokens")}
        if not named[CACHE_COUNTS[0]] and isinstance(parts := usage.get("cache_creation"), Mapping):
            named[CACHE_COUNTS[0]] = sum(map(token_count, parts.values()))
        named["thinking_tokens"] = mapping_at(usage, "output_tokens_details").get("thinking_tokens")
        self._counts |= token_counts(named)
        fresh, write, read, output, thinking = (self._counts.get(name, 0) for name in named)
        return (UsageDelta(Usage(fresh, output, read, write, min(thinking, output))),)

    def _set_finish(self, reason: object, details: object) -> None:
        if not isinstance(reason, str) or not reason:
            return
        self._finish = reason
        if isinstance(details, Mapping):
            told = details.get("explanation") or details.get("category")
            self._explanation = whole(told) if isinstance(told, str) else ""

    # Block events

    def _index(self, event: AnthropicEvent) -> int:
        """Servers that do not number blocks send them one after another."""
        return event.index if event.index is not None else max(self._open, default=self._block_count)

    def _begin(self, index: int, block: Mapping[str, Any]) -> list[Delta]:
        deltas = list(self._complete(index))  # a repeated index means another block
        if self._block_count:
            deltas.append(BreakDelta())
        self._block_count += 1
        kind = block.get("type")
        self._open[index] = opened = _OpenBlock(kind if isinstance(kind, str) else "")
        match kind:
            case "text" if text := _text(block, "text"):
                deltas.append(TextDelta(text))
            case "web_search_tool_result" if self.findings is not None:
                content = block.get("content")
                if isinstance(content, list):
                    self.findings.num_searches += 1
                    self.findings.add_all(content)
                elif isinstance(content, Mapping):
                    self.findings.error = _text(content, "error_code")
            case "thinking":
                opened.signature.append(_text(block, "signature"))
                deltas += [ThinkingDelta(text, FIELD)] if (text := _text(block, "thinking")) else ()
            case "redacted_thinking" if data := _text(block, "data"):
                deltas.append(ThinkingDelta("", FIELD, (Blob(REDACTED, data), *self.stamp)))
            case "tool_use":
                if whole_input := block.get("input"):
                    is_text = isinstance(whole_input, str)
                    opened.whole_input = whole_input if is_text else json.dumps(whole_input, ensure_ascii=False)
                opened.slot = self._call_count
                self._call_count += 1
                name = _text(block, "name")
                deltas.append(CallDelta(opened.slot, _text(block, "id"), self._own_names.get(name, name)))
        return deltas

    def _complete(self, index: int) -> Sequence[Delta]:
        if (opened := self._open.pop(index, None)) is None:
            return ()
        if opened.kind == "thinking" and (signature := "".join(opened.signature)):
            return (ThinkingDelta("", FIELD, (Blob(SIGNATURE, signature), *self.stamp)),)
        if opened.kind == "tool_use" and opened.whole_input:
            return (CallDelta(opened.slot, arguments=whole(opened.whole_input)),)
        return ()


def _text(block: Mapping[str, Any], field: str) -> str:
    return whole(text_at(block, field))


def _object(raw: Raw) -> dict[str, Any]:
    return (read_object(bytes(raw)) or {}) if raw else {}


def _blocks(content: object) -> list[Mapping[str, Any]] | None:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else None


class BlockDelta(Struct, gc=False):
    """Delta of one block, or of the whole message."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    citation: Raw = Raw()
    stop_reason: str | None = None
    stop_details: Raw = Raw()


class AnthropicEvent(Struct, gc=False):
    type: str | None = None
    index: int | None = None
    delta: BlockDelta | None = None
    content_block: Raw = Raw()
    message: Raw = Raw()
    usage: Raw = Raw()
    error: Raw = Raw()


_decode = msgspec.json.Decoder(AnthropicEvent).decode

DONE = "[DONE]"
"""Event type for the `[DONE]` that some proxies append."""


class AnthropicReader(PayloadReader[AnthropicEvent]):
    def _decode(self, payload: bytes) -> AnthropicEvent:
        event = _decode(payload)
        if event.type is None:
            raise msgspec.DecodeError("an event without a type")
        return event

    def _unreadable(self, payload: bytes) -> AnthropicEvent | None:
        return AnthropicEvent(type=DONE) if payload.startswith(b"[DONE]") else super()._unreadable(payload)

    def _from_object(self, document: dict[str, Any]) -> AnthropicEvent:
        kind = document.get("type")
        delta = document.get("delta")
        index = document.get("index")
        index = index if isinstance(index, int) else None
        return AnthropicEvent(
            type=kind if isinstance(kind, str) else _infer_type(document),
            index=index,
            delta=self._piece(index, delta) if isinstance(delta, dict) else None,
            content_block=as_raw(document.get("content_block")),
            message=as_raw(document.get("message")),
            usage=as_raw(document.get("usage")),
            error=as_raw(document.get("error")),
        )

    def _piece(self, index: int | None, delta: Mapping[str, Any]) -> BlockDelta:
        kind, reason, partial = delta.get("type"), delta.get("stop_reason"), delta.get("partial_json")
        if isinstance(partial, dict):
            partial = json.dumps(partial, ensure_ascii=False)
        return BlockDelta(
            type=kind if isinstance(kind, str) else None,
            text=self._join_surrogates(index, "text", delta.get("text")),
            thinking=self._join_surrogates(index, "thinking", delta.get("thinking")),
            signature=signature if isinstance(signature := delta.get("signature"), str) else None,
            partial_json=self._join_surrogates(index, "partial_json", partial),
            citation=as_raw(delta.get("citation")),
            stop_reason=None if reason is None else str(reason),
            stop_details=as_raw(delta.get("stop_details")),
        )

    def _join_surrogates(self, index: int | None, field: str, text: object) -> str | None:
        return self._surrogates.join((index, field), text) if isinstance(text, str) else None


def _infer_type(document: Mapping[str, Any]) -> str:
    delta = document.get("delta")
    if isinstance(delta, dict):
        return "message_delta" if "stop_reason" in delta else "content_block_delta"
    fields = {"content_block": "content_block_start", "message": "message_start", "error": "error"}
    return next((kind for field, kind in fields.items() if document.get(field)), "")
