"""Adds stored API keys to the environment, and collects secrets that must never be shown or sent."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, pairwise

import msgspec

from wolo.config import key_store, schema
from wolo.errors import ConfigError
from wolo.guard.secrets.finder import is_ordinary, read_embedded
from wolo.messages.secret_values import MIN_CHARS, Secret, is_secret_name
from wolo.models import catalog_files, secret_references
from wolo.models.provider import ModelChoice
from wolo.places import Notices, Places, Site, find_places

SEARCH_KEYS: Mapping[str, str] = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY", "exa": "EXA_API_KEY"}
"""Variables of the keys of search services, which may stand among those of providers."""


def with_stored_keys(site: Site, config: schema.Config | None = None) -> Mapping[str, str]:
    """Adds stored keys to the environment, which takes precedence, except over the key of a chosen account.

    A custom provider of the settings needs a variable in its `key_env`. Raises ConfigError for a file others can write, for a key
    that is not text, and for a chosen account that is not there.
    """
    values: dict[str, str] = {}
    overrides = config.settings.providers if config else {}
    rows = key_store.read(site.places, site.notices)
    chosen = _chosen_rows(config, rows) if config else {}
    for row, stored in rows.items():
        name, account = key_store.account_of(row)
        if name.startswith(key_store.PLUGIN) or row != chosen.get(name, name):
            continue
        try:
            variables = (SEARCH_KEYS[name],) if name in SEARCH_KEYS else catalog_files.load(name, overrides).key_env
        except ConfigError:
            site.notices.add(f"There is a stored key for {name}, which is not a provider: `wolo auth logout {name}` removes it.")
            continue
        if not variables or (name not in chosen and any(site.environ.get(variable, "").strip() for variable in variables)):
            continue
        if key := key_store.fetch(row, stored, site.notices):
            values[variables[0]] = key
        elif name in chosen:
            raise ConfigError(
                f"The key of the account `{account}` of {name} cannot be read.",
                hint=f"`{key_store.login_command(row)}` saves it.",
            )
    return {**site.environ, **values} if values else site.environ


def _chosen_rows(config: schema.Config, rows: Collection[str]) -> dict[str, str]:
    """Row of each provider with a chosen account: that of this run, if the provider has it, before that of the settings."""
    chosen: dict[str, str] = {}
    for name, settings in config.settings.providers.items():
        if not settings.account:
            continue
        if settings.api_key:
            raise ConfigError(f"providers.{name} has an api_key and an account.", hint="Remove one of them.")
        chosen[name] = key_store.row_name(name, settings.account)
    if account := config.endpoint.account:
        named = [name for name, each in map(key_store.account_of, rows) if each == account]
        if not named:
            raise key_store.unknown_account(account, "", rows)
        chosen |= {name: key_store.row_name(name, account) for name in named}
    for name, row in chosen.items():
        if row not in rows:
            raise key_store.unknown_account(key_store.account_of(row)[1], name, rows)
    return chosen


def check_account(account: str, choice: ModelChoice, environ: Mapping[str, str]) -> None:
    """`environ` is that of `with_stored_keys`. Raises ConfigError if requests would not carry the key of this account."""
    provider, rows = choice.provider, key_store.read(find_places(), Notices())
    if key_store.row_name(provider.name, account) not in rows:
        raise key_store.unknown_account(account, provider.name, rows)
    if choice.api_key != environ.get(provider.key_env[0] if provider.key_env else "", "").strip():
        raise ConfigError(
            f"The key of {provider.label} comes from elsewhere, not from the account `{account}`.",
            hint="Leave out --account, or the base URL and the key of this run and of the settings.",
        )


def request_secrets(*choices: ModelChoice | None) -> Iterator[Secret]:
    """Secrets in requests to these models: the key, and headers with a secret name."""
    for choice in filter(None, choices):
        yield Secret(choice.provider.key_env[0] if choice.provider.key_env else "API_KEY", choice.api_key)
        yield from (Secret(name, value) for name, value in choice.provider.headers.items() if is_secret_name(name))


def in_environment(environ: Mapping[str, str]) -> Iterator[Secret]:
    """Variables with a secret name, unless the value looks ordinary, and passwords in the addresses of others."""
    for name, value in environ.items():
        if is_secret_name(name) and not is_ordinary(name, value.strip()):
            yield Secret(name, value)
        yield from read_embedded(value, name)


def written_down(places: Places, settings: object) -> Iterator[Secret]:
    """Stored keys, and secrets in the settings. Raises ConfigError."""
    yield from (Secret(f"{name.replace('@', '_')}_API_KEY", key) for name, key in key_store.values(places))
    try:
        yield from _in_settings(msgspec.json.encode(settings))
    except UnicodeEncodeError:  # a path on the command line may be no text
        yield from _telling(msgspec.to_builtins(settings))
    if os.path.lexists(places.config / "mcp_logins.json"):
        from wolo.config.mcp_logins import MCPLogins  # noqa: PLC0415  # most users have none

        yield from MCPLogins(places).secrets()


@lru_cache(8)
def _in_settings(settings: bytes) -> tuple[Secret, ...]:
    """Equal settings of conversations in a process are searched once."""
    return tuple(_telling(msgspec.json.decode(settings)))


def unique_secrets(*sources: Iterable[Secret]) -> tuple[Secret, ...]:
    """Removes duplicates and short values."""
    found: dict[str, Secret] = {}
    for each in chain(*sources):
        if len(value := each.value.strip()) >= MIN_CHARS:
            found.setdefault(value, Secret(each.name, value))
    return tuple(found.values())


def _telling(value: object) -> Iterator[Secret]:
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
        words = [word for each in value if isinstance(each, str) for word in (each.split("=", 1) if each[:1] == "-" else [each])]
        for name, word in pairwise(words):  # options of a program: `--token VALUE`, `--token=VALUE`
            is_option = name.startswith("-") and is_secret_name(name) and not word.startswith("-")
            if is_option and not is_ordinary(name, word) and not secret_references.is_reference(word):
                yield Secret(name.lstrip("-"), word)
