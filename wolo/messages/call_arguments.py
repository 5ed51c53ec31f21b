"""Arguments of a tool call: parse what the model wrote, and show it as text."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from wolo.messages.parts import ToolPart
from wolo.messages.terminal_text import escaped_line, quantity

MAX_DEPTH = 100
MAX_CHARACTERS = 16_000_000
NEAR_CHARACTERS = 20
"""Characters of context shown on either side of a mistake."""


class Unreadable(Exception):
    """The message states the reason and the position."""


def read_arguments(text: str) -> dict[str, Any]:
    """Parse the arguments of a tool call; empty text means no arguments. Raises Unreadable.

    Two repairs are made because they cannot change the meaning: literal control characters in strings, and one level of double
    encoding. Other errors are reported to the model.
    """
    if (stripped := text.strip()) in ("", "null"):
        return {}
    if len(stripped) > MAX_CHARACTERS:
        raise Unreadable(f"not usable: {len(stripped)} characters are too many")
    value = _parse(stripped)
    if isinstance(value, str):
        value = _parse(value.strip())
    if not isinstance(value, dict):
        names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
        raise Unreadable(f"not a JSON object but {names.get(type(value), 'null')}, near {_near(stripped, 0)}")
    check_usable(value, stripped)
    return value


def _parse(text: str) -> Any:
    try:
        return json.loads(text, strict=False, parse_constant=_refuse_constant, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as error:
        raise Unreadable(_not_json(error.msg, text, error.pos)) from None
    except _NoNumber as error:
        raise Unreadable(_not_json(f"{error} is not a JSON number", text, text.find(str(error)))) from None
    except _TwoMeanings as error:
        raise Unreadable(f"not usable: the key {str(error)[:NEAR_CHARACTERS]!r} is duplicated, near {_near(text, 0)}") from None
    except RecursionError:
        raise Unreadable(_too_deep(text)) from None
    except ValueError:  # Python limits the length of integers
        raise Unreadable(f"not usable: a number is too large, near {_near(text, 0)}") from None


class _NoNumber(Exception):
    pass


class _TwoMeanings(Exception):
    pass


def _refuse_constant(name: str) -> Any:
    raise _NoNumber(name)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse duplicate keys: parsers differ in which value they use."""
    value: dict[str, Any] = {}
    for key, each in pairs:
        if key in value:
            raise _TwoMeanings(key)
        value[key] = each
    return value


def check_usable(root: Any, text: str) -> None:
    """Raise Unreadable for valid JSON that other software cannot handle: deep nesting, infinite numbers, lone surrogates.
    Integers of any size are allowed. `text` is the source of the value."""
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
            try:
                value.encode()
            except UnicodeEncodeError as error:
                place = f"character {error.start + 1} of {_near(value, error.start)}"
                raise Unreadable(f"not valid text: half of a surrogate pair at {place}") from None
        elif isinstance(value, float) and not math.isfinite(value):
            raise Unreadable(f"not usable: a number is too large, near {_near(text, 0)}")


def _not_json(reason: str, text: str, position: int) -> str:
    return f"not valid JSON: {reason} at character {position + 1} of {len(text)}, near {_near(text, position)}"


def _too_deep(text: str) -> str:
    return f"not usable: nested more than {MAX_DEPTH} levels deep, near {_near(text, 0)}"


def _near(text: str, position: int) -> str:
    start, end = max(position - NEAR_CHARACTERS, 0), position + NEAR_CHARACTERS
    snippet = text[start:end].encode("utf-8", "replace").decode()
    return f"{'…' if start else ''}{snippet!r}{'…' if end < len(text) else ''}"


FILES = ("path", "file_path", "filepath", "filename", "file", "absolute_path", "target_file")
MAIN = ("command", "cmd", "script", "pattern", "url", "query", "prompt", *FILES)
"""The first of these is shown without its name, before other arguments."""
SOME = 200
"""Characters shown of each changed text in lists and reports; other arguments are shown in full."""
CHANGING = frozenset({"write", "edit", "apply_patch", "todo", "ask", "present_plan"})
"""Tools whose texts a front end shows as a diff, list or question, so their call line may be short."""
_WORD = r"[\w./:@%+,=~*?-]+"
_PATCHED = r"(?m)^[ \t]*\*\*\* (?:(?:Add|Update|Delete) File|Move to):[ \t]*(.+?)[ \t\r]*$"


def call_line(part: ToolPart, *, most_chars: int | None = None, most_of_change: int | None = None) -> str:
    """`grep TODO path=src`"""
    return f"{escaped_line(part.tool)} {arguments_line(part, most_chars=most_chars, most_of_change=most_of_change)}".rstrip()


def arguments_line(part: ToolPart, *, most_chars: int | None = None, most_of_change: int | None = None) -> str:
    """All arguments on one line; truncated text ends with the number of missing characters.

    `most_of_change` limits each text shown elsewhere as a diff; 0 shows only the files of a patch.
    """
    if (arguments := named_arguments(part)) and not part.input:
        return shorten(escaped_line(arguments[0][1]), most_chars)
    main = next((name for name in MAIN if isinstance(part.input.get(name), str)), "")
    pieces = [part.input[main]] if main else []
    for name, value in arguments:
        if name == main:
            continue
        is_change = part.tool in CHANGING and name not in FILES and not isinstance(part.input[name], bool)
        if is_change and most_of_change == 0:
            pieces += patched_files(value)
            continue
        shown = shorten(value, most_of_change if is_change else None)
        needs_quotes = isinstance(part.input[name], str) and not re.fullmatch(_WORD, shown)
        pieces.append(f"{name}={as_json(shown) if needs_quotes else shown}")
    return shorten(" ".join(map(escaped_line, pieces)), most_chars)


def named_arguments(part: ToolPart) -> list[tuple[str, str]]:
    """Names and unescaped values in order; the raw text if it could not be parsed."""
    if not part.input and part.raw_input.strip() not in ("", "{}"):
        return [("arguments", part.raw_input)]
    return [(name, value if isinstance(value, str) else as_json(value)) for name, value in part.input.items()]


def shorten(text: str, most_chars: int | None) -> str:
    if most_chars is None or len(text) <= most_chars:
        return text
    return f"{text[:most_chars]}… (+{quantity(len(text) - most_chars, 'character')})"


def patched_files(patch: str) -> list[str]:
    return list(dict.fromkeys(re.findall(_PATCHED, patch)))


def as_json(value: object) -> str:
    """With all letters as they are; what has no JSON form is text."""
    return json.dumps(value, ensure_ascii=False, default=str)
