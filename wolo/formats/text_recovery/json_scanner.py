"""Finds the end of a JSON object in streamed text, reading each character once."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_OUTSIDE_STRING = re.compile(r'["{}]')
_INSIDE_STRING = re.compile(r'["\\]')
_SPACE = re.compile(r"[ \t\r\n]*")
_decoder = json.JSONDecoder(strict=False)  # models write literal line breaks in strings


class JsonObject:
    """An object being scanned; its JSON is not validated here."""

    def __init__(self) -> None:
        self._fragments: list[str] = []
        self._depth = 0
        self._in_string = False
        self._escaped = False

    @property
    def text(self) -> str:
        return "".join(self._fragments)

    def take(self, text: str) -> str | None:
        """Return the text after the object, or None while it continues. The first text starts with its brace."""
        at = 1 if self._escaped else 0
        self._escaped = False
        while found := (_INSIDE_STRING if self._in_string else _OUTSIDE_STRING).search(text, at):
            at = found.end()
            match found[0]:
                case '"':
                    self._in_string = not self._in_string
                case "{":
                    self._depth += 1
                case "}":
                    self._depth -= 1
                    if self._depth == 0:
                        self._fragments.append(text[:at])
                        return text[at:]
                case _:
                    at += 1
                    self._escaped = at > len(text)
        self._fragments.append(text)
        return None


class JsonMember(NamedTuple):
    key: str
    value: Any
    begin: int
    end: int
    """Offset of the value in the text."""


def read_members(text: str) -> list[JsonMember]:
    """Members of the object that fills the text. Raises ValueError, or RecursionError if nested too deep."""
    members: list[JsonMember] = []
    at = _expect(text, 0, "{")
    while not (text.startswith("}", at) and not members):
        key, at = _decoder.raw_decode(text, at)
        if not isinstance(key, str):
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        begin = _expect(text, at, ":")
        value, end = _decoder.raw_decode(text, begin)
        members.append(JsonMember(key, value, begin, end))
        at = _skip_space(text, end)
        if text.startswith("}", at):
            break
        at = _expect(text, at, ",")
    if _skip_space(text, at + 1) < len(text):
        raise json.JSONDecodeError("Extra data", text, at + 1)
    return members


def _expect(text: str, at: int, character: str) -> int:
    at = _skip_space(text, at)
    if not text.startswith(character, at):
        raise json.JSONDecodeError(f"Expecting '{character}' delimiter", text, at)
    return _skip_space(text, at + 1)


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
