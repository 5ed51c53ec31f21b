"""Reads JSON from servers tolerantly: invalid values become None, never an exception."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from wolo.messages.message import Usage
from wolo.messages.unicode import whole

T = TypeVar("T")

EMPTY_JSON = (b"", b"null", b"{}", b"[]", b'""', b"false")
"""Empty values; an error field with one of them is no error."""


def read_json(data: bytes | str) -> Any:
    """Decode strictly, so that the value can be encoded again; infinite numbers are refused."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def read_as(data: bytes, kind: type[T]) -> T | None:
    """Decode a value of this type; None for anything else."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def read_fields(data: bytes | str) -> dict[str, Any]:
    """Decode an object; empty for anything else."""
    value = read_json(data)
    return value if isinstance(value, dict) else {}


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


class SurrogateJoiner(Struct):
    """Joins surrogate pairs that were split across payloads."""

    pending: dict[Hashable, str] = {}
    """Pending first halves by position. While there are any, payloads must be read tolerantly."""

    def join(self, place: Hashable, text: str) -> str:
        """The next piece of text at this position, in whole characters."""
        text = self.pending.pop(place, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self.pending[place], text = text[-1], text[:-1]
        return whole(text)


class PayloadReader(ABC, Generic[T]):
    """Reads the payloads of one stream: a strict decoder first, tolerant parsing where it fails."""

    def __init__(self) -> None:
        self.skipped = 0
        """Payloads that were not JSON objects."""
        self._surrogates = SurrogateJoiner()
        self._split_chars = self._surrogates.pending

    def read(self, payload: bytes) -> T | None:
        if not self._split_chars:
            try:
                return self._decode(payload)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                pass
        document = read_object(payload)
        return self._unreadable(payload) if document is None else self._from_object(document)

    @abstractmethod
    def _decode(self, payload: bytes) -> T:
        """Decode strictly. Raises msgspec.MsgspecError for anything unusual."""

    @abstractmethod
    def _from_object(self, document: dict[str, Any]) -> T:
        """Keep whatever is valid."""

    def _unreadable(self, payload: bytes) -> T | None:
        self.skipped += 1
        return None


MAX_COUNT = 10**12
"""Larger token counts are errors and would overflow sums."""


def token_counts(usage: object) -> dict[str, int]:
    """Plausible nonzero counts by name; none in anything but an object."""
    if not isinstance(usage, dict):
        return {}
    return {name: count for name, value in usage.items() if (count := token_count(value))}


def token_count(value: object) -> int:
    """0 for anything but a plausible count."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MAX_COUNT:
        return 0
    return int(value)


def mapping_at(value: object, name: str) -> dict[str, Any]:
    """Empty for anything but an object in an object."""
    inner = value.get(name) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, dict) else {}


def list_at(value: object, name: str, kind: type[Any] = object) -> list[Any]:
    """The items of this type; none in anything but a list in an object."""
    inner = value.get(name) if isinstance(value, Mapping) else None
    return [each for each in inner if isinstance(each, kind)] if isinstance(inner, list) else []


def text_at(value: Mapping[str, Any], name: str) -> str:
    """Empty for anything but a text."""
    inner = value.get(name)
    return inner if isinstance(inner, str) else ""


MOST_ID_CHARS = 200


def short_text(value: object) -> str:
    """Empty for anything but a short text."""
    return whole(value) if isinstance(value, str) and len(value) <= MOST_ID_CHARS else ""


def usage_of(usage: object) -> Usage | None:
    """None when there is no usage. Prompt counts include cached tokens, completion counts include reasoning."""
    if not isinstance(usage, dict):
        return None
    counts = token_counts(usage)
    of_prompt, of_output = (
        token_counts(next((usage[name] for name in names if isinstance(usage.get(name), dict)), None))
        for names in (("prompt_tokens_details", "input_tokens_details"), ("completion_tokens_details", "output_tokens_details"))
    )
    prompt = _first(counts, "prompt_tokens", "input_tokens")
    read = min(_first(of_prompt, "cached_tokens") or _first(counts, "cached_tokens", "prompt_cache_hit_tokens"), prompt)
    write = min(_first(of_prompt, "cache_write_tokens", "cache_creation_tokens"), prompt - read)
    output = _first(counts, "completion_tokens", "output_tokens")
    reasoning = _first(of_output, "reasoning_tokens") or _first(counts, "reasoning_tokens")
    if reasoning and counts.get("total_tokens") == prompt + output + reasoning:
        output += reasoning  # the total shows that the completion count excludes it (xAI)
    return Usage(prompt - read - write, output, read, write, min(reasoning, output))


def _first(counts: Mapping[str, int], *names: str) -> int:
    return next((counts[name] for name in names if name in counts), 0)
