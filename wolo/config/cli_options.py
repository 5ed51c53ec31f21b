"""Access to the options of a command line by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wolo.errors import UsageError

Flags = Mapping[str, "str | bool | list[str]"]
"""As parsed by `cli.options`."""


def text(flags: Flags, name: str) -> str:
    """Empty if the option was not given."""
    value = flags.get(name, "")
    return value if isinstance(value, str) else ""


def many(flags: Flags, name: str) -> list[str]:
    """Values of an option that may be repeated."""
    value = flags.get(name, [])
    return value if isinstance(value, list) else []


def text_or_file(flags: Flags, name: str) -> str:
    """Returns the content of FILE for `@FILE`. Raises UsageError if it cannot be read."""
    value = text(flags, name)
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).expanduser().read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        raise UsageError(f"--{name.replace('_', '-')}: {value[1:]} cannot be read: {error}.") from error


def directories(flags: Flags, name: str) -> tuple[Path, ...]:
    """Raises UsageError for a missing directory."""
    paths = [(value, Path(value).expanduser()) for value in many(flags, name)]
    if missing := [value for value, path in paths if not path.is_dir()]:
        raise UsageError(f"--{name.replace('_', '-')}: there is no directory {missing[0]}.")
    return tuple(path.absolute() for _, path in paths)
