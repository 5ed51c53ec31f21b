"""Describes models: list lines, pages and JSON."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec.structs import replace

from wolo.config import key_store, keys
from wolo.config.schema import Config
from wolo.conversation.resources.model_selection import follow_card
from wolo.errors import ConfigError
from wolo.formats.encoding.thinking_levels import LEVELS
from wolo.messages.terminal_text import in_short
from wolo.models import address, capabilities, catalog_files, format_selection, model_lists, probe_cache, secret_references
from wolo.models.catalog import ALIASES, CUSTOM, Catalog, ListedModel
from wolo.models.local import driving
from wolo.models.provider import CLOUDS, Model, ModelChoice, Price, Provider, ProviderSettings
from wolo.places import Notices, Site, find_places
from wolo.workspace.root import find_site

LABEL_WIDTH = 39
SHORT = {"thinking": "think", "images": "img", "audio": "aud", "files": "pdf"}
"""Only a lack of tools is mentioned."""
LEGEND = "* ready to use; SIZE: context window; IN/OUT: dollars per million tokens."
MORE = "`wolo models show NAME` shows details."
CLOUD_NAMES = {"aws": "AWS", "google": "Google Cloud", "entra": "Microsoft Entra"}
PRICES = {"input": "in", "output": "out", "cache_read": "read from the cache", "cache_write": "written to the cache"}


def models_here(config: Config, *, asks: bool = False) -> list[ListedModel]:
    """All known models; usable ones first: with a key, or local. `asks` servers that were not asked today; it blocks then."""
    environ = keys.with_stored_keys(find_site(), config)
    models = Catalog(environ, config.settings.providers).list_models()
    models = [each if _is_at_hand(each) else replace(each, has_key=False) for each in models]
    served = [row for choice in _own_servers(config, environ) for row in _served_rows(choice, config.endpoint.account, asks=asks)]
    labels, filled = {each.label for each in models}, {row.provider.name for row in served}
    models = [each for each in models if each.model is not None or each.provider.name not in filled]
    models += [row for row in served if row.label not in labels]
    return sorted(models, key=lambda each: not each.has_key)


def usable_in_brief(config: Config, current: str = "", most: int | None = None) -> dict[str, str]:
    """A few words about each model that can be used here, by its label; `current` comes first, without any."""
    usable = [each for each in models_here(config) if each.has_key and each.model is not None]
    return ({current: ""} if current else {}) | {each.label: in_brief(each) for each in usable[:most]}


def _own_servers(config: Config, environ: Mapping[str, str]) -> Iterator[ModelChoice]:
    """The address of this run, and the addresses of providers in the settings."""
    endpoint, overrides = config.endpoint, config.settings.providers
    with contextlib.suppress(ConfigError):
        if endpoint.base_url:
            yield Catalog(environ, overrides).find(f"{CUSTOM}/any", base_url=endpoint.base_url, api_key=endpoint.api_key or None)
    for name, settings in overrides.items():
        if settings.api_key.strip().startswith(secret_references.COMMAND):
            continue  # a listing runs no program
        with contextlib.suppress(ConfigError):  # a reference to a key that is not there
            provider = catalog_files.load(name, overrides, environ)
            if settings.base_url and provider.any_model and provider.auth not in CLOUDS:
                key = catalog_files.own_key(provider, environ, settings)
                provider = catalog_files.resolve_references(provider, environ)
                yield ModelChoice(provider=provider, model=Model(id=""), base_url=provider.base_url, api_key=key)


def _served_rows(choice: ModelChoice, account: str, *, asks: bool) -> Iterator[ListedModel]:
    cache = find_places().cache / account  # accounts may have other models
    saved = None if asks else model_lists.read_list(cache, choice.base_url)
    ids = model_lists.list_ids(cache, choice) if asks else saved.ids if saved else ()
    yield from (ListedModel(choice.provider, Model(id=id), has_key=True) for id in ids)


def _is_at_hand(each: ListedModel) -> bool:
    if each.provider.name != capabilities.LOCAL or each.model is None:
        return True
    from wolo.models.local.embedded import is_ready  # noqa: PLC0415  # only where models are listed

    return is_ready(find_places(), each.model.id)


def in_brief(each: ListedModel) -> str:
    """Context window, price and abilities, for a list."""
    model = each.model or Model(id="")
    return f"{in_short(model.context):>5}  {_in_and_out(model.price):<12} {_abilities(each.model)}".rstrip()


def matches(each: ListedModel, pattern: str) -> bool:
    """By provider, or by part of a name or label; with * and ? the whole name must match."""
    text, label = pattern.lower().strip(), each.label.lower()
    if text in catalog_files.PROVIDERS:
        return each.provider.name == text
    alias = ALIASES.get(text, "")
    if any(mark in text for mark in "*?["):
        return fnmatchcase(label, text) or fnmatchcase(label.partition("/")[2], text)
    return text in label or text in each.provider.label.lower() or alias == each.provider.name


def lines(models: Sequence[ListedModel]) -> Iterator[str]:
    """At most 80 columns each, unless names are long."""
    # The shortest unambiguous name, if the full one is too long for a line
    labels = [
        each.label
        if len(each.label) <= LABEL_WIDTH or each.model is None or not each.model.aliases
        else f"{each.provider.name}/{min(each.model.aliases, key=len)}"
        for each in models
    ]
    width = min(max(map(len, labels), default=0), LABEL_WIDTH)
    abilities = [_abilities(each.model) for each in models]
    wide = max(map(len, abilities), default=0)
    if models:
        yield f"  {'MODEL':<{width}} {'SIZE':>5} {'':<{wide}} IN/OUT".rstrip()
    for each, label, can in zip(models, labels, abilities, strict=True):
        model = each.model or Model(id="")
        window = in_short(model.context)
        yield f"{'*' if each.has_key else ' '} {label:<{width}} {window:>5} {can:<{wide}} {_in_and_out(model.price)}".rstrip()


def row(each: ListedModel) -> dict[str, Any]:
    model = each.model
    return {
        "id": each.label,
        "provider": each.provider.name,
        "model": model.id if model else None,
        "context": model.context if model else None,
        "max_output": model.max_output if model else None,
        "abilities": list(model.abilities) if model else [],
        "price": msgspec.to_builtins(model.price) if model else None,
        "has_key": each.has_key,
    }


def of_model(name: str, site: Site, config: Config) -> dict[str, Any]:
    """All facts of a model; neither fetches nor shows its key. Raises ConfigError."""
    overrides = config.settings.providers
    environ = keys.with_stored_keys(site, config)
    provider, model, level = Catalog(environ, overrides).look_up(name)
    listed = model in provider.models or (bool(provider.facts_from) and model.context is not None)
    if provider.auth in CLOUDS:
        from wolo.models.cloud.cloud_address import fill_address  # noqa: PLC0415  # for clouds only

        with contextlib.suppress(ConfigError):  # without a region or project the address keeps their places
            provider = fill_address(provider, environ)
    choice = ModelChoice(provider=provider, model=model, base_url=provider.base_url, thinking=level)
    followed = follow_card(config, choice, keeps_format=False)
    probed = None if followed is choice else probe_cache.read(site.places.cache, choice)
    choice, model = followed, followed.model
    format, dialect = format_selection.format_of(choice), format_selection.dialect_of(choice)
    drive = driving.predict_mode(replace(choice, drive=choice.drive or provider.drive), site.places.cache)
    where = address.join_url(provider.base_url, format.path(model.id)) if provider.base_url else ""
    usual = type(dialect)()
    names = dialect.__struct_fields__
    return {
        "id": choice.label,
        "provider": provider.name,
        "label": provider.label,
        "model": model.id,
        "aliases": list(model.aliases),
        "listed": listed,
        "context": model.context,
        "max_output": model.max_output,
        "abilities": list(model.abilities) if listed or probed else None,
        "thinking_levels": _levels(model, dialect) if listed else None,
        "probed": probed.probed if probed else None,
        "price": msgspec.to_builtins(model.price),
        "edit_tool": choice.edit_tool,
        "format": choice.format,
        "drive": drive.mode,
        "drive_reason": drive.reason,
        "address": address.display_url(where),
        "key": _key(provider, environ, overrides.get(provider.name)),
        "dialect": {name: getattr(dialect, name) for name in names if getattr(dialect, name) != getattr(usual, name)},
    }


def sources_of_keys(environ: Mapping[str, str], overrides: catalog_files.Overrides) -> dict[str, str]:
    """Providers with a key, in order of preference, with its source."""
    providers = [catalog_files.load(name, overrides, environ) for name in catalog_files.names_of(overrides)]
    with_key = [each for each in providers if catalog_files.has_key(each, environ, overrides.get(each.name))]
    return {each.name: _key(each, environ, overrides.get(each.name))["source"] for each in with_key}


def page(facts: Mapping[str, Any]) -> Iterator[str]:
    price, key = facts["price"], facts["key"]
    yield f"{facts['id']}  ({facts['label']})"
    if not facts["listed"]:
        yield "           not in wolo's list: limits and price unknown"
    for title, words in {
        "also": ", ".join(facts["aliases"]),
        "window": _tokens(facts["context"]),
        "answer": _tokens(facts["max_output"]),
        "abilities": "unknown" if facts["abilities"] is None else ", ".join(facts["abilities"]) or "none",
        "thinking": "unknown" if facts["thinking_levels"] is None else " ".join(facts["thinking_levels"]) or "no levels",
        "price": _spelled_price(price),
        "": ", ".join(filter(None, (price["source"], price["date"]))) if price else "",
        "edits with": facts["edit_tool"],
        "format": facts["format"],
        "driven": f"{facts['drive']} ({facts['drive_reason']})" if facts["drive_reason"] else facts["drive"],
        "probed": facts["probed"] and f"{facts['probed']}; its results are applied",
        "address": facts["address"] or "none yet",
        "key": f"{key['source']}{'' if key['is_set'] else ': not set'}",
    }.items():
        if words:
            yield f"{title:<10} {words}"
    for number, (flag, value) in enumerate(facts["dialect"].items()):
        yield f"{'' if number else 'flags':<10} {flag} = {msgspec.json.encode(value).decode()}"


def _abilities(model: Model | None) -> str:
    if model is None:
        return ""
    words = [SHORT[ability] for ability in model.abilities if ability in SHORT]
    return " ".join(words if "tools" in model.abilities else [*words, "no tools"])


def _in_and_out(price: Price | None) -> str:
    if price is None or price.input is None or price.output is None:
        return "?"
    return f"${price.input:.3g}/${price.output:.3g}" if price.input + price.output else "free"


def _spelled_price(price: Mapping[str, Any] | None) -> str:
    known = [(price[name], words) for name, words in PRICES.items() if price[name] is not None] if price else []
    if not known:
        return "unknown"
    if not any(dollars for dollars, _ in known):
        return "free"
    return ", ".join(f"${dollars:g} {words}" for dollars, words in known) + " per million tokens"


def _tokens(num_tokens: int | None) -> str:
    return "unknown" if num_tokens is None else f"{num_tokens:,} tokens"


def _levels(model: Model, dialect: msgspec.Struct) -> list[str]:
    """Distinct levels; others are mapped to the nearest. None: not configurable."""
    styles = (getattr(dialect, name, "") for name in ("thinking_param_style", "thinking_style", "think"))
    if "thinking" not in model.abilities or "none" in styles:
        return []
    return list(getattr(dialect, "thinking_levels", ()) or LEVELS)


def _key_place(provider: Provider, account: str) -> str:
    """A key in `environ` that is not in the real environment is a stored one."""
    stored = key_store.read(find_places(), Notices()).get(key_store.row_name(provider.name, account))
    where = stored.where if stored else key_store.FILE
    return f"{where} (account {account})" if account else where


def _key(provider: Provider, environ: Mapping[str, str], settings: ProviderSettings | None) -> dict[str, Any]:
    """The source of the key, never the key."""
    configured = settings.api_key.strip() if settings else ""
    if configured:
        name = f"providers.{provider.name}.api_key"
        source = f"{configured} ({name})" if secret_references.is_reference(configured) else name
        if configured.startswith(secret_references.COMMAND):
            source = f"a program ({name})"
        return {"source": source, "is_set": catalog_files.has_key(provider, environ, settings)}
    if provider.auth != "entra" and (variable := catalog_files.key_variable(provider, environ, settings)):
        account = settings.account if settings else ""
        is_own = not account and os.environ.get(variable, "").strip()
        return {"source": f"${variable}" if is_own else _key_place(provider, account), "is_set": True}
    if cloud := CLOUD_NAMES.get(provider.auth):
        from wolo.models.cloud.cloud_address import is_set_up  # noqa: PLC0415  # for clouds only

        return {"source": f"the credentials of {cloud}", "is_set": is_set_up(provider, environ)}
    if provider.loopback or not provider.key_env:
        return {"source": "none is needed", "is_set": True}
    return {"source": " or ".join(f"${each}" for each in provider.key_env), "is_set": False}
