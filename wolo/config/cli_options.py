"""The options of one command line by name, and how the rooms that use them read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wolo.errors import UsageError

Given = Mapping[str, "str | bool | list[str]"]
"""As `cli.options` reads them."""


def text(given: Given, name: str) -> str:
    """Empty when the option was not given."""
    value = given.get(name, "")
    return value if isinstance(value, str) else ""


def many(given: Given, name: str) -> list[str]:
    """What an option was given that may be repeated."""
    value = given.get(name, [])
    return value if isinstance(value, list) else []


def text_or_file(given: Given, name: str) -> str:
    """`@FILE` stands for what the file holds. Raises UsageError when it cannot be read."""
    said = text(given, name)
    if not said.startswith("@"):
        return said
    try:
        return Path(said[1:]).expanduser().read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        raise UsageError(f"--{name.replace('_', '-')}: {said[1:]} cannot be read: {error}.") from error


def directories(given: Given, name: str) -> tuple[Path, ...]:
    """Raises UsageError for one that is not there."""
    return tuple(_directory(said, name) for said in many(given, name))


def _directory(said: str, name: str) -> Path:
    path = Path(said).expanduser()
    if not path.is_dir():
        raise UsageError(f"--{name.replace('_', '-')}: there is no directory {said}.")
    return path.absolute()
