"""Messages laid out as contents of Gemini: user and model take turns, and all results of an answer are one content.

Whether a signature is needed depends on what comes later: the server checks those of the current turn. Bytes that were sent must
not change, so every signature goes back in every turn, and what stands for a missing one is put wherever one could be asked for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from wolo.formats.encoding.call_arguments import arguments_object
from wolo.formats.encoding.encoder import GO_ON, Item, Laid, Layout
from wolo.formats.encoding.media import MEDIA_FOLLOW, NOTHING_SAID
from wolo.formats.encoding.pairing import outcome_of, result_text
from wolo.formats.encoding.wire_ids import LEGAL
from wolo.formats.gemini.dialect import GeminiDialect
from wolo.formats.gemini.media import fits_response, media_part
from wolo.formats.gemini.names import gemini_name
from wolo.messages.message import Message, Producer
from wolo.messages.parts import Part, TextPart, ThinkingPart, ToolPart
from wolo.messages.unicode import clean

NAME = "gemini"
THOUGHT_SIGNATURE = "gemini.thoughtSignature"
"""The kind of blob: on the text, the thought or the call that it came with."""
NO_SIGNATURE = "skip_thought_signature_validator"
"""Documented by Google for calls that another model made."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")

WirePart = dict[str, Any]


class GeminiLayout(Layout):
    """Lays out one conversation for one model."""

    user_roles = ("user",)

    def __init__(self, dialect: GeminiDialect, producer: Producer, withheld: Collection[str] = ()) -> None:
        """`dialect` is settled; `withheld` names fields that the server has refused."""
        super().__init__()
        self._dialect = dialect
        self._producer = producer
        self._withheld = withheld
        self._nests_media = dialect.result_media == "native" and "functionResponse.parts" not in withheld
        self._sends_ids = dialect.call_ids and "id" not in withheld

    def open_with(self, system: str) -> list[Item]:
        """Only where the server has no field for it."""
        if not system.strip():
            return []
        self.role = "user"
        return [self.user_says(clean(system))]

    def user_says(self, text: str) -> Item:
        return {"role": "user", "parts": [{"text": text}]}

    def _between(self, role: str) -> list[Item]:
        if role == "model" and self.role != "user":
            return [self.user_says(GO_ON)]
        if role == self.role == "user":
            return [{"role": "model", "parts": [{"text": self.no_answer}]}]
        return []

    def _items(self, message: Message, laid: Laid) -> Iterator[Item]:
        if message.role != "assistant":
            yield {"role": "user", "parts": self._user_parts(message)}
            return
        calls = message.calls
        ids = {call.id: self._id(call, message, laid) for call in calls}
        yield {"role": "model", "parts": self._model_parts(message, ids)}
        if calls:
            yield {"role": "user", "parts": self._results(calls, ids)}

    def _user_parts(self, message: Message) -> list[WirePart]:
        parts: list[WirePart] = []
        for part in message.parts:
            if isinstance(part, TextPart):
                parts += [{"text": clean(part.text)}] if part.text.strip() else []
            elif not isinstance(part, ThinkingPart | ToolPart):
                item = media_part(part, self._dialect)
                parts.append({"text": item} if isinstance(item, str) else item)
        return parts

    # What the model said

    def _model_parts(self, message: Message, ids: dict[str, str]) -> list[WirePart]:
        own = message.producer == self._producer and "thoughtSignature" not in self._withheld
        parts: list[WirePart] = []
        is_first = True
        for part in message.parts:
            signature = _signature(part) if own else ""
            signed = {"thoughtSignature": signature} if signature else {}
            match part:
                case TextPart():
                    parts += [{"text": clean(part.text), **signed}] if signed or part.text.strip() else []
                case ThinkingPart():  # only where a signature needs it: nobody reads it again
                    parts += [{"text": clean(part.text), "thought": True, **signed}] if signed else []
                case ToolPart():
                    if is_first and not signed and self._dialect.signatures == "required":
                        signed = {"thoughtSignature": NO_SIGNATURE}
                    parts.append({"functionCall": self._call(part, ids[part.id]), **signed})
                    is_first = False
        return parts or [{"text": NOTHING_SAID}]

    def _id(self, call: ToolPart, message: Message, laid: Laid) -> str:
        """The id that a server of this format gave; never one of ours or of another format."""
        came = message.producer is not None and message.producer.format == NAME
        own = call.call_id
        if not (came and self._sends_ids and LEGAL["opaque"].fullmatch(own)) or own in self._taken:
            return ""
        return self.wire_id(call, laid)

    def _call(self, call: ToolPart, wire: str) -> WirePart:
        return {**({"id": wire} if wire else {}), "name": gemini_name(call.tool), "args": arguments_object(call)}

    # What came of it

    def _results(self, calls: tuple[ToolPart, ...], ids: dict[str, str]) -> list[WirePart]:
        responses: list[WirePart] = []
        following: list[WirePart] = []
        for call in calls:
            media = [media_part(part, self._dialect) for part in call.output_parts]
            items = [item for item in media if isinstance(item, dict)]
            nested = [item for item in items if self._nests_media and fits_response(item)]
            following += [item for item in items if item not in nested]
            notes = [item for item in media if isinstance(item, str)]
            told = "output" if outcome_of(call) == "ok" else "error"
            response = {
                **({"id": ids[call.id]} if ids[call.id] else {}),
                "name": gemini_name(call.tool),
                "response": {told: result_text(call, notes)},
                **({"parts": nested} if nested else {}),
            }
            responses.append({"functionResponse": response})
        return [*responses, {"text": MEDIA_FOLLOW}, *following] if following else responses


def is_signature(text: str) -> bool:
    """The server decodes it before it looks at anything else."""
    return _BASE64.fullmatch(text) is not None and len(text.rstrip("=")) % 4 != 1


def _signature(part: Part) -> str:
    return next((blob.data for blob in part.blobs if blob.kind == THOUGHT_SIGNATURE and is_signature(blob.data)), "")
