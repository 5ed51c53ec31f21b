"""Parses JSON and keeps the column of every value, so that a mistake can be located."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

_BLANKS = (" ", "\t", "\r", "\n")
_DEEPEST = 100


class JsonMistake(Exception):
    """Invalid JSON. `column` counts characters from 1."""

    def __init__(self, column: int, message: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message


class JsonPlace(Struct, frozen=True):
    """A value with its column; `fields` are those of an object, `items` those of an array."""

    value: Any
    column: int
    fields: dict[str, JsonPlace] = {}
    """Each value with the column of its name."""
    items: tuple[JsonPlace, ...] = ()


def parse_line(text: str) -> JsonPlace:
    """Parses one line that holds one value. Raises JsonMistake."""
    place, end = _value(text, _skip(text, 0), 0)
    end = _skip(text, end)
    if end != len(text):
        raise JsonMistake(end + 1, "more text after the JSON value; one task a line")
    return place


def _value(text: str, start: int, depth: int) -> tuple[JsonPlace, int]:
    """The value that begins there, and the position after it."""
    if depth > _DEEPEST:
        raise JsonMistake(start + 1, f"nested deeper than {_DEEPEST} levels")
    closing = {"{": "}", "[": "]"}.get(text[start : start + 1])
    if closing is None:
        value, end = _scan(text, start)
        if isinstance(value, str):
            _check_text(value, start)
        return JsonPlace(value, start + 1), end
    fields: dict[str, JsonPlace] = {}
    items: list[JsonPlace] = []
    at = _skip(text, start + 1)
    is_ended = text[at : at + 1] == closing
    while not is_ended:
        first = at
        if closing == "}":
            name, at = _name(text, first)
            if name in fields:
                raise JsonMistake(first + 1, f"the field {name!r} is given twice")
        place, at = _value(text, at, depth + 1)
        if closing == "}":
            fields[name] = JsonPlace(place.value, first + 1, place.fields, place.items)
        else:
            items.append(place)
        at = _skip(text, at)
        is_ended = text[at : at + 1] == closing
        if not is_ended:
            if text[at : at + 1] != ",":
                raise JsonMistake(at + 1, f"invalid JSON: ',' or '{closing}' is expected")
            at = _skip(text, at + 1)
    if closing == "]":
        return JsonPlace([place.value for place in items], start + 1, items=tuple(items)), at + 1
    return JsonPlace({name: place.value for name, place in fields.items()}, start + 1, fields), at + 1


def _name(text: str, at: int) -> tuple[str, int]:
    """The name of a field, and the position of its value."""
    if text[at : at + 1] != '"':
        raise JsonMistake(at + 1, "invalid JSON: a field's name in double quotes is expected")
    name, end = _scan(text, at)
    _check_text(name, at)
    end = _skip(text, end)
    if text[end : end + 1] != ":":
        raise JsonMistake(end + 1, "invalid JSON: ':' is expected")
    return name, _skip(text, end + 1)


def _scan(text: str, at: int) -> tuple[Any, int]:
    """Reads a string, number, true, false or null."""
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        said = f"{error.msg[:1].lower()}{error.msg[1:]}".removesuffix(" at")
        raise JsonMistake(error.pos + 1, f"invalid JSON: {said}") from error
    except ValueError as error:  # NaN and Infinity, and numbers with thousands of digits
        raise JsonMistake(at + 1, f"invalid JSON: {error}") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _number(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{digits} is too large")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_number)


def _check_text(value: str, at: int) -> None:
    if "\0" in value:
        raise JsonMistake(at + 1, "the text holds a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise JsonMistake(at + 1, "the text holds half of a surrogate pair") from error


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in _BLANKS and at < len(text):
        at += 1
    return at
