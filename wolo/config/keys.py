"""API keys: where they are looked for, and which values must never be shown or sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from msgspec import to_builtins

from wolo.config import key_store
from wolo.errors import ConfigError
from wolo.guard.secrets.finder import is_ordinary
from wolo.messages.secret_values import MIN_CHARS, Secret, is_secret_name
from wolo.models import secret_references
from wolo.models.catalog_files import Overrides, load
from wolo.models.provider import Choice
from wolo.places import Places


def with_stored_keys(
    environ: Mapping[str, str], places: Places, notices: list[str], overrides: Overrides | None = None
) -> Mapping[str, str]:
    """The environment, and beneath it the keys that wolo keeps.

    One of a person's own, described in `overrides`, needs a variable in its `key_env` to go by. Raises ConfigError for a file
    others can write, and for a key that is no text.
    """
    found: dict[str, str] = {}
    for name, kept in key_store.read(places, notices).items():
        try:
            variables = load(name, overrides).key_env
        except ConfigError:
            notices.append(f"wolo keeps a key of {name}, which is no provider: `wolo auth logout {name}` removes it.")
            continue
        if not variables or any(environ.get(variable, "").strip() for variable in variables):
            continue
        if key := key_store.fetch(name, kept, notices):
            found[variables[0]] = key
    return {**environ, **found} if found else environ


def sent_with(*choices: Choice | None) -> Iterator[Secret]:
    """What requests to these models carry that must stay secret: the key, and headers of a telling name."""
    for choice in filter(None, choices):
        yield Secret(choice.provider.key_env[0] if choice.provider.key_env else "API_KEY", choice.api_key)
        yield from (Secret(name, value) for name, value in choice.provider.headers.items() if is_secret_name(name))


def in_environment(environ: Mapping[str, str]) -> Iterator[Secret]:
    """What stands there under telling names, but for what is no secret by the look of it."""
    yield from (
        Secret(name, value) for name, value in environ.items() if is_secret_name(name) and not is_ordinary(name, value.strip())
    )


def written_down(places: Places, settings: object) -> Iterator[Secret]:
    """The keys that wolo keeps, and what stands in the settings itself. Raises ConfigError."""
    yield from (Secret(f"{name}_API_KEY", key) for name, key in key_store.values(places))
    yield from _telling(to_builtins(settings))


def known(*sources: Iterable[Secret]) -> tuple[Secret, ...]:
    """The secrets among these, each value once."""
    found: dict[str, Secret] = {}
    for each in chain(*sources):
        if len(value := each.value.strip()) >= MIN_CHARS:
            found.setdefault(value, Secret(each.name, value))
    return tuple(found.values())


def _telling(value: object) -> Iterator[Secret]:
    """What stands under a telling name and is no reference to where the secret is."""
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, str):
                if (
                    is_secret_name(str(name))
                    and not each.startswith(secret_references.COMMAND)
                    and not secret_references.is_reference(each)
                ):
                    yield Secret(str(name), each)
            else:
                yield from _telling(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _telling(each)
