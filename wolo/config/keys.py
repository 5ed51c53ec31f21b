"""API keys: where they are looked for, and which values must never be shown or sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wolo.config.files import find_line, read_toml
from wolo.errors import ConfigError
from wolo.models.provider_files import load
from wolo.places import Places

SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH", "PRIVATE")
"""A variable with one of these in its name holds a secret."""
SHORTEST_SECRET = 8
"""Shorter values would be redacted out of ordinary text."""


def with_kept_keys(environ: Mapping[str, str], places: Places, notices: list[str]) -> Mapping[str, str]:
    """The environment, and beneath it the keys of `keys.toml` (beside the settings): one line a provider, `zai = "…"`.

    Raises ConfigError for a file others can write, an unknown provider, and a key that is no text.
    """
    path = places.config / "keys.toml"
    text, keys = read_toml(path, notices, is_secret=True)
    kept: dict[str, str] = {}
    for name, key in keys.items():
        if not isinstance(key, str) or not key.strip():
            line = find_line(text, (name,))
            raise ConfigError(f'{path}, line {line}: the key of {name} must be text: {name} = "…".')
        variables = load(name).key_env
        if variables and not any(environ.get(variable, "").strip() for variable in variables):
            kept[variables[0]] = key.strip()
    return {**environ, **kept} if kept else environ


def secrets(environ: Mapping[str, str], keys: Iterable[str] = ()) -> tuple[str, ...]:
    """Exact values to take out of whatever leaves: these keys, and what the environment holds under telling names."""
    telling = (value for name, value in environ.items() if any(word in name.upper() for word in SECRET_WORDS))
    found = {value.strip() for value in (*keys, *telling)}
    return tuple(sorted((value for value in found if len(value) >= SHORTEST_SECRET), key=lambda value: (-len(value), value)))
