"""Parses the chunks of a Chat Completions stream and assembles their tool calls."""

# No `from __future__ import annotations`: msgspec would compile the text of each annotation at every start.

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from wolo.formats.openai_chat.encode import CONTENT_LIST, EXTRA_CONTENT, REASONING_FIELDS
from wolo.formats.tolerant_json import EMPTY_JSON, PayloadReader, as_raw, read_json
from wolo.messages.deltas import CallDelta, Delta
from wolo.messages.parts import Blob
from wolo.messages.unicode import whole

if TYPE_CHECKING:
    from wolo.formats.text_recovery.leaked_calls import LeakedCall


class Function(Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class Fragment(Struct, gc=False):
    """A fragment of a tool call."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None
    extra_content: Raw = Raw()


class MessageDelta(Struct, gc=False):
    """A stream delta, or the message of a complete response."""

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
    """List content in order, as (field, text); the field is empty for plain text."""


class ChunkChoice(Struct, gc=False):
    index: int | None = None
    delta: MessageDelta | None = None
    message: MessageDelta | None = None
    finish_reason: str | None = None
    usage: Raw = Raw()


class _XGroq(Struct, gc=False):
    usage: Raw = Raw()


class Chunk(Struct, gc=False):
    id: Raw = Raw()
    model: Raw = Raw()
    choices: list[ChunkChoice] | None = None
    usage: Raw = Raw()
    error: Raw = Raw()
    x_groq: _XGroq | None = None
    web_search: Raw = Raw()


class _PlainDelta(Struct, gc=False):
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
    delta: _PlainDelta
    index: int | None = None
    message: None = None
    finish_reason: None = None
    usage: None = None


class _PlainChunk(Struct, gc=False):
    choices: tuple[PlainChoice]
    usage: None = None
    error: None = None
    x_groq: None = None
    web_search: None = None


_decoder = msgspec.json.Decoder(Chunk)
_plain_decoder = msgspec.json.Decoder(_PlainChunk)
_all_plain_decoder = msgspec.json.Decoder(list[_PlainChunk])


class ChunkReader(PayloadReader[Chunk]):
    def __init__(self) -> None:
        super().__init__()
        self._expects_plain = True

    def read_any(self, payload: bytes) -> PlainChoice | Chunk | None:
        """A choice with only text or reasoning, otherwise the chunk; None: the end mark, or unreadable.

        After a miss of the fast path the next chunk decides when to try it again, because a failed attempt costs more than the
        slow path.
        """
        if self._expects_plain and not self._split_chars:
            try:
                return _plain_decoder.decode(payload).choices[0]
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                self._expects_plain = False
        return None if payload.startswith(b"[DONE]") else self.read(payload)

    def read_all_plain(self, payloads: Sequence[bytes]) -> list[PlainChoice] | None:
        """Decode all payloads in one pass; None: read them one by one."""
        if not self._expects_plain or self._split_chars:
            return None
        try:
            chunks = _all_plain_decoder.decode(b"[%b]" % b",".join(payloads))
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        return [chunk.choices[0] for chunk in chunks] if len(chunks) == len(payloads) else None

    def _decode(self, payload: bytes) -> Chunk:
        chunk = _decoder.decode(payload)
        message = chunk.choices[0].delta if chunk.choices else None
        self._expects_plain = message is not None and not (message.tool_calls or message.reasoning or chunk.usage)
        return chunk

    def _from_object(self, document: dict[str, Any]) -> Chunk:
        choices = document.get("choices")
        groq = document.get("x_groq")
        return Chunk(
            choices=[self._choice(each) for each in choices if isinstance(each, dict)] if isinstance(choices, list) else None,
            usage=as_raw(document.get("usage")),
            error=as_raw(document.get("error")),
            x_groq=_XGroq(as_raw(groq.get("usage"))) if isinstance(groq, dict) else None,
            web_search=as_raw(document.get("web_search")),
        )

    def _choice(self, choice: Mapping[str, Any]) -> ChunkChoice:
        reason = choice.get("finish_reason")
        return ChunkChoice(
            index=_integer(choice.get("index")),
            delta=self._message_delta(choice.get("delta")),
            message=self._message_delta(choice.get("message")),
            finish_reason=None if reason is None or reason is False else str(reason),
            usage=as_raw(choice.get("usage")),
        )

    def _message_delta(self, delta: Any) -> MessageDelta | None:
        if not isinstance(delta, dict):
            return None
        calls = delta.get("tool_calls")
        calls = [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else []
        function = delta.get("function_call")
        content = delta.get("content")
        message = MessageDelta(
            content=self._join_surrogates("content", content),
            refusal=self._join_surrogates("refusal", delta.get("refusal")),
            tool_calls=[self._fragment(at, each) for at, each in enumerate(calls) if isinstance(each, dict)] if calls else None,
            function_call=self._function("function_call", function) if isinstance(function, dict) else None,
            reasoning_details=as_raw(delta.get("reasoning_details")),
            pieces=[piece for item in content for piece in self._piece(item)] if isinstance(content, list) else None,
        )
        for field in REASONING_FIELDS:
            setattr(message, field, self._join_surrogates(field, delta.get(field)))
        return message

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
        return Function(name=whole(name) if isinstance(name, str) else None, arguments=self._join_surrogates(field, written))

    def _join_surrogates(self, field: str, text: Any) -> str | None:
        if isinstance(text, dict):
            text = text.get("text", text.get("content"))
        return self._surrogates.join(field, text) if isinstance(text, str) else None


def _has_text(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("text"), str)


def _integer(value: Any) -> int | None:
    try:
        return None if value is None or isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        return None


class _OpenCall(Struct):
    slot: int
    id: str = ""
    name: str = ""
    fragments: list[str] = []
    size: int = 0

    @property
    def text(self) -> str:
        return "".join(self.fragments)

    def is_whole(self) -> bool:
        return is_object(self.text)

    def is_partial(self) -> bool:
        """Arguments have started and are incomplete."""
        return self.size > 0 and not self.is_whole()

    def is_repeated_by(self, name: str, arguments: str) -> bool:
        """The same complete call was sent again."""
        return bool(name) and name == self.name and len(arguments) == self.size and arguments == self.text and self.is_whole()


class OpenCalls:
    """Calls of one response. `names` maps the names of all offered tools, as the server knows them, to ours."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.calls: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}
        self._by_place: dict[int, _OpenCall] = {}
        """Position of fragments without an index in their payload."""

    def are_whole(self) -> bool:
        return all(call.is_whole() for call in self.calls)

    def has(self, tool: str, arguments: str) -> bool:
        texts = [call.text for call in self.calls if self._names.get(call.name, call.name) == tool]
        return any(text == arguments or (is_object(text) and read_json(text) == read_json(arguments)) for text in texts)

    def add_written(self, leaked: "LeakedCall", deltas: list[Delta]) -> None:
        """Add a call that was written as text, with our own tool name and all arguments."""
        call = self._begin()
        call.name, call.size = leaked.tool, len(leaked.arguments)
        call.fragments.append(leaked.arguments)
        deltas.append(CallDelta(call.slot, "", leaked.tool, leaked.arguments, problem=leaked.problem, in_fence=leaked.in_fence))

    def add(self, fragments: Sequence[Fragment]) -> list[CallDelta]:
        """`fragments` are from one payload."""
        deltas = []
        for place, fragment in enumerate(fragments):
            function = fragment.function
            name = (function.name if function else None) or ""
            arguments = (function.arguments if function else None) or ""
            wire_id = fragment.id or ""
            if not (name or arguments or wire_id):
                continue
            call = self._find(fragment.index, wire_id, name, arguments, place if len(fragments) > 1 else None)
            if wire_id in ("", call.id) and call.is_repeated_by(name, arguments):
                continue
            # Keeps the first id: some servers send a new one with every fragment.
            extra = bytes(fragment.extra_content)
            new_id = wire_id if not call.id else ""
            call.id = call.id or wire_id
            if self._continues_name(call, name):
                name = call.name + name
            call.name = name or call.name
            call.fragments.append(arguments)
            call.size += len(arguments)
            is_there = extra not in EMPTY_JSON and read_json(extra) is not None
            blobs = (Blob(EXTRA_CONTENT, extra.decode()),) if is_there else ()
            deltas.append(CallDelta(call.slot, new_id, self._names.get(name, name), arguments, blobs=blobs))
        return deltas

    def _find(self, index: int | None, wire_id: str, name: str, arguments: str, place: int | None) -> _OpenCall:
        if index is None:
            before = self._by_place.get(place) if place is not None else self.calls[-1] if self.calls else None
            continues = before is not None and wire_id in ("", before.id) and self._continues_name(before, name)
            call = before if before and continues else self._find_unnumbered(wire_id, name, place)
        else:
            call = self._find_numbered(index, wire_id, name, arguments)
            self._by_index[index] = call
        if place is not None:
            self._by_place[place] = call
        return call

    def _find_numbered(self, index: int, wire_id: str, name: str, arguments: str) -> _OpenCall:
        """Trust the index unless its content clearly starts or continues another call."""
        if (known := self._by_index.get(index)) is None:
            with_id = self._with_id(wire_id)
            if with_id is not None and (not name or with_id not in self._by_index.values()):
                return with_id
            return self.calls[-1] if self.calls and not wire_id and not name else self._begin()
        if not name or (wire_id and wire_id == known.id):
            return known
        if not known.name and not (known.is_whole() and arguments.lstrip().startswith("{")):
            return known  # its name arrived late
        if wire_id and known.id:
            return (
                known if known.is_partial() and name == known.name and not arguments.lstrip().startswith("{") else self._begin()
            )
        another = known.is_whole() and (
            name != known.name or (is_object(arguments) and not known.is_repeated_by(name, arguments))
        )
        return self._begin() if another else known

    def _find_unnumbered(self, wire_id: str, name: str, place: int | None) -> _OpenCall:
        last = self.calls[-1] if self.calls else None
        if wire_id:
            if (known := self._with_id(wire_id)) is not None:
                is_another = name and known.name and name != known.name and known.is_whole()
                return self._begin() if is_another else known
            return last if last is not None and not name and last.is_partial() else self._begin()
        before = self._by_place.get(place) if place is not None else last
        if before is None:
            return self._begin() if name or last is None else last
        begins = name and before.name and (before.id or name != before.name or before.is_whole())
        return self._begin() if begins else before

    def _continues_name(self, call: _OpenCall, name: str) -> bool:
        """A few servers send a tool name in pieces: the piece is no tool, and with those before it begins or is one."""
        if not name or not call.name or call.size or name in self._names:
            return False
        return any(tool.startswith(call.name + name) for tool in self._names)

    def _with_id(self, wire_id: str) -> _OpenCall | None:
        return next((call for call in reversed(self.calls) if call.id == wire_id), None) if wire_id else None

    def _begin(self) -> _OpenCall:
        call = _OpenCall(len(self.calls))
        self.calls.append(call)
        return call


def is_object(text: str) -> bool:
    return isinstance(read_json(text), dict)
