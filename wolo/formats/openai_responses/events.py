"""One event of a Responses stream, read for what every event may hold."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from wolo.formats.decoding.loose_json import as_raw, read_object
from wolo.formats.decoding.surrogates import Halves
from wolo.messages.unicode import whole, whole_throughout


class Event(Struct):
    """Most events are a few characters of text: only what is rare stays unread until someone asks."""

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
"""What servers of Chat Completions put at the end of a stream, and some do here too."""

_decode = msgspec.json.Decoder(Event).decode
_TEXTS = ("type", "text", "refusal", "arguments", "input")
_NUMBERS = ("output_index", "content_index", "summary_index")
_UNREAD = ("item", "response")


class EventReader:
    """Reads the payloads of one stream, in order."""

    def __init__(self) -> None:
        self.skipped = 0
        """Payloads that were no JSON object."""
        self._halves = Halves()
        self._torn = self._halves.kept

    def read(self, payload: bytes) -> Event | None:
        """Fields of another type than expected are as good as absent."""
        if not self._torn:
            try:
                return _decode(payload)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                pass
        document = read_object(payload)
        if document is None:
            self.skipped += payload[:6] != DONE
            return None
        known: dict[str, Any] = {name: whole(text) for name in _TEXTS if isinstance(text := document.get(name), str)}
        known |= {name: number for name in _NUMBERS if type(number := document.get(name)) is int}
        known |= {name: as_raw(document[name]) for name in _UNREAD if name in document}
        event = Event(**known)
        if isinstance(delta := document.get("delta"), str):
            place = (event.type, event.output_index, event.content_index, event.summary_index)
            event.delta = self._halves.mend(place, delta)
        return event


def read_part(raw: Raw) -> dict[str, Any]:
    """An item or a whole answer that an event carries."""
    part: dict[str, Any] = whole_throughout(read_object(bytes(raw)) or {})
    return part
