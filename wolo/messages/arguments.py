"""The argument text of a tool call, read once: an object, or a sentence for the model about what is wrong with it."""

from __future__ import annotations

import json
import math
from typing import Any

MAX_DEPTH = 100
MAX_CHARACTERS = 16_000_000
NEAR_CHARACTERS = 20
"""How much of the text is shown on either side of a mistake."""


class Unreadable(Exception):
    """The message tells the reason and the place."""


def read_arguments(text: str) -> dict[str, Any]:
    """Raises Unreadable. Nothing at all means no arguments.

    Two repairs are made, because neither can change what was meant: control characters that stand literally inside strings,
    and one level of double encoding. Whatever else is wrong goes back to the model.
    """
    stripped = text.strip()
    if stripped in ("", "null"):
        return {}
    if len(stripped) > MAX_CHARACTERS:
        raise Unreadable(f"not usable: {len(stripped)} characters are too many")
    value = _parse(stripped)
    if isinstance(value, str):
        value = _parse(value.strip())
    if not isinstance(value, dict):
        raise Unreadable(f"not a JSON object but {_kind(value)}, near {_near(stripped, 0)}")
    check_usable(value, stripped)
    return value


def _parse(text: str) -> Any:
    try:
        return _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Unreadable(_not_json(error.msg, text, error.pos)) from None
    except _NoNumber as error:
        raise Unreadable(_not_json(f"{error} is not a JSON number", text, text.find(str(error)))) from None
    except _TwoMeanings as error:
        raise Unreadable(
            f"not usable: the key {str(error)[:NEAR_CHARACTERS]!r} stands there twice, near {_near(text, 0)}"
        ) from None
    except RecursionError:
        raise Unreadable(_too_deep(text)) from None
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise Unreadable(f"not usable: a number is too large, near {_near(text, 0)}") from None


class _NoNumber(Exception):
    pass


class _TwoMeanings(Exception):
    pass


def _refuse_constant(name: str) -> Any:
    raise _NoNumber(name)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Which of two values was meant nobody can tell, and readers differ in which they take."""
    value: dict[str, Any] = {}
    for key, each in pairs:
        if key in value:
            raise _TwoMeanings(key)
        value[key] = each
    return value


_decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant, object_pairs_hook=_without_doubles)


def check_usable(root: Any, text: str) -> None:
    """Raises Unreadable for what JSON allows and the rest of the world does not: endless nesting, fractions without bounds and
    halves of characters. Whole numbers keep their value. `text` is what the value was read from."""
    waiting = [(root, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise Unreadable(_too_deep(text))
        if isinstance(value, dict):
            waiting.extend((each, depth + 1) for pair in value.items() for each in pair)
        elif isinstance(value, list):
            waiting.extend((each, depth + 1) for each in value)
        elif isinstance(value, str):
            _check_characters(value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise Unreadable(f"not usable: a number is too large, near {_near(text, 0)}")


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Unreadable(
            f"not valid text: half of a surrogate pair at character {error.start + 1} of {_near(text, error.start)}"
        ) from None


def _not_json(reason: str, text: str, position: int) -> str:
    return f"not valid JSON: {reason} at character {position + 1} of {len(text)}, near {_near(text, position)}"


def _too_deep(text: str) -> str:
    return f"not usable: nested more than {MAX_DEPTH} levels deep, near {_near(text, 0)}"


def _near(text: str, position: int) -> str:
    start, end = max(position - NEAR_CHARACTERS, 0), position + NEAR_CHARACTERS
    snippet = text[start:end].encode("utf-8", "replace").decode()
    return f"{'…' if start else ''}{snippet!r}{'…' if end < len(text) else ''}"


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
