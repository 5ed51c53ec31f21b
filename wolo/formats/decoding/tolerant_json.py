"""Read JSON from servers tolerantly: invalid values become None, never an exception."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import msgspec
from msgspec import Raw

from wolo.messages.unicode import whole

EMPTY_JSON = (b"", b"null", b"{}", b"[]", b'""', b"false")
"""Empty values; an error field with one of them is no error."""


def read_json(data: bytes | str) -> Any:
    """Decode strictly, so that the value can be encoded again; infinite numbers are refused."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def read_object(data: bytes) -> dict[str, Any] | None:
    """Decode an object as tolerantly as possible; of a list its first object."""
    try:
        document = json.loads(data.decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, list):
        document = next((each for each in document if isinstance(each, dict)), None)
    return document if isinstance(document, dict) else None


def as_raw(value: object) -> Raw:
    """Encode a value again; empty for None."""
    return Raw() if value is None else Raw(whole(json.dumps(value, ensure_ascii=False)).encode())


class SurrogateJoiner:
    """Joins surrogate pairs that were split across payloads."""

    def __init__(self) -> None:
        self.kept: dict[Hashable, str] = {}
        """Pending first halves by position. While there are any, payloads must be read tolerantly."""

    def join(self, place: Hashable, text: str) -> str:
        """The next piece of text at this position, in whole characters."""
        text = self.kept.pop(place, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self.kept[place], text = text[-1], text[:-1]
        return whole(text)


MAX_COUNT = 10**12
"""Larger token counts are errors and would overflow sums."""


def token_count(value: object) -> int:
    """0 for anything but a plausible count."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MAX_COUNT:
        return 0
    return int(value)
