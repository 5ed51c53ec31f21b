"""The arguments of a call that stand in markup, each between marks of its own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from wolo.formats.text_recovery.leaked_forms import Values

SWALLOWED = (
    "The value of `{key}` holds the mark of another argument: the mark that ends it seems to be missing. Nothing was run. "
    "Send the call again with every argument between its own marks."
)
TWICE = "The argument `{key}` is given twice. Nothing was run. Send the call again with each argument once."
MOST_ENDS = 200
"""So many marks that may end a call are none: each costs a look at all that was read."""
MOST_DEPTH = 20
"""Schemas that refer to themselves have no end."""
_SIGNS = {"properties": "object", "additionalProperties": "object", "items": "array"}
"""Words that only schemas of one kind have."""
_PYTHON = {"None": None, "True": True, "False": False}


class Markup:
    """Values that are being read, up to the mark that ends them."""

    def __init__(self, values: Values, schema: Mapping[str, Any]) -> None:
        """`schema` is that of the tool's arguments."""
        self.arguments: str | None = None
        """As JSON, once the end has come."""
        self.problem = ""
        """Why they must not be used, in words for the model."""
        self._values = values
        self._schema = schema
        self._fragments: list[str] = []
        self._ends = 0
        """How many end marks were read."""
        self._tail = ""
        """The end of what was read: an end mark may be cut in two."""

    @property
    def text(self) -> str:
        return "".join(self._fragments)

    def take(self, text: str) -> str | None:
        """Returns what follows the call, or None while it goes on. Without `arguments` it turned out to be none."""
        self._fragments.append(text)
        end = self._values.end
        fresh = self._tail + text
        self._tail = fresh[-len(end) + 1 :]
        if end not in fresh:
            return None
        self._ends += fresh.count(end)
        if self._ends > MOST_ENDS:
            return ""
        everything = self.text
        body = self._values.body.match(everything)
        if body is None or (arguments := self._read(everything, body.end(1))) is None:
            return None
        self.arguments = json.dumps(arguments, ensure_ascii=False)
        self._fragments = [body[0]]
        return everything[body.end() :]

    def _read(self, text: str, end: int) -> dict[str, Any] | None:
        """None when something else stands between the values."""
        properties = self._schema.get("properties", {})
        arguments: dict[str, Any] = {}
        self.problem = ""
        at = 0
        while value := self._values.value.match(text, at):
            key, said = value[1].strip(), value[2].removeprefix("\n").removesuffix("\n")
            if self._values.mark.search(value[1] + "\n" + value[2]):
                self.problem = SWALLOWED.format(key=self._values.mark.split(key, maxsplit=1)[0].strip())
            elif key in arguments:
                self.problem = self.problem or TWICE.format(key=key)
            arguments[key] = _converted(said, _kinds(properties.get(key), self._schema))
            at = value.end()
        return arguments if not text[at:end].strip() else None


def _converted(text: str, kinds: frozenset[str]) -> Any:
    """Markup knows text only; what else a value is says the schema. Where only text fits it stays text, like JSON or not."""
    if not kinds - {"string"}:
        return text
    if text.strip() in _PYTHON and "string" not in kinds:
        return _PYTHON[text.strip()]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    if isinstance(value, float) and value.is_integer() and "integer" in kinds and "number" not in kinds:
        value = int(value)
    return value if _kind_of(value) in kinds or "string" not in kinds else text


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case _:
            return "array" if isinstance(value, list) else "object"


def _kinds(schema: Any, root: Mapping[str, Any]) -> frozenset[str]:
    """What a value may be by any branch of its schema; nothing when the schema does not say."""
    kinds = set(_named_kinds(schema, root, MOST_DEPTH))
    return frozenset(kinds | {"integer"}) if "number" in kinds else frozenset(kinds)


def _named_kinds(schema: Any, root: Mapping[str, Any], depth: int) -> Iterator[str]:
    if not isinstance(schema, Mapping) or not depth:
        return
    named = schema.get("type", ())
    yield from (named,) if isinstance(named, str) else filter(_is_text, named) if isinstance(named, list | tuple) else ()
    constants = [*_listed(schema.get("enum")), *([schema["const"]] if "const" in schema else [])]
    if not named:
        yield from map(_kind_of, constants)
        yield from (kind for word, kind in _SIGNS.items() if word in schema)
    if schema.get("nullable") is True:
        yield "null"
    for word in ("anyOf", "oneOf", "allOf"):
        for branch in _listed(schema.get(word)):
            yield from _named_kinds(branch, root, depth - 1)
    if isinstance(reference := schema.get("$ref"), str):
        yield from _named_kinds(_target(reference, root), root, depth - 1)


def _target(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for name in reference.removeprefix("#/").split("/"):
        found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
