"""Slash commands that other agents have under another name, or that are something else here."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from wolo.errors import UsageError

_NAMES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SAME: Mapping[str, str] = _NAMES["same"]
"""Our command by the name elsewhere."""
_EXPLAINED: Mapping[str, str] = _NAMES["explained"]


def explain_name(name: str) -> None:
    """Raises UsageError with a line about a command that only other agents have."""
    if sentence := _EXPLAINED.get(name.casefold()):
        raise UsageError(f"/{name.casefold()} is no command here.", hint=sentence)
