"""One payload of a Gemini stream as a value: fast where the server keeps to the rules, patient where not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from wolo.formats.decoding.loose_json import as_raw, read_object
from wolo.formats.decoding.surrogates import Halves
from wolo.messages.unicode import whole_throughout


class PartialArgument(Struct, gc=False, rename="camel"):
    """A piece of an argument that streams; which of the values it has says what it is."""

    json_path: str | None = None
    string_value: str | None = None
    number_value: int | float | None = None
    bool_value: bool | None = None
    will_continue: bool | None = None


class FunctionCall(Struct, gc=False, rename="camel"):
    name: str | None = None
    id: str | None = None
    args: Raw = Raw()
    partial_args: list[PartialArgument] | None = None
    will_continue: bool | None = None


class Part(Struct, gc=False, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: FunctionCall | None = None


class Content(Struct, gc=False):
    parts: list[Part] | None = None


class Candidate(Struct, gc=False, rename="camel"):
    index: int | None = None
    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class PromptFeedback(Struct, gc=False, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class Event(Struct, gc=False, rename="camel"):
    candidates: list[Candidate] | None = None
    usage_metadata: Raw = Raw()
    prompt_feedback: PromptFeedback | None = None
    error: Raw = Raw()


_decoder = msgspec.json.Decoder(Event)
_patient_decoder = msgspec.json.Decoder(Event, strict=False)
_part_decoder = msgspec.json.Decoder(Part, strict=False)
_list_decoder = msgspec.json.Decoder(list[Raw])


class EventReader:
    """Reads the payloads of one stream, in order."""

    def __init__(self) -> None:
        self.skipped = 0
        """Payloads that were no JSON object."""
        self._halves = Halves()
        self._torn = self._halves.kept

    def read(self, payload: bytes) -> Event | None:
        if not self._torn:
            try:
                return _decoder.decode(payload)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                pass
        document = read_object(payload)
        if document is None:
            self.skipped += 1
            return None
        self._mend_halves(document)
        mended = whole_throughout(document)
        try:
            return _patient_decoder.decode(msgspec.json.encode(mended))
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return _salvaged(mended)

    def _mend_halves(self, document: dict[str, Any]) -> None:
        for part in _parts(document):
            if isinstance(text := part.get("text"), str):
                part["text"] = self._halves.mend(bool(part.get("thought")), text)


def _salvaged(document: dict[str, Any]) -> Event:
    """What can be understood of a payload whose fields are not of the types they should be."""
    candidates = document.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    spoken = Event(usage_metadata=as_raw(document.get("usageMetadata")), error=as_raw(document.get("error")))
    if isinstance(first, dict):
        reason = first.get("finishReason")
        parts = [part for each in _parts(document) if (part := _part(each)) is not None]
        spoken.candidates = [Candidate(None, Content(parts), reason if isinstance(reason, str) else None)]
    return spoken


def _part(part: dict[str, Any]) -> Part | None:
    try:
        return _part_decoder.decode(msgspec.json.encode(part))
    except (msgspec.MsgspecError, RecursionError):
        text = part.get("text")
        return Part(text=text, thought=bool(part.get("thought"))) if isinstance(text, str) else None


def split_list(body: bytes) -> Sequence[bytes] | None:
    """The answers of a stream that was not asked for as events: one list of them. None: it is no list."""
    try:
        return [bytes(each) for each in _list_decoder.decode(body)]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _parts(document: dict[str, Any]) -> list[dict[str, Any]]:
    candidates = document.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    content = first.get("content") if isinstance(first, dict) else None
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
