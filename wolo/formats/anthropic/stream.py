"""What comes from the Messages API: events of blocks become deltas, and an answer that ends early is told from a whole one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Raw

from wolo.errors import Unavailable
from wolo.formats.anthropic import events
from wolo.formats.anthropic.events import Event, EventReader, Piece
from wolo.formats.anthropic.messages import PREFIX, REDACTED, SIGNATURE
from wolo.formats.anthropic.usage import Counts
from wolo.formats.decoding.finish_reason import ended_early, settled_finish
from wolo.formats.decoding.loose_json import read_object
from wolo.formats.decoding.non_stream import no_document, no_message
from wolo.formats.encoding.tool_names import from_wire
from wolo.formats.errors.classify import classify, is_error
from wolo.messages.deltas import BreakDelta, CallDelta, Delta, FinishDelta, TextDelta, ThinkingDelta, UsageDelta
from wolo.messages.parts import Blob
from wolo.messages.unicode import whole

FIELD = "thinking"


class _Open:
    """A block that is being written."""

    def __init__(self, kind: str, slot: int = 0, whole_input: str = "") -> None:
        self.kind = kind
        self.slot = slot
        self.whole_input = whole_input
        """Arguments that came with the beginning; they count when no fragments come."""
        self.signature: list[str] = []


class AnthropicDecoder:
    """Reads one answer; its finish is told by `close`, once it is sure that nothing follows."""

    def __init__(self, tools: Iterable[str], prefix: str) -> None:
        """`tools` were offered; `prefix` is the digest of the request: thinking is stamped with it."""
        self._events = EventReader()
        self._read = self._events.read
        self._own_names = from_wire(tools)
        self.stamp = (Blob(PREFIX, prefix),) if prefix else ()
        self._open: dict[int, _Open] = {}
        self._brought: dict[int, Mapping[str, Any]] = {}
        """Blocks that the first event carried, until their own events come or the answer ends."""
        self._counts = Counts()
        self._id = ""
        self._num_blocks = 0
        self._num_calls = 0
        self._finish = ""
        self._explanation = ""
        self._ended = False

    @property
    def is_complete(self) -> bool:
        return self._ended

    @property
    def held_chars(self) -> int:
        return 0

    def feed(self, payload: bytes) -> Sequence[Delta]:
        """Raises a ProviderError for an error event, and where two answers got mixed. What is no JSON is skipped."""
        event = self._read(payload)
        if event is None or (self._ended and event.type != "message_start"):
            return ()  # behind its end nothing belongs to the answer, be it a call or an error
        if self._brought:
            return [*self._begin_brought(event), *self._take_event(event, payload)]
        return self._take_event(event, payload)

    def _take_event(self, event: Event, payload: bytes) -> Sequence[Delta]:
        piece = event.delta
        if event.type != "content_block_delta" or piece is None:
            return self._take(event, payload)
        if piece.type == "text_delta":
            return (TextDelta(piece.text),) if piece.text else ()
        return self._grow(event, piece)

    def close(self) -> Sequence[Delta]:
        """Raises Unavailable when the answer is not complete, ContextOverflow when it no longer fitted the window."""
        if not self._ended:
            raise ended_early(self._events.skipped)
        deltas = [delta for index in list(self._open) for delta in self._complete(index)]
        reason = settled_finish(self._finish, has_calls=self._num_calls > 0)
        return [*deltas, FinishDelta(reason, self._finish, self._explanation)]

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        """An answer in one document needs no terminal marker: its closing brace is one."""
        document = read_object(body)
        if document is None:
            raise no_document(body)
        if is_error(document):
            raise classify(200, {}, body)
        blocks = _blocks(document.get("content"))
        if blocks is None:
            raise no_message()
        deltas: list[Delta] = []
        for index, block in enumerate(blocks):
            deltas += [*self._begin(index, block), *self._complete(index)]
        self._note_end(document.get("stop_reason"), document.get("stop_details"))
        self._ended = True
        return [*deltas, *self._count(document.get("usage")), *self.close()]

    # The answer as a whole

    def _take(self, event: Event, payload: bytes) -> Sequence[Delta]:
        match event.type:
            case "content_block_start":
                return self._begin(self._index(event), _object(event.content_block))
            case "content_block_stop":
                return self._complete(self._index(event))
            case "message_start":
                return self._begin_answer(_object(event.message))
            case "message_delta":
                if event.delta is not None:
                    self._note_end(event.delta.stop_reason, _object(event.delta.stop_details))
                return self._count(_object(event.usage))
            case "message_stop":
                self._ended = True
            case events.DONE:
                self._ended = self._ended or bool(self._finish)
            case "error":
                raise classify(200, {}, payload)
            case "":
                if is_error(read_object(payload) or {}):
                    raise classify(200, {}, payload)
            case _:
                pass  # pings, and whatever is yet to come
        return ()

    def _begin_answer(self, message: Mapping[str, Any]) -> Sequence[Delta]:
        """A proxy may splice two answers: the second is not a part of the first."""
        told = str(message.get("id") or "")
        if told and self._id and told != self._id:
            raise Unavailable("The provider mixed two answers in one stream.", status=200)
        self._id = self._id or told
        self._brought = dict(enumerate(_blocks(message.get("content")) or ()))
        self._note_end(message.get("stop_reason"), message.get("stop_details"))
        return self._count(message.get("usage"))

    def _begin_brought(self, event: Event) -> list[Delta]:
        """Those that stand before the one that the event is about; all of them at the end of the answer."""
        is_end = event.type in ("message_delta", "message_stop", events.DONE)
        if not is_end and not (event.type or "").startswith("content_block"):
            return []
        about = self._index(event)
        deltas: list[Delta] = []
        for index in [each for each in self._brought if is_end or each <= about]:
            block, is_before = self._brought.pop(index), is_end or index < about
            if is_before or event.type != "content_block_start":  # that brings the block itself
                deltas += self._begin(index, block)
            if is_before:
                deltas += self._complete(index)
        return deltas

    def _count(self, usage: object) -> Sequence[Delta]:
        if not usage:
            return ()
        counted = self._counts.take(usage)
        return () if counted is None else (UsageDelta(counted),)

    def _note_end(self, reason: object, details: object) -> None:
        if not isinstance(reason, str) or not reason:
            return
        self._finish = reason
        if isinstance(details, Mapping):
            told = details.get("explanation") or details.get("category")
            self._explanation = whole(told) if isinstance(told, str) else ""

    # Its blocks

    def _index(self, event: Event) -> int:
        """Servers that do not number their blocks write one after the other."""
        return event.index if event.index is not None else max(self._open, default=self._num_blocks)

    def _begin(self, index: int, block: Mapping[str, Any]) -> list[Delta]:
        deltas = list(self._complete(index))  # an index that comes again is another block
        if self._num_blocks:
            deltas.append(BreakDelta())
        self._num_blocks += 1
        kind = block.get("type")
        self._open[index] = opened = _Open(kind if isinstance(kind, str) else "")
        match kind:
            case "text" if text := _text(block, "text"):
                deltas.append(TextDelta(text))
            case "thinking":
                opened.signature.append(_text(block, "signature"))
                deltas += [ThinkingDelta(text, FIELD)] if (text := _text(block, "thinking")) else ()
            case "redacted_thinking" if data := _text(block, "data"):
                deltas.append(ThinkingDelta("", FIELD, (Blob(REDACTED, data), *self.stamp)))
            case "tool_use":
                deltas.append(self._begin_call(opened, block))
        return deltas

    def _begin_call(self, opened: _Open, block: Mapping[str, Any]) -> Delta:
        given = block.get("input")
        if given:
            opened.whole_input = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        opened.slot = self._num_calls
        self._num_calls += 1
        name = _text(block, "name")
        return CallDelta(opened.slot, _text(block, "id"), self._own_names.get(name, name))

    def _grow(self, event: Event, piece: Piece) -> Sequence[Delta]:
        if piece.type is None and piece.text:
            return (TextDelta(piece.text),)
        opened = self._open.get(self._index(event))
        if piece.thinking:
            return (ThinkingDelta(piece.thinking, FIELD),)
        if opened is not None and piece.signature:
            opened.signature.append(piece.signature)
        return self._grow_call(opened, piece)

    def _grow_call(self, opened: _Open | None, piece: Piece) -> Sequence[Delta]:
        """What a call of the server's own tools is made of is none of ours."""
        if opened is None or opened.kind != "tool_use" or not piece.partial_json:
            return ()
        opened.whole_input = ""
        return (CallDelta(opened.slot, arguments=piece.partial_json),)

    def _complete(self, index: int) -> Sequence[Delta]:
        opened = self._open.pop(index, None)
        if opened is None:
            return ()
        if opened.kind == "thinking" and (signature := "".join(opened.signature)):
            return (ThinkingDelta("", FIELD, (Blob(SIGNATURE, signature), *self.stamp)),)
        if opened.kind == "tool_use" and opened.whole_input:
            return (CallDelta(opened.slot, arguments=whole(opened.whole_input)),)
        return ()


def _text(block: Mapping[str, Any], field: str) -> str:
    return whole(value) if isinstance(value := block.get(field), str) else ""


def _object(raw: Raw) -> dict[str, Any]:
    return (read_object(bytes(raw)) or {}) if raw else {}


def _blocks(content: object) -> list[Mapping[str, Any]] | None:
    """None when it is no content at all."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else None
