"""Saves a model server that a user names by its URL as a provider, with the models that it lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from wolo.config import layers
from wolo.config.layers import PROVIDER_NAME
from wolo.config.settings_writer import set_table
from wolo.diagnostics.credentials import find_login_provider, keep_key
from wolo.errors import UsageError
from wolo.models import address, catalog
from wolo.models.catalog_files import names_of
from wolo.models.http.server_lookup import served_models
from wolo.models.provider import ModelSettings, ProviderSettings
from wolo.places import find_places

MOST_MODELS = 200
"""So many of the models that a server lists are saved; any other name may be asked for all the same."""


class FoundServer(Struct, frozen=True):
    base_url: str
    models: tuple[str, ...]
    """As the server lists them; empty: it lists none, or nobody answers."""


def look_up_server(url: str, key: str) -> FoundServer:
    """Asks the server for its models; an address without a path means the one that ends with `/v1`, if they are listed there.

    Blocks. Raises ConfigError for what is no address.
    """
    checked = address.checked(url if "://" in url else f"http://{url}").rstrip("/")
    candidates = [checked] if urlsplit(checked).path.strip("/") else [f"{checked}/v1", checked]
    for candidate in candidates:
        if models := served_models(catalog.find("custom/any", environ={}, base_url=candidate, api_key=key or None)):
            return FoundServer(candidate, tuple(models))
    return FoundServer(candidates[0], ())


def suggested_name(url: str, taken: Mapping[str, object] | None = None) -> str:
    """`localhost-8080` for `http://localhost:8080/v1`, with a number where that is taken."""
    where = urlsplit(url)
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", where.hostname or "server").strip("-.") or "server"
    name = f"{plain}-{where.port}" if where.port else plain
    used = {each.lower() for each in (names_of({}) if taken is None else taken)}
    return next(each for each in (name, *(f"{name}-{number}" for number in range(2, 1000))) if each.lower() not in used)


def save_provider(name: str, found: FoundServer, key: str) -> None:
    """Writes `providers.NAME` to the user's settings, and saves the key. Raises UsageError, and saves nothing then."""
    places = find_places()
    overrides = layers.load(places).settings.providers
    if not PROVIDER_NAME.fullmatch(name):
        raise UsageError(f"{name} cannot be the name of a provider.", hint="Letters, digits and . _ - may be in it.")
    if name.lower() in (each.lower() for each in names_of(overrides)):
        raise UsageError(f"There is a provider {name} already.", hint="Choose another name.")
    variable = re.sub(r"\W", "_", name).upper() + "_API_KEY"
    settings = ProviderSettings(
        base_url=found.base_url,
        key_env=(variable,) if key else None,
        models=tuple(ModelSettings(id=each) for each in found.models[:MOST_MODELS]),
    )
    set_table(places, "providers", name, settings)
    if key:
        keep_key(find_login_provider(name), key, in_keyring=True)


def taken_names() -> dict[str, object]:
    return dict.fromkeys(names_of(layers.load(find_places()).settings.providers))
