"""Parses Responses stream events, and tracks each output item while it streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from wolo.errors import ProviderError, Unavailable
from wolo.formats.response_end import response_error
from wolo.formats.tolerant_json import PayloadReader, as_raw, read_json, read_object, text_at
from wolo.messages import deltas, message, unicode


class ResponsesEvent(Struct):
    """Fields of all events; rare ones stay undecoded."""

    type: str = ""
    output_index: int | None = None
    content_index: int | None = None
    summary_index: int | None = None
    delta: str | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: str | None = None
    input: str | None = None
    item: Raw = Raw()
    response: Raw = Raw()


DONE = b"[DONE]"
"""End marker that some servers send, as in Chat Completions."""

_decode = msgspec.json.Decoder(ResponsesEvent).decode
_TEXTS = ("type", "text", "refusal", "arguments", "input")
_NUMBERS = ("output_index", "content_index", "summary_index")
_UNREAD = ("item", "response")


class ResponsesReader(PayloadReader[ResponsesEvent]):
    def _decode(self, payload: bytes) -> ResponsesEvent:
        return _decode(payload)

    def _unreadable(self, payload: bytes) -> ResponsesEvent | None:
        return None if payload[:6] == DONE else super()._unreadable(payload)

    def _from_object(self, document: dict[str, Any]) -> ResponsesEvent:
        """Fields of unexpected types count as absent."""
        known: dict[str, Any] = {name: unicode.whole(text) for name in _TEXTS if isinstance(text := document.get(name), str)}
        known |= {name: number for name in _NUMBERS if type(number := document.get(name)) is int}
        known |= {name: as_raw(document[name]) for name in _UNREAD if name in document}
        event = ResponsesEvent(**known)
        if isinstance(delta := document.get("delta"), str):
            place = (event.type, event.output_index, event.content_index, event.summary_index)
            event.delta = self._surrogates.join(place, delta)
        return event


def read_part(raw: Raw) -> dict[str, Any]:
    """Decode the item or response that an event carries."""
    part: dict[str, Any] = unicode.whole_throughout(read_object(bytes(raw)) or {})
    return part


Kind = Literal["message", "reasoning", "call", "custom", "wrapper", "other"]
Place = tuple[str, int]
"""Position of a text in an item: field and index."""

WRAPPER = "multi_tool_use.parallel"
"""Name under which models write several calls as one; no server offers such a tool."""


class OpenItem:
    """`slot` numbers calls; `place` is the position of the text being streamed."""

    def __init__(self, kind: Kind, slot: int = -1) -> None:
        self.kind, self.slot = kind, slot
        self.call_id = ""
        self.name = ""
        self.is_done = False
        self.place: Place = ("", -1)
        self._texts: dict[Place, list[str]] = {}
        self.field = ""
        """Field of the thinking part that a reasoning item becomes."""

    @property
    def has_text(self) -> bool:
        return bool(self._texts)

    def text_at(self, place: Place) -> str:
        return "".join(self._texts.get(place, ()))

    def begins_new_piece(self, place: Place) -> bool:
        """The place has no text yet, but the item does."""
        return bool(self._texts) and place not in self._texts

    def fragments(self, place: Place) -> list[str]:
        """Mutable list of the fragments at this place."""
        self.place = place
        return self._texts.setdefault(place, [])

    def remaining(self, place: Place, final: str) -> str:
        """Rest of the final text; empty if another text followed or the final text differs."""
        told = self.text_at(place)
        may_follow = place == self.place or place not in self._texts
        return final[len(told) :] if may_follow and final.startswith(told) else ""


class RunningText:
    """The text being streamed, so that most events need only a comparison."""

    __slots__ = ("_content", "_output", "_summary", "_type", "fragments", "make_delta")

    def __init__(self, event: ResponsesEvent, fragments: list[str], make_delta: Callable[[str], deltas.Delta]) -> None:
        self._type = event.type
        self._output, self._content, self._summary = event.output_index, event.content_index, event.summary_index
        self.fragments, self.make_delta = fragments, make_delta

    def continues(self, event: ResponsesEvent) -> bool:
        return (
            event.type == self._type
            and event.output_index == self._output
            and event.content_index == self._content
            and event.summary_index == self._summary
        )


def kind_of(item: Mapping[str, Any]) -> Kind:
    match item.get("type"):
        case "message":
            return "message"
        case "reasoning":
            return "reasoning"
        case "function_call":
            return "wrapper" if item.get("name") == WRAPPER else "call"
        case "custom_tool_call":
            return "custom"
        case _:
            return "other"


def arguments_of(item: Mapping[str, Any]) -> str:
    """Text, although some servers send the object itself."""
    value = item.get("arguments")
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value if isinstance(value, str) else ""


def unwrap_calls(arguments: str) -> list[tuple[str, str]]:
    """The calls inside a wrapper as (name, arguments); empty when unreadable."""
    document = read_json(arguments) or read_object(arguments.encode("utf-8", "replace"))
    uses = document.get("tool_uses") if isinstance(document, dict) else None
    if not isinstance(uses, list):
        return []
    calls = [(text_at(use, "recipient_name"), use.get("parameters")) for use in uses if isinstance(use, dict)]
    if len(calls) != len(uses) or not all(name for name, _ in calls):
        return []
    return [
        (name.removeprefix("functions."), json.dumps(parameters if parameters is not None else {}, ensure_ascii=False))
        for name, parameters in calls
    ]


def content_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Text and refusal pieces of a message, in replayable form."""
    content = document.get("content")
    pieces: list[dict[str, Any]] = []
    for piece in content if isinstance(content, list) else ():
        if isinstance(piece, dict) and isinstance(piece.get("text"), str):
            pieces.append({"type": "output_text", "text": piece["text"], "annotations": []})
        elif isinstance(piece, dict) and isinstance(piece.get("refusal"), str):
            pieces.append({"type": "refusal", "refusal": piece["refusal"]})
    return pieces


INCOMPLETE: Mapping[str, message.FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "refused",
    "": "length",
}
BROKEN_OFF = ("failed", "cancelled", "queued", "in_progress")
"""Statuses of responses that failed or are unfinished."""


def failure(answer: Mapping[str, Any]) -> ProviderError:
    error = answer.get("error")
    if isinstance(error, dict) and error:
        return response_error(200, {}, {"error": error})
    status = text_at(answer, "status") or "failed"
    return Unavailable(f'The provider failed without a reason ("{status}").', code=status, status=200)
