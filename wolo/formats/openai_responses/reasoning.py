"""A reasoning item of the Responses API as one thinking part, and the same item again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from wolo.formats.decoding.loose_json import read_strictly
from wolo.messages.parts import Blob, ThinkingPart, blob_of
from wolo.messages.unicode import clean

ENCRYPTED = "openai.encrypted"
"""The kind of a blob that holds `encrypted_content`."""
AS_IT_CAME = "openai.reasoning"
"""The kind of a blob that holds summary and content where the text alone does not tell how they were divided."""
SUMMARY = "summary"
CONTENT = "reasoning_text"
"""The fields of thinking parts: what a summary of reasoning says, and what a server says that hides nothing."""
BETWEEN = "\n\n"
"""Stands between the pieces of one item's text."""


def pieces_of(item: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """Everything readable in an item: its field, its place there, its text."""
    return [
        (field, at, piece["text"])
        for name, field in (("summary", SUMMARY), ("content", CONTENT))
        for at, piece in enumerate(_pieces(item, name))
    ]


def blobs_of(item: Mapping[str, Any], text: str, field: str) -> tuple[Blob, ...]:
    """What beside its text is needed to say the item again."""
    encrypted = item.get("encrypted_content")
    blobs = [Blob(ENCRYPTED, encrypted)] if isinstance(encrypted, str) and encrypted else []
    divided = {name: pieces for name in ("summary", "content") if (pieces := _pieces(item, name)) or name == "summary"}
    if divided != _divided(text, field):
        blobs.append(Blob(AS_IT_CAME, msgspec.json.encode(divided).decode()))
    return tuple(blobs)


def encrypted_of(part: ThinkingPart) -> str:
    """Empty when there is none, or none that could go back unchanged."""
    data = blob_of(part.blobs, ENCRYPTED)
    return data if data == clean(data) else ""


def reasoning_item(part: ThinkingPart) -> dict[str, Any]:
    encrypted = encrypted_of(part)
    divided = _divided_as_it_came(part.blobs) or _divided(clean(part.text), part.field)
    return {"type": "reasoning", "id": part.item_id, **divided, **({"encrypted_content": encrypted} if encrypted else {})}


def _divided(text: str, field: str) -> dict[str, Any]:
    if field == CONTENT:
        return {"summary": [], "content": [{"type": "reasoning_text", "text": text}]}
    return {"summary": [{"type": "summary_text", "text": text}] if text else []}


def _divided_as_it_came(blobs: Iterable[Blob]) -> dict[str, Any] | None:
    stored = read_strictly(blob_of(blobs, AS_IT_CAME))
    if not isinstance(stored, dict):
        return None
    content = _pieces(stored, "content")
    return {"summary": _pieces(stored, "summary"), **({"content": content} if content else {})}


def _pieces(item: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Only what is well formed, in the type that its place demands."""
    kind = "summary_text" if name == "summary" else "reasoning_text"
    pieces = item.get(name)
    if not isinstance(pieces, list):
        return []
    texts = [piece.get("text") for piece in pieces if isinstance(piece, dict)]
    return [{"type": kind, "text": text} for text in texts if isinstance(text, str)]
