"""Decode Chat Completions responses: chunks become deltas."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from wolo.formats import response_end
from wolo.formats.chat_dialect import ChatDialect
from wolo.formats.encoding.wire_forms import names_by_wire
from wolo.formats.openai_chat.chunks import Chunk, ChunkReader, Fragment, MessageDelta, OpenCalls, PlainChoice
from wolo.formats.openai_chat.encode import REASONING_DETAILS, REASONING_FIELDS
from wolo.formats.text_recovery.text_filter import TextFilter
from wolo.formats.tolerant_json import EMPTY_JSON, read_json, read_object, short_text, usage_of
from wolo.messages.deltas import Delta, FinishDelta, TextDelta, ThinkingDelta, UsageDelta
from wolo.messages.message import FinishReason, Usage, UsageCost
from wolo.messages.parts import Blob

if TYPE_CHECKING:
    from wolo.formats.text_recovery.leaked_calls import LeakedCall
    from wolo.formats.web_findings import WebFindings


PAYLOADS_AT_ONCE = 64
"""After a payload with more than text, this many are decoded one by one."""


class ChatDecoder:
    """Decodes one response; `close` reports finish and token counts."""

    findings: WebFindings | None = None

    def __init__(self, dialect: ChatDialect, offered: Mapping[str, Mapping[str, Any]]) -> None:
        """`offered` maps tool names to argument schemas."""
        self._chunks = ChunkReader()
        self._read = self._chunks.read_any
        self._calls = OpenCalls(names_by_wire(offered, dialect.reserved_tool_names))
        self._text = TextFilter(offered, think_tags=dialect.think_tags, leaked_calls=dialect.leaked_calls)
        named = dialect.reasoning_field
        self._reasoning_fields = REASONING_FIELDS if named not in REASONING_FIELDS else (named, *REASONING_FIELDS)
        self._offered = offered
        self._reasoning: list[str] | None = [] if dialect.leaked_in_reasoning and offered else None
        self._details: list[object] = []
        self._choice: int | None = None
        self._finish = ""
        self._done = False
        self._has_text = False
        self._usage: bytes | None = None
        self._id = self._model = b""

    @property
    def is_complete(self) -> bool:
        return bool(self._finish) and self._calls.are_whole()

    @property
    def held_chars(self) -> int:
        return self._text.held_chars

    def feed(self, *payloads: bytes) -> Sequence[Delta]:
        """Skips invalid JSON. Raises a ProviderError for error objects."""
        if len(payloads) == 1:
            return self._feed(payloads[0])
        deltas: list[Delta] = []
        for at in range(0, len(payloads), PAYLOADS_AT_ONCE):
            some = payloads[at : at + PAYLOADS_AT_ONCE]
            if not self._feed_plain(some, deltas):
                for payload in some:
                    deltas += self._feed(payload)
        return deltas

    def _feed_plain(self, payloads: Sequence[bytes], deltas: list[Delta]) -> bool:
        """Decode payloads with only text, or only reasoning, as if they were one; False: some have more."""
        choices = None if self._done else self._chunks.read_all_plain(payloads)
        if choices is None:
            return False
        index = choices[0].index
        text = "".join([choice.delta.content or "" for choice in choices])
        reasoning = "".join([choice.delta.reasoning_content or "" for choice in choices])
        if (text and reasoning) or any(choice.index != index for choice in choices) or not self._is_selected(index):
            return False
        if reasoning:
            self._add_reasoning(reasoning, "reasoning_content", deltas)
        elif text:
            self._on_text(text, deltas)
        return True

    def _feed(self, payload: bytes) -> Sequence[Delta]:
        if self._done:
            return ()
        plain = self._read(payload)
        if not isinstance(plain, PlainChoice):
            self._done = plain is None and payload.startswith(b"[DONE]")
            return self._on_chunk(plain, payload) if plain is not None else ()
        if plain.index != self._choice and not self._is_selected(plain.index):
            return ()
        deltas: list[Delta] = []  # fast path of `_on_chunk`, with the same deltas
        message = plain.delta
        if message.reasoning_content:
            self._add_reasoning(message.reasoning_content, "reasoning_content", deltas)
        if text := message.content:
            if not self._has_text:
                self._has_text = not text.isspace()
            self._text.feed(text, deltas)
        return deltas

    def close(self) -> Sequence[Delta]:
        """Raises Unavailable when the response is incomplete, ContextOverflow when it exceeded the window."""
        deltas: list[Delta] = []
        native = len(self._calls.calls)
        self._text.finish(deltas, lambda leaked: self._resolve_leak(leaked, native))
        has_stopped = bool(self._finish) and response_end.normalize_finish(self._finish) == "stop"
        if self._reasoning and not self._calls.calls and not self._has_text and has_stopped:
            from wolo.formats.text_recovery.leaked_calls import find_calls_in_reasoning  # noqa: PLC0415  # as for text

            for leaked in find_calls_in_reasoning("".join(self._reasoning), self._offered):
                self._calls.add_written(leaked, deltas)
        if self._details:
            blob = Blob(REASONING_DETAILS, msgspec.json.encode(merge_reasoning_details(self._details)).decode())
            deltas.append(ThinkingDelta("", self._reasoning_fields[0], (blob,)))
        if self._usage is not None and (usage := read_usage(self._usage)) is not None:
            deltas.append(UsageDelta(usage))
        deltas += [self.findings.mark()] if self.findings is not None else ()
        # Without a finish reason, only `[DONE]` after complete content ends a response.
        has_calls = bool(self._calls.calls)
        reason: FinishReason = "tool_calls" if has_calls else "stop"
        if self._finish:
            reason = response_end.resolve_finish(self._finish, has_calls=has_calls)
        elif not self._done or not (self._calls.are_whole() if has_calls else self._has_text):
            raise response_end.ended_early_error(self._chunks.skipped)
        id, model = (short_text(read_json(each)) if each else "" for each in (self._id, self._model))
        return [*deltas, FinishDelta(reason, self._finish, response_id=id, model=model)]

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        chunk = self._chunks.read(body) if read_object(body) is not None else None
        if chunk is None:
            raise response_end.bad_body_error(body)
        deltas = [*self._on_chunk(chunk, body)]
        if not chunk.choices:
            raise response_end.no_message_error()
        self._done = True
        return [*deltas, *self.close()]

    def _is_selected(self, index: int | None) -> bool:
        """Only the first choice that sends anything is read."""
        if self._choice is None:
            self._choice = index
        return index is None or index == self._choice

    def _on_chunk(self, chunk: Chunk, payload: bytes) -> list[Delta]:
        if chunk.error and bytes(chunk.error) not in EMPTY_JSON:
            raise response_end.response_error(200, {}, payload)
        if not chunk.choices and not chunk.usage and response_end.is_error(read_object(payload) or {}):
            raise response_end.response_error(200, {}, payload)  # of another shape, sent with status 200
        if chunk.id and not self._id:
            self._id, self._model = bytes(chunk.id), bytes(chunk.model)
        if self.findings is not None and isinstance(pages := read_json(bytes(chunk.web_search)), list):
            self.findings.num_searches = 1
            self.findings.add_all(pages, url="link", text="content")
        if chunk.usage:
            self._note_usage(chunk.usage)
        elif chunk.x_groq is not None:
            self._note_usage(chunk.x_groq.usage)
        deltas: list[Delta] = []
        for choice in chunk.choices or ():
            if self._is_selected(choice.index):
                if choice.usage:
                    self._note_usage(choice.usage)
                if choice.finish_reason and not self._finish:
                    self._finish = choice.finish_reason
                message = choice.delta if choice.delta is not None else choice.message
                if message is not None:
                    self._on_reasoning(message, deltas)
                    if message.content:
                        self._on_text(message.content, deltas)
                    for field, text in message.pieces or ():
                        if field:
                            self._add_reasoning(text, field, deltas)
                        else:
                            self._on_text(text, deltas)
                    if message.refusal:
                        self._on_text(message.refusal, deltas)
                    if message.tool_calls:
                        self._on_calls(message.tool_calls, deltas)
                    if message.function_call is not None:
                        self._on_calls([Fragment(index=0, function=message.function_call)], deltas)
        return deltas

    def _note_usage(self, usage: msgspec.Raw) -> None:
        if (raw := bytes(usage)) not in EMPTY_JSON:
            self._usage = raw

    # Content

    def _on_reasoning(self, message: MessageDelta, deltas: list[Delta]) -> None:
        """Some servers repeat reasoning under two names: the first nonempty field is used."""
        for field in self._reasoning_fields:
            if text := getattr(message, field):
                self._add_reasoning(text, field, deltas)
                break
        else:
            text = ""
        if message.reasoning_details:
            details = read_json(bytes(message.reasoning_details))
            if isinstance(details, list):
                self._details += details
                shown = [each.get("text") or each.get("summary") for each in details if isinstance(each, dict)]
                if not text:
                    self._add_reasoning("".join(each for each in shown if isinstance(each, str)), "reasoning", deltas)

    def _add_reasoning(self, text: str, field: str, deltas: list[Delta]) -> None:
        if text:
            self._text.stop_tags(deltas)
            if self._reasoning is not None:
                self._reasoning.append(text)
            deltas.append(ThinkingDelta(text, field))

    def _on_text(self, text: str, deltas: list[Delta]) -> None:
        if not self._has_text and text.strip():
            self._has_text = True
        self._text.feed(text, deltas)

    def _on_calls(self, fragments: list[Fragment], deltas: list[Delta]) -> None:
        self._text.stop(deltas)
        deltas += self._calls.add(fragments)

    def _resolve_leak(self, leaked: LeakedCall, native: int) -> Sequence[Delta]:
        """A call written as text beside native calls is plain text or a duplicate."""
        if not native:
            deltas: list[Delta] = []
            self._calls.add_written(leaked, deltas)
            return deltas
        is_told = not leaked.raw or self._calls.has(leaked.tool, leaked.arguments)
        return () if is_told else (TextDelta(leaked.raw),)


def read_usage(raw: bytes) -> Usage | None:
    """None when there is no usage. Prompt counts include cached tokens, completion counts include reasoning."""
    usage = read_json(raw)
    if (counted := usage_of(usage)) is None:
        return None
    dollars, cost = usage.get("cost"), None  # only OpenRouter reports it
    if isinstance(dollars, int | float) and not isinstance(dollars, bool) and math.isfinite(dollars) and dollars >= 0:
        cost = UsageCost(total=float(dollars))
    return replace(counted, cost=cost)


GROWING = ("text", "summary", "data")


def merge_reasoning_details(fragments: Sequence[object]) -> list[dict[str, Any]]:
    """Merge adjacent items of the same kind, index and id: texts are concatenated, other fields keep the last value."""
    items: list[dict[str, Any]] = []
    for fragment in fragments:
        if not isinstance(fragment, dict):
            continue
        item = items[-1] if items else None
        known = item or {}
        is_same_id = known.get("id") in (None, fragment.get("id")) or fragment.get("id") is None
        if item is not None and is_same_id and all(item.get(name) == fragment.get(name) for name in ("type", "index")):
            for name, value in fragment.items():
                before = item.get(name)
                if name in GROWING and isinstance(before, str) and isinstance(value, str):
                    item[name] = before + value
                elif value is not None:
                    item[name] = value
        else:
            items.append(dict(fragment))
    return items
