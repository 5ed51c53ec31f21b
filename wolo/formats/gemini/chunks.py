"""Parses the chunks of a Gemini stream and assembles their function calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from wolo.formats.gemini.encode import own_name
from wolo.formats.tolerant_json import PayloadReader, as_raw, list_at, mapping_at
from wolo.messages.deltas import CallDelta
from wolo.messages.parts import Blob
from wolo.messages.unicode import whole_throughout


class PartialArgument(Struct, gc=False, rename="camel"):
    """A streamed argument fragment; exactly one value field is set."""

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


class GeminiPart(Struct, gc=False, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: FunctionCall | None = None


class Content(Struct, gc=False):
    parts: list[GeminiPart] | None = None


class Candidate(Struct, gc=False, rename="camel"):
    index: int | None = None
    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    grounding_metadata: Raw = Raw()


class PromptFeedback(Struct, gc=False, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class GeminiChunk(Struct, gc=False, rename="camel"):
    response_id: Raw = Raw()
    model_version: Raw = Raw()
    candidates: list[Candidate] | None = None
    usage_metadata: Raw = Raw()
    prompt_feedback: PromptFeedback | None = None
    error: Raw = Raw()


_decoder = msgspec.json.Decoder(GeminiChunk)
_patient_decoder = msgspec.json.Decoder(GeminiChunk, strict=False)
_part_decoder = msgspec.json.Decoder(GeminiPart, strict=False)
_list_decoder = msgspec.json.Decoder(list[Raw])


class GeminiReader(PayloadReader[GeminiChunk]):
    def _decode(self, payload: bytes) -> GeminiChunk:
        return _decoder.decode(payload)

    def _from_object(self, document: dict[str, Any]) -> GeminiChunk:
        for part in _parts(document):
            if isinstance(text := part.get("text"), str):
                part["text"] = self._surrogates.join(bool(part.get("thought")), text)
        mended = whole_throughout(document)
        try:
            return _patient_decoder.decode(msgspec.json.encode(mended))
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            valid = GeminiChunk(usage_metadata=as_raw(mended.get("usageMetadata")), error=as_raw(mended.get("error")))
            if isinstance(first := next(iter(list_at(mended, "candidates")), None), dict):
                reason = first.get("finishReason")
                parts = [known for each in _parts(mended) if (known := _part(each)) is not None]
                valid.candidates = [Candidate(None, Content(parts), reason if isinstance(reason, str) else None)]
            return valid


def _part(part: dict[str, Any]) -> GeminiPart | None:
    try:
        return _part_decoder.decode(msgspec.json.encode(part))
    except (msgspec.MsgspecError, RecursionError):
        text = part.get("text")
        return GeminiPart(text=text, thought=bool(part.get("thought"))) if isinstance(text, str) else None


def split_list(body: bytes) -> Sequence[bytes] | None:
    """Split a response that is one JSON list instead of an event stream; None: not a list."""
    try:
        return [bytes(each) for each in _list_decoder.decode(body)]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _parts(document: dict[str, Any]) -> list[dict[str, Any]]:
    first = next(iter(list_at(document, "candidates")), None)
    return list_at(mapping_at(first, "content"), "parts", dict) if isinstance(first, dict) else []


ABSENT = (b"", b"null")
STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]|\[(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\]")
"""A name or index in a JSON path, after the `$`."""
MOST_PLACES = 10_000
"""Larger list indexes in arguments are treated as errors."""


class GeminiOpenCalls:
    """`names` maps server tool names to ours."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._count = 0
        self._open: _Arguments | None = None

    def __bool__(self) -> bool:
        return self._count > 0

    @property
    def is_open(self) -> bool:
        """A call has started whose arguments are incomplete."""
        return self._open is not None

    def add(self, call: FunctionCall, blobs: tuple[Blob, ...]) -> list[CallDelta]:
        args = bytes(call.args)
        goes_on = self._open is not None and not call.name
        deltas = [] if goes_on else self.close()
        if not goes_on:
            if not call.name and args in ABSENT and not call.partial_args:
                return deltas
            self._count += 1
            tool = own_name(call.name or "", self._names)
            deltas.append(CallDelta(self._count - 1, call.id or "", tool, "", blobs=blobs))
            self._open = _Arguments()
        elif blobs:
            deltas.append(CallDelta(self._count - 1, blobs=blobs))
        assert self._open is not None  # continued or just started
        self._open.add(args, call.partial_args or ())
        return deltas if call.will_continue else [*deltas, *self.close()]

    def close(self) -> list[CallDelta]:
        """Emit the arguments received so far for the open call."""
        if self._open is None:
            return []
        # As the server wrote them; empty when there are none.
        arguments, self._open = self._open, None
        written = msgspec.json.encode(arguments.built).decode() if arguments.built else arguments.whole.decode("utf-8", "replace")
        return [CallDelta(self._count - 1, arguments=written)]


class _Arguments(Struct):
    whole: bytes = b""
    built: dict[str, Any] = {}
    _fragments: dict[str, list[str]] = {}
    """Incomplete strings, by path."""

    def add(self, args: bytes, pieces: Iterable[PartialArgument]) -> None:
        if args not in ABSENT:
            self.whole = args
        for piece in pieces:
            path = piece.json_path or ""
            value: object
            if piece.string_value is None:
                value = piece.bool_value if piece.bool_value is not None else piece.number_value
                if path in self._fragments and value is None:
                    continue
            else:
                fragments = self._fragments.setdefault(path, [])
                fragments.append(piece.string_value)
                value = "".join(fragments)
            _set_at_path(self.built, path, value)


def _set_at_path(built: dict[str, Any], path: str, value: Any) -> None:
    groups = STEP.findall(path.removeprefix("$"))
    steps = [int(place) if place else name or quoted or double for name, place, quoted, double in groups]
    if not steps:
        return
    at: Any = built
    for step, then in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, int) != isinstance(at, list) or (isinstance(step, int) and step > MOST_PLACES):
            return
        if isinstance(step, int):
            at.extend([None] * (step + 1 - len(at)))
        if then is None:
            at[step] = value
            return
        inner = at[step] if isinstance(step, int) else at.get(step)
        if inner is None:
            inner = at[step] = [] if isinstance(then, int) else {}
        at = inner
        if not isinstance(at, dict | list):
            return
