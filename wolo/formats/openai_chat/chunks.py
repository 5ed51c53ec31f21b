"""One payload of a Chat Completions stream as a value: fast where the server keeps to the rules, patient where not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from wolo.formats.decoding.loose_json import as_raw, read_object
from wolo.formats.decoding.surrogates import Halves
from wolo.formats.openai_chat.messages import CONTENT_LIST, REASONING_FIELDS
from wolo.messages.unicode import whole


class Function(Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class Fragment(Struct, gc=False):
    """A piece of a tool call."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None
    extra_content: Raw = Raw()


class Said(Struct, gc=False):
    """A delta, or the message of an answer that came whole."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_text: str | None = None
    thinking: str | None = None
    refusal: str | None = None
    tool_calls: list[Fragment] | None = None
    function_call: Function | None = None
    reasoning_details: Raw = Raw()
    pieces: list[tuple[str, str]] | None = None
    """Content that came as a list: (field, text) in order; the field is empty for text."""


class Choice(Struct, gc=False):
    index: int | None = None
    delta: Said | None = None
    message: Said | None = None
    finish_reason: str | None = None
    usage: Raw = Raw()


class _XGroq(Struct, gc=False):
    usage: Raw = Raw()


class Chunk(Struct, gc=False):
    choices: list[Choice] | None = None
    usage: Raw = Raw()
    error: Raw = Raw()
    x_groq: _XGroq | None = None


class _PlainSaid(Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: None = None
    reasoning_text: None = None
    thinking: None = None
    refusal: None = None
    tool_calls: None = None
    function_call: None = None
    reasoning_details: None = None


class PlainChoice(Struct, gc=False):
    delta: _PlainSaid
    index: int | None = None
    message: None = None
    finish_reason: None = None
    usage: None = None


class _PlainChunk(Struct, gc=False):
    choices: tuple[PlainChoice]
    usage: None = None
    error: None = None
    x_groq: None = None


_decoder = msgspec.json.Decoder(Chunk)
_plain_decoder = msgspec.json.Decoder(_PlainChunk)


class ChunkReader:
    """Reads the payloads of one stream, in order."""

    def __init__(self) -> None:
        self.skipped = 0
        """Payloads that were no JSON object."""
        self._halves = Halves()
        self._torn = self._halves.kept
        self._expects_plain = True

    def read_plain(self, payload: bytes) -> PlainChoice | None:
        """What nearly every payload is: a few words of text or reasoning and nothing else; None: `read` it.

        Where it was something else once, `read` decides when to look again: to look in vain costs more than to read.
        """
        if not self._expects_plain or self._torn:
            return None
        try:
            return _plain_decoder.decode(payload).choices[0]
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            self._expects_plain = False
            return None

    def read(self, payload: bytes) -> Chunk | None:
        if not self._torn:
            try:
                chunk = _decoder.decode(payload)
                self._expects_plain = _is_plain(chunk)
                return chunk
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                pass
        document = read_object(payload)
        if document is None:
            self.skipped += 1
            return None
        return self._chunk(document)

    def _chunk(self, document: Mapping[str, Any]) -> Chunk:
        choices = document.get("choices")
        groq = document.get("x_groq")
        return Chunk(
            choices=[self._choice(each) for each in choices if isinstance(each, dict)] if isinstance(choices, list) else None,
            usage=as_raw(document.get("usage")),
            error=as_raw(document.get("error")),
            x_groq=_XGroq(as_raw(groq.get("usage"))) if isinstance(groq, dict) else None,
        )

    def _choice(self, choice: Mapping[str, Any]) -> Choice:
        reason = choice.get("finish_reason")
        return Choice(
            index=_integer(choice.get("index")),
            delta=self._said(choice.get("delta")),
            message=self._said(choice.get("message")),
            finish_reason=None if reason is None or reason is False else str(reason),
            usage=as_raw(choice.get("usage")),
        )

    def _said(self, delta: Any) -> Said | None:
        if not isinstance(delta, dict):
            return None
        calls = delta.get("tool_calls")
        calls = [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else []
        function = delta.get("function_call")
        content = delta.get("content")
        said = Said(
            content=self._mended("content", content),
            refusal=self._mended("refusal", delta.get("refusal")),
            tool_calls=[self._fragment(at, each) for at, each in enumerate(calls) if isinstance(each, dict)] if calls else None,
            function_call=self._function("function_call", function) if isinstance(function, dict) else None,
            reasoning_details=as_raw(delta.get("reasoning_details")),
            pieces=[piece for item in content for piece in self._piece(item)] if isinstance(content, list) else None,
        )
        for field in REASONING_FIELDS:
            setattr(said, field, self._mended(field, delta.get(field)))
        return said

    def _piece(self, item: Any) -> list[tuple[str, str]]:
        if isinstance(item, str):
            return [("", whole(item))]
        if not isinstance(item, dict):
            return []
        thought = item.get("thinking")
        if isinstance(thought, list):
            return [(CONTENT_LIST, whole(each["text"])) for each in thought if isinstance(each, dict) and _has_text(each)]
        if isinstance(thought, str):
            return [(CONTENT_LIST, whole(thought))]
        return [("", whole(item["text"]))] if _has_text(item) else []

    def _fragment(self, at: int, call: Mapping[str, Any]) -> Fragment:
        index, function, call_id = _integer(call.get("index")), call.get("function"), call.get("id")
        return Fragment(
            index=index,
            id=None if call_id is None else whole(str(call_id)),
            function=self._function(f"call {at if index is None else index}", function) if isinstance(function, dict) else None,
            extra_content=as_raw(call.get("extra_content")),
        )

    def _function(self, field: str, function: Mapping[str, Any]) -> Function:
        name, arguments = function.get("name"), function.get("arguments")
        written = arguments if isinstance(arguments, str) or arguments is None else json.dumps(arguments, ensure_ascii=False)
        return Function(name=whole(name) if isinstance(name, str) else None, arguments=self._mended(field, written))

    def _mended(self, field: str, text: Any) -> str | None:
        if isinstance(text, dict):
            text = text.get("text", text.get("content"))
        return self._halves.mend(field, text) if isinstance(text, str) else None


def _is_plain(chunk: Chunk) -> bool:
    said = chunk.choices[0].delta if chunk.choices else None
    return said is not None and not (said.tool_calls or said.reasoning or chunk.usage)


def _has_text(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("text"), str)


def _integer(value: Any) -> int | None:
    try:
        return None if value is None or isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        return None
