"""API keys: where they are looked for, and which values must never be shown or sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from wolo.config.files import find_line, read_toml
from wolo.errors import ConfigError
from wolo.places import Places

SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH", "PRIVATE")
"""A variable with one of these in its name holds a secret."""
SHORTEST_SECRET = 8
"""Shorter values would be redacted out of ordinary text."""


class FoundKey(NamedTuple):
    value: str
    source: str
    """The variable's name or the file; for people."""


def find_key(
    provider: str, variables: Sequence[str], places: Places, environ: Mapping[str, str], notices: list[str]
) -> FoundKey | None:
    """The environment first, then `keys.toml` beside the settings: one line a provider, `zai = "…"`."""
    for name in variables:
        if held := environ.get(name, "").strip():
            return FoundKey(held, name)
    path = places.config / "keys.toml"
    text, keys = read_toml(path, notices, is_secret=True)
    value = keys.get(provider)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        line = find_line(text, (provider,))
        raise ConfigError(f'{path}, line {line}: the key of {provider} must be text: {provider} = "…".')
    return FoundKey(value.strip(), str(path))


def secrets(environ: Mapping[str, str], keys: Iterable[str] = ()) -> tuple[str, ...]:
    """Exact values to take out of whatever leaves: these keys, and what the environment holds under telling names."""
    telling = (value for name, value in environ.items() if any(word in name.upper() for word in SECRET_WORDS))
    found = {value.strip() for value in (*keys, *telling)}
    return tuple(sorted((value for value in found if len(value) >= SHORTEST_SECRET), key=lambda value: (-len(value), value)))
