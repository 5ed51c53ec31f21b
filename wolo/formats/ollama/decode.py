"""Decode Ollama responses: one JSON object per line, the last one with `done`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from wolo.formats import response_end
from wolo.formats.encoding.wire_forms import names_by_wire
from wolo.formats.ollama import OllamaDialect
from wolo.formats.text_recovery.text_filter import TextFilter
from wolo.formats.tolerant_json import EMPTY_JSON, MAX_COUNT, as_raw, list_at, read_json, read_object, token_count
from wolo.messages.deltas import CallDelta, Delta, FinishDelta, TextDelta, ThinkingDelta, UsageDelta
from wolo.messages.message import Usage
from wolo.messages.unicode import whole

if TYPE_CHECKING:
    from wolo.formats.text_recovery.leaked_calls import LeakedCall
    from wolo.formats.web_findings import WebFindings

THINKING_FIELD = "thinking"


class OllamaFunction(Struct, gc=False):
    name: str | None = None
    arguments: Raw = Raw()
    index: int | None = None


class OllamaCall(Struct, gc=False):
    function: OllamaFunction | None = None
    id: str | None = None


class MessageChunk(Struct, gc=False):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[OllamaCall] | None = None


class ResponseLine(Struct, gc=False):
    message: MessageChunk | None = None
    done: bool | None = None
    done_reason: str | None = None
    error: Raw = Raw()
    prompt_eval_count: int | None = None
    eval_count: int | None = None


_decode = msgspec.json.Decoder(ResponseLine).decode


class OllamaDecoder:
    """Decodes one response; `close` reports finish and token counts."""

    findings: WebFindings | None = None

    def __init__(self, dialect: OllamaDialect, offered: Mapping[str, Mapping[str, Any]]) -> None:
        """`offered` maps tool names to argument schemas."""
        self._names = names_by_wire(offered)
        self._text = TextFilter(offered, think_tags=dialect.think_tags, leaked_calls=dialect.leaked_calls)
        self._calls: list[tuple[str, str]] = []
        """Tool and argument text of each call; the index is its slot."""
        self._numbered: set[tuple[str, int, str, str]] = set()
        """Calls with an id or index, to detect repeated calls."""
        self._has_native = False
        """A native tool call arrived."""
        self.is_complete = False
        self._reason = ""
        self._usage: Usage | None = None
        self._skipped = 0

    @property
    def held_chars(self) -> int:
        return self._text.held_chars

    def feed(self, *payloads: bytes) -> Sequence[Delta]:
        """Skips invalid JSON. Raises a ProviderError for error objects."""
        return [delta for payload in payloads for delta in self._feed(payload)]

    def _feed(self, payload: bytes) -> Sequence[Delta]:
        try:
            line = _decode(payload)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            if (document := read_object(payload)) is None:
                self._skipped += 1
                return ()
            line = _read_loosely(document)
        message = line.message
        if message is None or line.done or line.error:
            return self._on_line(line, payload)
        deltas: list[Delta] = []
        if message.content and not (message.thinking or message.tool_calls):  # fast path of `_on_message` for most lines
            self._text.feed(message.content, deltas)
        else:
            self._on_message(message, deltas)
        return deltas

    def close(self) -> Sequence[Delta]:
        """Raises Unavailable when the response is incomplete, ContextOverflow when it exceeded the window."""
        if not self.is_complete:
            raise response_end.ended_early_error(self._skipped)
        deltas: list[Delta] = []
        self._text.finish(deltas, self._resolve_leak)
        if self._usage is not None:
            deltas.append(UsageDelta(self._usage))
        deltas.append(FinishDelta(response_end.resolve_finish(self._reason, has_calls=bool(self._calls)), self._reason))
        return deltas

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        if (document := read_object(body)) is None:
            raise response_end.bad_body_error(body)
        line = _read_loosely(document)
        deltas = [*self._on_line(line, body)]
        if line.message is None:
            raise response_end.no_message_error()
        self.is_complete = True
        return [*deltas, *self.close()]

    def _on_line(self, line: ResponseLine, payload: bytes) -> Sequence[Delta]:
        if line.error and bytes(line.error) not in EMPTY_JSON:
            raise response_end.response_error(200, {}, payload)
        if line.message is None and not line.done and response_end.is_error(read_object(payload) or {}):
            raise response_end.response_error(200, {}, payload)
        deltas: list[Delta] = []
        if line.message is not None:
            self._on_message(line.message, deltas)
        if line.done:
            self.is_complete = True
            self._reason = line.done_reason or self._reason
            prompt, answer = token_count(line.prompt_eval_count), token_count(line.eval_count)
            if prompt or answer:
                self._usage = Usage(input_tokens=prompt, output_tokens=answer)
        return deltas

    def _on_message(self, message: MessageChunk, deltas: list[Delta]) -> None:
        if message.thinking:
            self._text.stop_tags(deltas)
            deltas.append(ThinkingDelta(message.thinking, THINKING_FIELD))
        if message.content:
            self._text.feed(message.content, deltas)
        if message.tool_calls:
            for call in message.tool_calls:
                self._on_call(call, deltas)

    # Calls

    def _on_call(self, call: OllamaCall, deltas: list[Delta]) -> None:
        function = call.function
        if function is None or not (function.name or function.arguments):
            return
        self._text.stop(deltas)
        name, arguments, wire_id = function.name or "", _arguments_text(bytes(function.arguments)), call.id or ""
        if wire_id or function.index is not None:
            key = (wire_id, -1 if function.index is None else function.index, name, arguments)
            if key in self._numbered:
                return
            self._numbered.add(key)
        self._has_native = True
        deltas.append(self._begin(self._names.get(name, name), arguments, wire_id))

    def _begin(self, tool: str, arguments: str, wire_id: str = "") -> CallDelta:
        self._calls.append((tool, arguments))
        return CallDelta(len(self._calls) - 1, wire_id, tool, arguments)

    def _resolve_leak(self, leaked: LeakedCall) -> Sequence[Delta]:
        """A call written as text beside native calls is plain text or a duplicate."""
        if not self._has_native:
            call = self._begin(leaked.tool, leaked.arguments)
            return (replace(call, problem=leaked.problem, in_fence=leaked.in_fence),)
        if not leaked.raw or any(
            tool == leaked.tool
            and (
                text == leaked.arguments or (isinstance(value := read_json(text), dict) and value == read_json(leaked.arguments))
            )
            for tool, text in self._calls
        ):
            return ()
        return (TextDelta(leaked.raw),)


def _arguments_text(raw: bytes) -> str:
    """Arguments in the model's key order; the server escapes more characters than JSON requires."""
    if raw in (b"", b"null"):
        return "{}"
    text = raw.decode("utf-8", "replace")
    if raw[:1] == b'"' or "\\u" in text:
        value = read_json(raw)
        if isinstance(value, str):
            return value
        if value is not None:
            return json.dumps(value, ensure_ascii=False)
    return text


# Tolerant parsing


def _read_loosely(document: Mapping[str, Any]) -> ResponseLine:
    message, reason, chunk = document.get("message"), document.get("done_reason"), None
    if isinstance(message, dict):
        calls = message.get("tool_calls")
        listed = [calls] if isinstance(calls, dict) else list_at(message, "tool_calls", dict)
        chunk = MessageChunk(_text(message.get("content")), _text(message.get("thinking")), [_call(call) for call in listed])
    return ResponseLine(
        message=chunk,
        done=document.get("done") in (True, "true", 1),
        done_reason=None if reason is None else whole(str(reason)),
        error=as_raw(document.get("error")),
        prompt_eval_count=_integer(document.get("prompt_eval_count")),
        eval_count=_integer(document.get("eval_count")),
    )


def _call(call: Mapping[str, Any]) -> OllamaCall:
    function, wire_id = call.get("function"), call.get("id")
    if not isinstance(function, dict):
        return OllamaCall()
    name = function.get("name")
    return OllamaCall(
        function=OllamaFunction(
            name=whole(name) if isinstance(name, str) else None,
            arguments=as_raw(function.get("arguments")),
            index=_integer(function.get("index")),
        ),
        id=None if wire_id is None else whole(str(wire_id)),
    )


def _text(value: object) -> str | None:
    return whole(value) if isinstance(value, str) else None


def _integer(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_COUNT else None
