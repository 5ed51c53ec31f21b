"""JSON that came from a server: what is none is None, never an exception."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Raw

from wolo.messages.unicode import whole

NOTHING = (b"", b"null", b"{}", b"[]", b'""', b"false")
"""JSON that says nothing: an error of this kind is none."""


def read_strictly(data: bytes | str) -> Any:
    """Any value, by the rules: what is read here can be written again. A number beyond all bounds is against them."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def read_object(data: bytes) -> dict[str, Any] | None:
    """Whatever can be understood as a JSON object, halves of characters included; of a list its first object."""
    try:
        document = json.loads(data.decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, list):
        document = next((each for each in document if isinstance(each, dict)), None)
    return document if isinstance(document, dict) else None


def as_raw(value: object) -> Raw:
    """A value that was read, as JSON again; nothing for None."""
    return Raw() if value is None else Raw(whole(json.dumps(value, ensure_ascii=False)).encode())
