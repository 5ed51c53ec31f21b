"""Bends the JSON schema of a tool to what servers take: one strange schema would cost the whole request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOT_SENT = frozenset({"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$ref"})
MAX_NODES = 5000
MAX_DEPTH = 30
"""References may multiply; what lies beyond these bounds becomes "anything"."""

_SCHEMAS_BY_NAME = ("properties", "patternProperties", "dependentSchemas")
_SCHEMAS_IN_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMA_ALONE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")


def bend(schema: Mapping[str, Any], *, null_types: bool = True) -> dict[str, Any]:
    """The same meaning as far as it can be kept, with references put in place and an object at the root.

    Bending twice changes nothing more. `null_types` False also takes the type null out of unions.
    """
    bent = _Bender(schema, null_types).bend(schema, (), 0)
    if bent.get("type") != "object":
        bent = {"type": "object", "properties": {}} | {name: value for name, value in bent.items() if name == "description"}
    if not isinstance(bent.get("properties"), dict):
        bent["properties"] = {}
    return bent


class _Bender:
    def __init__(self, root: Mapping[str, Any], null_types: bool) -> None:
        self._root = root
        self._null_types = null_types
        self._nodes_left = MAX_NODES

    def bend(self, schema: Any, above: tuple[str, ...], depth: int) -> dict[str, Any]:
        """`above` are the references this schema stands inside: one that comes again is a cycle and ends here."""
        self._nodes_left -= 1
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH or self._nodes_left < 0:
            return {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference in above:
                return _described(schema, {"type": "object"})
            target = self._look_up(reference)
            beside = {name: value for name, value in schema.items() if name != "$ref"}
            return self.bend({**target, **beside}, (*above, reference), depth + 1)
        bent = {name: self._value(name, value, above, depth) for name, value in schema.items() if name not in NOT_SENT}
        return self._tidy(bent)

    def _look_up(self, reference: str) -> Mapping[str, Any]:
        """Only within the document; nothing is ever fetched."""
        found: Any = self._root
        if not reference.startswith("#"):
            return {}
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else {}

    def _value(self, name: str, value: Any, above: tuple[str, ...], depth: int) -> Any:
        if name in _SCHEMAS_BY_NAME and isinstance(value, Mapping):
            return {str(key): self.bend(each, above, depth + 1) for key, each in value.items()}
        if name in _SCHEMAS_IN_LIST and isinstance(value, list):
            return [self.bend(each, above, depth + 1) for each in value if not _is_impossible(each)]
        if name in _SCHEMA_ALONE and isinstance(value, Mapping):
            return self.bend(value, above, depth + 1)
        return value

    def _tidy(self, bent: dict[str, Any]) -> dict[str, Any]:
        for name in ("anyOf", "oneOf", "allOf"):
            bent = self._tidy_union(bent, name)
        if isinstance(bent.get("type"), list):
            bent["type"] = self._tidy_types(bent["type"])
        if not bent.get("type", True):
            del bent["type"]
        _infer_type(bent)
        if bent.get("additionalProperties") == {}:
            del bent["additionalProperties"]
        if _may_be(bent, "array") and not isinstance(bent.get("items"), dict):
            bent["items"] = {}
        if isinstance(bent.get("required"), list):
            bent["required"] = [name for name in bent["required"] if name in bent.get("properties", {})]
        if "required" in bent and not bent["required"]:
            del bent["required"]
        return bent

    def _tidy_union(self, bent: dict[str, Any], name: str) -> dict[str, Any]:
        """A union of one is that one; an empty union says nothing."""
        choices = bent.get(name)
        if not isinstance(choices, list):
            return bent
        if not self._null_types and len(choices) > 1:
            choices = [choice for choice in choices if choice.get("type") != "null"] or choices
        rest = {key: value for key, value in bent.items() if key != name}
        if len(choices) > 1:
            return rest | {name: choices}
        return {**choices[0], **rest} if choices else rest

    def _tidy_types(self, types: list[Any]) -> Any:
        named = [each for each in types if self._null_types or each != "null"] or types
        return named[0] if len(named) == 1 else named


def _infer_type(bent: dict[str, Any]) -> None:
    if any(name in bent for name in ("type", "enum", "const", "anyOf", "oneOf", "allOf", "not")):
        return
    if "properties" in bent or "additionalProperties" in bent:
        bent["type"] = "object"
    elif "items" in bent or "prefixItems" in bent:
        bent["type"] = "array"


def _may_be(bent: Mapping[str, Any], kind: str) -> bool:
    named = bent.get("type")
    return named == kind or (isinstance(named, list) and kind in named)


def _is_impossible(schema: Any) -> bool:
    """`{"not": {}}` and `false` allow nothing: what some generators write for "undefined"."""
    return schema is False or (isinstance(schema, Mapping) and schema.get("not") in ({}, True) and len(schema) == 1)


def _described(schema: Mapping[str, Any], bent: dict[str, Any]) -> dict[str, Any]:
    return {**bent, "description": schema["description"]} if "description" in schema else bent
