"""Describes invalid values of settings."""

from __future__ import annotations

import re
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields

SHOWN_LENGTH = 60
NEVER_SUGGESTED = "yolo"
"""A typo must not suggest the mode that asks nothing."""
SECRETS = ("api_key", "headers", "query", "env")
"""Values of these settings are never shown."""
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "array": "a list",
    "object": "a table",
}
_LIMITS = {">=": "of at least", ">": "above", "<=": "of at most", "<": "below"}
_ROW = re.compile(r"\[(\d+)\]")
_LACKS = re.compile(r"Object missing required field `(.+?)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.+?)`")
_EXPECTED = re.compile(r"Expected `([^`|]+?)(?: \| null)?`(?: of length)?(?: (>=|>|<=|<) ([\d.]+))?")


def sentence(called: str, value: Any, kind: Any, message: str) -> str:
    """Translates msgspec's message about a value of this type; `called` is the dotted key."""
    found = re.search(r"at `\$(.+)`", message)
    path = found[1] if found else ""
    is_secret = any(name in called.split(".") for name in SECRETS)
    # The type of one table in a list of tables.
    inner = get_args(kind)[0] if get_origin(kind) is tuple else None
    kinds = (inner, *get_args(inner))
    row, row_kind = _ROW.match(path), next((each for each in kinds if isinstance(each, type) and issubclass(each, Struct)), None)
    if row and row_kind:
        called, path = f"row {int(row[1]) + 1} of {called}", path[row.end() :]
        value, kind = value[int(row[1])], row_kind
        names = re.findall(r"\.(\w+)", path)
        for name in names:
            is_group = isinstance(kind, type) and issubclass(kind, Struct)
            types = {each.encode_name: each.type for each in fields(kind)} if is_group else {}
            value, kind = value[name], _without_none(types.get(name))
        called, path = f"{called}: {'.'.join(names)}" if names else called, ""
    if lacking := _LACKS.match(message):
        return f"{called}: {lacking[1]} is missing."
    if unknown := _UNKNOWN.match(message):
        return f"{called}: there is no {unknown[1]}; there are {', '.join(_names(kind))}.{_suggestion(unknown[1], _names(kind))}"
    words = [] if is_secret else _words_of(kind)
    wrong = [each for each in (value if isinstance(value, list) else [value]) if each not in words]
    meant = _suggestion(str(wrong[0]), words) if words and wrong else ""
    return f"{called} cannot be {'that' if is_secret else _show(value)}: it takes {_takes(kind, message, path)}.{meant}"


def _takes(kind: Any, message: str, path: str) -> str:
    if words := _words_of(kind):
        return f"one of {', '.join(filter(None, words))}"
    if (expected := _EXPECTED.match(message)) is None:
        return message[:1].lower() + message[1:].replace("`", "")
    word, sign, bound = expected.groups()
    limit = f" {_LIMITS[sign]} {float(bound):g}" if sign else ""
    return _WORDS.get(word, word) + ("" if word == "str" and limit else limit) + (f" at {path}" if path else "")


def _suggestion(word: str, words: list[str]) -> str:
    import difflib  # noqa: PLC0415  # 5 ms, for typos only

    near = difflib.get_close_matches(word, [each for each in words if each != NEVER_SUGGESTED], n=1)
    return f" Did you mean {near[0]}?" if near else ""


def _words_of(kind: Any) -> list[str]:
    """Allowed words, if a value or each item of a list must be one of a few."""
    for each in (kind, *get_args(kind)):
        if get_origin(each) is Literal:
            return list(map(str, get_args(each)))
        if get_origin(each) is tuple and (words := _words_of(get_args(each)[0])):
            return words
    return []


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, UnionType):
        return kind
    return next(each for each in get_args(kind) if each is not type(None))


def _names(kind: Any) -> list[str]:
    return [each.encode_name for each in fields(kind)] if isinstance(kind, type) and issubclass(kind, Struct) else []


def _show(value: Any) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= SHOWN_LENGTH else f"{text[:SHOWN_LENGTH]}…"
