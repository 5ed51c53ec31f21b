"""One payload of a Messages stream as a value: fast where the server keeps to the rules, patient where not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from wolo.formats.decoding.loose_json import as_raw, read_object
from wolo.formats.decoding.surrogates import Halves


class Piece(Struct, gc=False):
    """What an event adds to a block, or to the answer as a whole."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None
    stop_details: Raw = Raw()


class Event(Struct, gc=False):
    type: str | None = None
    index: int | None = None
    delta: Piece | None = None
    content_block: Raw = Raw()
    message: Raw = Raw()
    usage: Raw = Raw()
    error: Raw = Raw()


_decode = msgspec.json.Decoder(Event).decode

DONE = "[DONE]"
"""As the type of an event: what proxies of another API put at the end of a stream."""


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
                event = _decode(payload)
                if event.type is not None:
                    return event
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                pass
        if payload.startswith(b"[DONE]"):
            return Event(type=DONE)
        document = read_object(payload)
        if document is None:
            self.skipped += 1
            return None
        return self._event(document)

    def _event(self, document: Mapping[str, Any]) -> Event:
        kind = document.get("type")
        delta = document.get("delta")
        index = document.get("index")
        index = index if isinstance(index, int) else None
        return Event(
            type=kind if isinstance(kind, str) else _told_by(document),
            index=index,
            delta=self._piece(index, delta) if isinstance(delta, dict) else None,
            content_block=as_raw(document.get("content_block")),
            message=as_raw(document.get("message")),
            usage=as_raw(document.get("usage")),
            error=as_raw(document.get("error")),
        )

    def _piece(self, index: int | None, delta: Mapping[str, Any]) -> Piece:
        kind, reason, partial = delta.get("type"), delta.get("stop_reason"), delta.get("partial_json")
        if isinstance(partial, dict):
            partial = json.dumps(partial, ensure_ascii=False)
        return Piece(
            type=kind if isinstance(kind, str) else None,
            text=self._mended(index, "text", delta.get("text")),
            thinking=self._mended(index, "thinking", delta.get("thinking")),
            signature=signature if isinstance(signature := delta.get("signature"), str) else None,
            partial_json=self._mended(index, "partial_json", partial),
            stop_reason=None if reason is None else str(reason),
            stop_details=as_raw(delta.get("stop_details")),
        )

    def _mended(self, index: int | None, field: str, text: object) -> str | None:
        return self._halves.mend((index, field), text) if isinstance(text, str) else None


def _told_by(document: Mapping[str, Any]) -> str:
    """What an event without a type is, by what it holds."""
    delta = document.get("delta")
    if isinstance(delta, dict):
        return "message_delta" if "stop_reason" in delta else "content_block_delta"
    fields = {"content_block": "content_block_start", "message": "message_start", "error": "error"}
    return next((kind for field, kind in fields.items() if document.get(field)), "")
