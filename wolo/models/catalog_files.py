"""Provider files: one TOML file each in `providers/`, changed by the user's settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from wolo.errors import ConfigError
from wolo.models import address, secret_references
from wolo.models.provider import FACTS, MEDIA, Model, ModelSettings, OtherApi, Provider, ProviderSettings

PROVIDERS: Final = (
    "zai",
    "zai-coding",
    "zhipuai",
    "openai",
    "anthropic",
    "gemini",
    "openrouter",
    "deepseek",
    "moonshot",
    "mistral",
    "dashscope",
    "xai",
    "groq",
    "cerebras",
    "together",
    "fireworks",
    "minimax",
    "nvidia",
    "azure-openai",
    "azure-foundry",
    "bedrock",
    "vertex",
    "github-models",
    "ollama",
    "llama-cpp",
    "lmstudio",
    "vllm",
    "local",
    "custom",
)
"""Order of preference for keys in the environment and for bare model names."""
OLLAMA_PORT: Final = 11434
TEXT_PROTOCOL: Final = "xml"
CARRIER: Final = "openai-chat"
"""Format that carries the text protocol."""
NEAREST: Final = 3
LONG_WRITE: Final = 2.0
LEAST_PART: Final = 3
"""Minimum length for substring matches: `sonnet` finds the Claude models."""

Overrides = Mapping[str, ProviderSettings]
CUSTOM: Final = Provider(
    name="custom",
    label="this server",
    base_url="",
    any_model=True,
    dialect={"thinking_param_style": "effort"},  # sent only where a level was asked for, and left out once it was refused
    hint="Check --api-key (or WOLO_API_KEY) and --base-url.",
)
"""Any server that speaks Chat Completions, at the address of --base-url. Nothing is assumed about it."""


def load(name: str, overrides: Overrides | None = None, environ: Mapping[str, str] | None = None) -> Provider:
    """Load a provider by exact name, with the user's settings applied."""
    settings = (overrides or {}).get(name)
    if name == "custom":
        provider = CUSTOM
    elif name in PROVIDERS:
        import tomllib  # noqa: PLC0415  # half as long to load as all that reads the settings

        file = Path(__file__).with_name("providers") / f"{name}.toml"
        provider = msgspec.convert(tomllib.loads(file.read_text("utf-8")), Provider)
    elif settings is not None:
        provider = Provider(name=name, label=name, base_url="", any_model=True, dialect={"thinking_param_style": "effort"})
    else:
        raise unknown_provider(name, overrides or {})
    if name == "ollama" and (host := (environ or {}).get("OLLAMA_HOST", "").strip()):
        own = ollama_address(host)
        provider = for_address(replace(provider, base_url=own), own)
    if provider.base_url_env and (own := (environ or {}).get(provider.base_url_env, "").strip()):
        provider = replace(provider, base_url=_own_address(own, provider, called=provider.base_url_env))
    return provider if settings is None else _apply_settings(provider, settings)


def ollama_address(host: str) -> str:
    """Read OLLAMA_HOST like Ollama: host, host:port or URL; 0.0.0.0 means this machine."""
    scheme, separator, rest = host.partition("://")
    if not separator:
        scheme, rest = "http", host
    where, _, path = rest.rstrip("/").partition("/")
    bare = where.rpartition("]")[2] if where.startswith("[") else where
    if ":" not in bare:
        default = OLLAMA_PORT if not separator else address.DEFAULT_PORTS.get(scheme, OLLAMA_PORT)
        where = f"{where or '127.0.0.1'}:{default}"
    where = where.replace("0.0.0.0", "127.0.0.1") if where.startswith("0.0.0.0:") else where
    where = f"127.0.0.1{where}" if where.startswith(":") else where
    return address.check_url(f"{scheme}://{where}/{path}".rstrip("/"), called="OLLAMA_HOST")


def _own_address(url: str, provider: Provider, *, called: str) -> str:
    url = address.check_url(url, called=called)
    return url if urlsplit(url).path.strip("/") else url + provider.base_url_path


def unknown_provider(name: str, overrides: Overrides) -> ConfigError:
    more = "`wolo models list` lists them; for a custom endpoint use --base-url URL."
    return ConfigError(f"There is no provider `{name}`.", hint=did_you_mean(name, names_of(overrides), more))


def did_you_mean(word: str, names: Iterable[str], more: str) -> str:
    import difflib  # noqa: PLC0415  # 5 ms, only after a typo

    folded, wanted = {name.lower(): name for name in names}, word.lower().strip()
    similar = difflib.get_close_matches(wanted, folded, NEAREST, 0.5)
    holding = [name for name in folded if len(wanted) >= LEAST_PART and wanted in name]
    near = list(dict.fromkeys((*similar, *holding)))[:NEAREST]
    return f"Did you mean {' or '.join(folded[each] for each in near)}? {more}" if near else more


def names_of(overrides: Overrides) -> tuple[str, ...]:
    return (*(name for name in overrides if name not in PROVIDERS), *PROVIDERS)


def _apply_settings(provider: Provider, settings: ProviderSettings) -> Provider:
    base_url = provider.base_url
    if settings.base_url:
        base_url = _own_address(settings.base_url, provider, called=f"providers.{provider.name}.base_url")
    changes = {
        "auth": settings.auth,
        "client_cert": settings.client_cert,
        "client_key": settings.client_key,
        "key_env": settings.key_env,
        "label": settings.label,
        "edit_tool": settings.edit_tool,
        "region": settings.region,
        "project": settings.project,
        "token_scope": settings.token_scope,
        "default_model": settings.default_model,
        "loopback": settings.loopback,
        "any_model": settings.any_model,
        "drive": settings.drive,
    }
    if settings.api is not None:
        provider = in_format(provider, settings.api)
    elif settings.base_url:
        provider = for_address(provider, base_url)
    if settings.dialect.get("long_cache") is True:
        provider = replace(provider, models=tuple(map(_with_long_writes, provider.models)))
    return replace(
        provider,
        base_url=base_url,
        headers={**provider.headers, **settings.headers},
        query={**provider.query, **settings.query},
        dialect={**provider.dialect, **settings.dialect},
        models=tuple(_merge_models(provider, settings.models)),
        **{name: value for name, value in changes.items() if value is not None},
    )


def _with_long_writes(model: Model) -> Model:
    """Anthropic bills twice the input for writes that are kept for an hour."""
    price = model.price
    if price is None or price.input is None or price.cache_write is None:
        return model
    return replace(model, price=replace(price, cache_write=LONG_WRITE * price.input))


def in_format(provider: Provider, format: str) -> Provider:
    """The provider in another wire format; flags of the previous format are dropped.

    The text protocol keeps the flags of Chat Completions, which carries it.
    """
    if provider.format == format and not any(model.format for model in provider.models):
        return provider
    other = provider.also.get(format, OtherApi())
    dialect = provider.dialect if _share_flags(provider.format, format) else other.dialect
    base_url = provider.base_url and provider.base_url.removesuffix(other.path) + other.path
    models: list[Model] = []
    for model in provider.models:
        flags = model.dialect
        if not _share_flags(model.format or provider.format, format):
            flags = {name: value for name, value in flags.items() if name in FACTS}
        models.append(replace(model, format=format, dialect=flags))
    return replace(provider, base_url=base_url, format=format, dialect=dialect, models=tuple(models))


def borrow_facts(provider: Provider, name: str) -> Model:
    """A model of a cloud, with the window and flags that its maker's own servers have; prices differ, so there is none.

    A name of the same family that is not listed gets the format alone.
    """
    for maker in map(load, provider.facts_from):
        format = "" if maker.format == provider.format else maker.format
        names = ((known, model) for model in maker.models for known in (model.id, *model.aliases))
        fits = [(len(known), model) for known, model in names if re.search(rf"{re.escape(known)}(?![-.]?\d{{1,2}}(?!\d))", name)]
        if fits:
            model = max(fits, key=lambda fit: fit[0])[1]
            return replace(model, id=name, aliases=(), price=None, format=format, dialect={**maker.dialect, **model.dialect})
        if any(model.id.partition("-")[0] in name for model in maker.models):
            return Model(id=name, format=format)
    return Model(id=name)


def _share_flags(format: str, other: str) -> bool:
    return format == other or {format, other} == {CARRIER, TEXT_PROTOCOL}


def for_address(provider: Provider, base_url: str) -> Provider:
    """Select the format whose path ends the URL: `…/v1` of an Ollama server is Chat Completions."""
    meant = next((name for name, other in provider.also.items() if other.path and base_url.endswith(other.path)), None)
    return in_format(provider, meant) if meant else provider


def own_key(provider: Provider, environ: Mapping[str, str], settings: ProviderSettings | None) -> str:
    """Key for the provider's address; an address changed by settings gets a key only if settings name one.

    Call only for a provider in use, because this may run a key command. Raises ConfigError if the key cannot be read.
    """
    if settings and settings.api_key:
        return secret_references.resolve_key(settings.api_key, environ, setting=f"providers.{provider.name}.api_key")
    name = key_variable(provider, environ, settings)
    return environ[name].strip() if name else ""


def has_key(provider: Provider, environ: Mapping[str, str], settings: ProviderSettings | None) -> bool:
    """Check for a key without running commands."""
    if settings and settings.api_key:
        return secret_references.is_there(settings.api_key, environ)
    return bool(key_variable(provider, environ, settings))


def key_variable(provider: Provider, environ: Mapping[str, str], settings: ProviderSettings | None) -> str:
    """Environment variable with the provider's key; empty if none."""
    if settings is not None and settings.base_url and provider.name in PROVIDERS and settings.key_env is None:
        at_home = load(provider.name, environ=environ).base_url
        if at_home and address.origin(provider.base_url) != address.origin(at_home):
            return ""
    return next((name for name in provider.key_env if environ.get(name, "").strip()), "")


def resolve_references(provider: Provider, environ: Mapping[str, str]) -> Provider:
    """Expand variables in headers and query. Only for a provider in use. Raises ConfigError."""
    if not provider.headers and not provider.query:
        return provider

    def resolve_all(values: Mapping[str, str], group: str) -> dict[str, str]:
        settings = {name: f"providers.{provider.name}.{group}.{name}" for name in values}
        return {name: secret_references.resolve(value, environ, setting=settings[name]) for name, value in values.items()}

    return replace(provider, headers=resolve_all(provider.headers, "headers"), query=resolve_all(provider.query, "query"))


def _merge_models(provider: Provider, rows: Iterable[ModelSettings]) -> Iterable[Model]:
    """Models of the settings first; unset fields keep the catalogue's values.

    Models without tool support use the text protocol where possible.
    """
    left = {model.id.lower(): model for model in provider.models}
    for row in rows:
        base = left.pop(row.id.lower(), None) or Model(id=row.id)
        changes = {name: value for name in row.__struct_fields__ if (value := getattr(row, name)) is not None}
        if row.price is not None:
            changes["price"] = replace(row.price, source=row.price.source or "the settings")
        if row.abilities is not None and "tools" not in row.abilities and (base.format or provider.format) == CARRIER:
            changes.setdefault("format", TEXT_PROTOCOL)
        media = {} if row.abilities is None else {each: each in row.abilities for each in MEDIA}
        changes["dialect"] = {**base.dialect, **media, **(row.dialect or {})}
        yield replace(base, **{**changes, "id": base.id})
    yield from left.values()
