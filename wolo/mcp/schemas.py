"""The schema of a server's tool as requests may carry it, and the way back from a model's arguments to the server's."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from wolo.formats.encoding.tool_schema import adapt_schema
from wolo.messages.terminal_text import clean

MOST_BYTES = 64 * 1024
"""A larger schema would cost a window of its own: such a tool takes any object."""
_LEGAL_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SAID = ("title", "description")
_BY_NAME = ("properties", "dependentSchemas")
_IN_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_ALONE = ("items", "additionalProperties", "not", "contains", "if", "then", "else")


class Fitted:
    """A schema with references put in place and keys that every server takes."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._keys: dict[str, str] = {}
        bent = self._renamed(adapt_schema(schema))
        try:
            size = len(msgspec.json.encode(bent))
        except (TypeError, ValueError, RecursionError):
            size = MOST_BYTES + 1
        self.parameters: dict[str, Any] = bent if size <= MOST_BYTES else {"type": "object", "properties": {}}

    def given_back(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments under the server's own keys; what the schema wants as a list or an object is no string of JSON."""
        read = {name: _unwrapped(value, self._wanted(name)) for name, value in arguments.items()}
        return {self._keys.get(name, name): self._with_own_keys(value) for name, value in read.items()}

    def _wanted(self, name: str) -> Any:
        return self.parameters.get("properties", {}).get(name)

    def _with_own_keys(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._keys.get(name, name): self._with_own_keys(each) for name, each in value.items()}
        return [self._with_own_keys(each) for each in value] if isinstance(value, list) else value

    def _renamed(self, schema: dict[str, Any]) -> dict[str, Any]:
        changed = {name: clean(each) if name in _SAID and isinstance(each, str) else each for name, each in schema.items()}
        for name in _BY_NAME:
            if isinstance(found := schema.get(name), dict):
                changed[name] = {self._legal(key): self._renamed(each) for key, each in found.items()}
        for name in _IN_LIST:
            if isinstance(found := schema.get(name), list):
                changed[name] = [self._renamed(each) for each in found]
        for name in _ALONE:
            if isinstance(found := schema.get(name), dict):
                changed[name] = self._renamed(found)
        if isinstance(required := schema.get("required"), list):
            changed["required"] = [self._legal(key) for key in required]
        return changed

    def _legal(self, key: str) -> str:
        if _LEGAL_KEY.fullmatch(key):
            return key
        mark = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        legal = f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', key)[:55]}_{mark}"
        self._keys[legal] = key
        return legal


def _unwrapped(value: Any, schema: Any) -> Any:
    """A list or an object that the model wrote as a string of JSON, where a string is not what is wanted."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(value, str) or kind not in ("array", "object"):
        return value
    try:
        read = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value
    return read if isinstance(read, list if kind == "array" else dict) else value
