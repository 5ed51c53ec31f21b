"""Read JSON from servers tolerantly: invalid values become None, never an exception."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import msgspec
from msgspec import Raw

from wolo.messages.unicode import whole

EMPTY_JSON = (b"", b"null", b"{}", b"[]", b'""', b"false")
"""JSON that says nothing: an error of this kind is none."""


def read_json(data: bytes | str) -> Any:
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


class SurrogateJoiner:
    """Keeps each first half until its second comes."""

    def __init__(self) -> None:
        self.kept: dict[Hashable, str] = {}
        """By the place it came in. While there are any, payloads must be read with halves in them."""

    def join(self, place: Hashable, text: str) -> str:
        """The next piece of the text that is being written at this place, in whole characters."""
        text = self.kept.pop(place, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self.kept[place], text = text[-1], text[:-1]
        return whole(text)


MAX_COUNT = 10**12
"""No answer has so many tokens: such a number is a mistake, and sums of it would fit nowhere."""


def token_count(value: object) -> int:
    """0 for what is no count."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MAX_COUNT:
        return 0
    return int(value)
