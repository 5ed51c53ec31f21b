"""Shapes that several formats ask for: names of tools, and arguments as the text of an object."""

from __future__ import annotations

import json
import re
from typing import Any

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_tool_name(name: Any) -> bool:
    return isinstance(name, str) and TOOL_NAME.fullmatch(name) is not None


def is_object_text(arguments: Any) -> bool:
    if not isinstance(arguments, str):
        return False
    try:
        return isinstance(json.loads(arguments, parse_constant=_refuse_constant), dict)
    except (ValueError, RecursionError):
        return False


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
