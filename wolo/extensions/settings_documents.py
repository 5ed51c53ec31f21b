"""Parses settings of other agents and editors: JSON with comments, TOML, or YAML within bounds."""

from __future__ import annotations

import json
import re
from typing import Any

from wolo.errors import ExtensionError

_MAX_DEPTH = 100


def parse_settings(data: bytes, name: str) -> dict[str, Any]:
    """`name` decides the form. Raises ExtensionError."""
    try:
        text = data.decode("utf-8-sig")
        if name.endswith(".toml"):
            import tomllib  # noqa: PLC0415  # Codex only

            return check_values(tomllib.loads(text))
        if name.endswith((".yaml", ".yml", ".roomodes")) and not text.lstrip().startswith("{"):
            from wolo.extensions.yaml_fields import read_fields  # noqa: PLC0415  # few have such files

            fields = read_fields(text.splitlines(), name, 1)
            if fields.problem:
                raise ExtensionError(fields.problem)
            return dict(fields.values)
        table = json.loads(without_comments(text)) if text.strip() else {}
        if not isinstance(table, dict):
            raise ExtensionError(f"{name} holds no table.")
        return check_values(table)
    except (ValueError, RecursionError) as error:
        raise ExtensionError(f"{name} cannot be read: {error}.") from error


def check_values(document: dict[str, Any]) -> dict[str, Any]:
    """Raises ValueError for what is nested too deeply for those who read it, and for half a character, which nobody can write."""
    level: list[Any] = [document]
    for _ in range(_MAX_DEPTH):
        inner = (value for each in level for value in (each.values() if isinstance(each, dict) else each))
        level = [value for value in inner if isinstance(value, dict | list)]
    if level:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep")
    json.dumps(document, ensure_ascii=False, default=str).encode()
    return document


def without_comments(text: str) -> str:
    """JSON without `//` and `/* */` comments and without commas before a closing bracket, outside strings."""
    if "//" in text or "/*" in text:
        token = r'("(?:\\.|[^"\\])*(?:"|\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)'  # an open end is matched too: linear time
        text = re.sub(token, lambda match: match[1] or " ", text, flags=re.DOTALL)
    return re.sub(r'("(?:\\.|[^"\\])*(?:"|\Z))|,(?=\s*+[}\]])', lambda match: match[1] or "", text, flags=re.DOTALL)
