"""The catalogue of providers and models, and the meaning of `zai/glm-5.2:high`.

Each provider is a file in `providers/`; a look-up reads only the file it needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from wolo.errors import ConfigError
from wolo.formats.encoding.thinking_levels import LEVELS
from wolo.formats.format import ThinkingLevel
from wolo.models import address, catalog_files, secret_references
from wolo.models.catalog_files import borrow_facts, did_you_mean, has_key, in_format, load, names_of, own_key, resolve_references
from wolo.models.provider import CLOUDS, Model, ModelChoice, Provider

ALIASES: Final = {
    "llama.cpp": "llama-cpp",
    "llamacpp": "llama-cpp",
    "lm-studio": "lmstudio",
    "z.ai": "zai",
    "zhipu": "zhipuai",
    "bigmodel": "zhipuai",
    "kimi": "moonshot",
    "moonshotai": "moonshot",
    "qwen": "dashscope",
    "alibaba": "dashscope",
    "google": "gemini",
    "azure": "azure-openai",
    "foundry": "azure-foundry",
    "aws": "bedrock",
    "vertex-ai": "vertex",
}
DOTTED: Final = {alias: name for alias, name in ALIASES.items() if "." in alias}
"""Aliases that also count with a base URL, where a model may be called `Qwen/Qwen3-8B`."""
CUSTOM: Final = "custom"
MAX_SHOWN: Final = 5
"""Maximum number of ambiguous matches to list."""


class ListedModel(msgspec.Struct, frozen=True):
    """A row of `wolo models list`."""

    provider: Provider
    model: Model | None
    """None: the models are only known to the server."""
    has_key: bool
    """True also if no key is needed."""

    @property
    def label(self) -> str:
        return f"{self.provider.name}/{self.model.id if self.model else '…'}"


class Catalog(msgspec.Struct, frozen=True):
    """The providers and models as one user has them."""

    environ: Mapping[str, str]
    """With the stored keys."""
    overrides: catalog_files.Overrides = {}
    """The setting `providers`."""

    def find(self, spec: str, *, base_url: str | None = None, api_key: str | None = None, api: str | None = None) -> ModelChoice:
        """Resolve `provider/model[:level]` or `provider:model`; case-insensitive, unique prefixes suffice.

        `base_url`, `api_key` and `api` (the wire format) come from the command line or WOLO_ variables. A provider's key from the
        environment is only sent to the provider's own address. Raises ConfigError with the nearest names.
        """
        if base_url:
            name, level = _split_level(spec.strip())
            return self._at_address(name, level, address.check_url(base_url), api_key or "", api)
        provider, model, level = self.look_up(spec, api=api)
        if not provider.base_url:
            ways = ["give it with --base-url", f"set providers.{provider.name}.base_url"]
            if provider.base_url_env:
                ways.insert(0, f"export {provider.base_url_env}=…")
            raise ConfigError(f"`{spec}` needs a base URL.", hint=f"You may {', or '.join(ways)}.")
        if provider.auth in CLOUDS:
            from wolo.models.cloud.cloud_address import fill_address  # noqa: PLC0415  # other providers need none

            settings = self.overrides.get(provider.name)
            if settings and settings.base_url and settings.auth is None and not (api_key or settings.api_key):
                raise ConfigError(
                    f"{provider.label} has another address here: {address.display_url(provider.base_url)}.",
                    hint=f'Set providers.{provider.name}.auth = "{provider.auth}" to use your credentials there, or an api_key.',
                )
            configured = settings.api_key.strip() if settings else ""
            command = "" if api_key or not configured.startswith(secret_references.COMMAND) else configured
            # The variables of a provider that usually has a key hold no token.
            key = api_key or (
                "" if command or (provider.auth == "entra" and not configured) else own_key(provider, self.environ, settings)
            )
            provider = resolve_references(fill_address(provider, self.environ), self.environ)
            return ModelChoice(
                provider=provider,
                model=model,
                base_url=address.check_url(provider.base_url),
                api_key=clean_key(key),
                key_command=command,
                thinking=level,
            )
        settings = self.overrides.get(provider.name)
        key = api_key or own_key(provider, self.environ, settings)
        configured = "" if api_key or settings is None else settings.api_key.strip()
        if not key and provider.key_env and not provider.loopback:
            raise _no_key(provider, self.environ)
        provider = resolve_references(provider, self.environ)
        return ModelChoice(
            provider=provider,
            model=model,
            base_url=provider.base_url,
            api_key=clean_key(key),
            key_command=configured if configured.startswith(secret_references.COMMAND) else "",
            thinking=level,
        )

    def look_up(self, spec: str, *, api: str | None = None) -> tuple[Provider, Model, ThinkingLevel | None]:
        """Like `find`, for reading only: needs no key and no address. Raises ConfigError with the nearest names."""
        name, level = _split_level(spec.strip())
        if not name:
            raise ConfigError("No model is named.", hint="It looks like --model zai/glm-5.2; `wolo models list` lists them all.")
        provider_name, model_name = self._split_provider(name)
        provider = self._load(provider_name, api)
        # A listed model whose name ends like a level is that model.
        if level and model_name and (exact := _exact_model(provider, f"{model_name}:{level}")):
            model, level = exact, None
        else:
            model = _find_model(provider, model_name)
        return in_format(provider, model.format) if model.format else provider, model, level

    def default_choice(self, *, api_key: str | None = None) -> ModelChoice | None:
        """Default model of the first provider with a key in the environment; None: no key."""
        for name in names_of(self.overrides):
            provider = self._load(name)
            if not provider.default_model or not provider.base_url or provider.by_name_only:
                continue
            if has_key(provider, self.environ, self.overrides.get(name)):
                return self.find(f"{name}/{provider.default_model}", api_key=api_key)
        return None

    def provider_named(self, spec: str) -> str:
        """Provider named explicitly in a model name; empty if none."""
        first, slash, _ = self._with_slash(spec.strip()).partition("/")
        return self._exact(first, aliases=ALIASES) if slash else ""

    def list_models(self) -> list[ListedModel]:
        rows: list[ListedModel] = []
        for name in names_of(self.overrides):
            provider = self._load(name)
            if not provider.base_url:
                continue
            usable = self.is_usable(provider)
            rows.extend(ListedModel(provider, model, usable) for model in provider.models or (None,))
        return rows

    def is_usable(self, provider: Provider) -> bool:
        """Check that a key is available or not needed."""
        settings = self.overrides.get(provider.name)
        if provider.auth in CLOUDS:
            from wolo.models.cloud.cloud_address import is_set_up  # noqa: PLC0415  # for lists only

            return has_key(provider, self.environ, settings) or is_set_up(provider, self.environ)
        needs_none = provider.loopback or not (provider.key_env or (settings and settings.api_key))
        return needs_none or has_key(provider, self.environ, settings)

    def _at_address(self, name: str, level: ThinkingLevel | None, base_url: str, api_key: str, api: str | None) -> ModelChoice:
        """A known provider's name as prefix selects its dialect; any other name belongs to the model."""
        first, slash, rest = name.partition("/")
        known = self._exact(first, aliases=DOTTED) if slash else ""
        model_name = (rest if known else name).strip()
        if not model_name or (not slash and self._exact(name) == CUSTOM):
            raise ConfigError("A base URL needs a model name.", hint="Add --model NAME, as the server calls it.")
        provider = self._load(known or CUSTOM, api)
        if not api:
            provider = catalog_files.for_address(provider, base_url)
        if provider.base_url and address.origin(provider.base_url) == address.origin(base_url):
            api_key = api_key or own_key(provider, self.environ, self.overrides.get(provider.name))
        elif provider.base_url:
            hint = "Check --api-key (or WOLO_API_KEY) and --base-url."
            # Headers and query may contain a key too, and the certificate is one.
            provider = replace(provider, headers={}, query={}, client_cert="", client_key="", hint=hint)
        if provider.auth in CLOUDS:  # their credentials are for addresses of the settings
            provider = replace(provider, auth="bearer")
        provider = resolve_references(provider, self.environ)
        model = _exact_model(provider, model_name) or borrow_facts(provider, model_name)
        provider = in_format(provider, model.format) if model.format else provider
        return ModelChoice(provider=provider, model=model, base_url=base_url, api_key=clean_key(api_key), thinking=level)

    def _load(self, name: str, api: str | None = None) -> Provider:
        provider = load(name, self.overrides, self.environ)
        return in_format(provider, api) if api else provider

    def _with_slash(self, name: str) -> str:
        """Read `zai:glm-5.2` as `zai/glm-5.2`, but leave tags such as `qwen3:8b`."""
        first, colon, rest = name.partition(":")
        return f"{first}/{rest}" if colon and rest and self._exact(first, aliases=ALIASES) else name

    def _split_provider(self, name: str) -> tuple[str, str]:
        name = self._with_slash(name)
        first, slash, rest = (each.strip() for each in name.partition("/"))
        if known := self._exact(first, aliases=ALIASES):
            return known, rest
        if not slash:
            return self._find_alone(name)
        if not first:
            raise ConfigError(
                f"`{name}` names no provider.", hint="It looks like zai/glm-5.2; `wolo models list` lists them all."
            )
        begun = [each for each in names_of(self.overrides) if each.lower().startswith(first.lower())]
        if len(begun) > 1:
            raise _several(first, begun)
        if not begun:
            raise catalog_files.unknown_provider(first, self.overrides)
        return begun[0], rest

    def _find_alone(self, model_name: str) -> tuple[str, str]:
        """Find provider and model for a bare name: exact names first, then providers with a key.

        Providers that accept any name only match by a prefix that can be completed.
        """
        providers = [self._load(name) for name in names_of(self.overrides)]
        with_key = [
            each for each in providers if not each.by_name_only and has_key(each, self.environ, self.overrides.get(each.name))
        ]
        ordered = [*with_key, *(each for each in providers if each not in with_key)]
        for provider in ordered:
            if _exact_model(provider, model_name):
                return provider.name, model_name
        for provider in ordered:
            begun = _models_starting_with(provider, model_name)
            if len(begun) == 1:
                return provider.name, begun[0].id
            if begun and not provider.any_model:
                return provider.name, model_name
        labels = [f"{provider.name}/{model.id}" for provider in providers for model in provider.models]
        raise ConfigError(
            f"No model is called `{model_name}`.", hint=did_you_mean(model_name, labels, "`wolo models list` lists them all.")
        )

    def _exact(self, word: str, *, aliases: Mapping[str, str] | None = None) -> str:
        word = word.lower()
        own = next((name for name in self.overrides if name.lower() == word), "")
        return own or (word if word in catalog_files.PROVIDERS else (aliases or {}).get(word, ""))


def clean_key(key: str) -> str:
    """Strip a key and check that it fits in a header. Raises ConfigError."""
    key = key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(
            "The API key holds spaces or characters that no key has.", hint="Copy it again, without quotes and line breaks."
        )
    return key


# Parsing names


def _split_level(spec: str) -> tuple[str, ThinkingLevel | None]:
    name, colon, last = spec.rpartition(":")
    if colon and last.lower() in LEVELS:
        return name, msgspec.convert(last.lower(), ThinkingLevel)
    return spec, None  # a tag such as `qwen3:8b` belongs to the name


def _no_key(provider: Provider, environ: Mapping[str, str]) -> ConfigError:
    if withheld := next((name for name in provider.key_env if environ.get(name, "").strip()), ""):
        where = address.host_of(provider.base_url)
        return ConfigError(
            f"{provider.label} at {where} needs an API key of its own: ${withheld} is for its usual address.",
            hint=f'Set providers.{provider.name}.api_key, to "${withheld}" if the key is for both (or --api-key).',
        )
    return ConfigError(
        f"{provider.label} needs an API key, and {' or '.join(provider.key_env)} is not set.",
        hint=f"export {provider.key_env[0]}=… or `wolo auth login {provider.name}` (or --api-key). {provider.hint}".strip(),
    )


def _several(what: str, names: list[str]) -> ConfigError:
    more = f" or {len(names) - MAX_SHOWN} others" if len(names) > MAX_SHOWN else ""
    return ConfigError(f"`{what}` could be {' or '.join(names[:MAX_SHOWN])}{more}.", hint="Write more of the name.")


def _find_model(provider: Provider, name: str) -> Model:
    name = name or provider.default_model
    if not name:
        raise ConfigError(f"Which model of {provider.label}?", hint=f"Name it: {provider.name}/MODEL.")
    if exact := _exact_model(provider, name):
        return exact
    if provider.any_model:
        return borrow_facts(provider, name)
    begun = _models_starting_with(provider, name)
    if len(begun) == 1:
        return begun[0]
    ids = [model.id for model in provider.models]
    if begun:
        raise _several(f"{provider.name}/{name}", [model.id for model in begun])
    begin, _, last = name.rpartition(":")
    if last.lower() in LEVELS:
        raise ConfigError(f"`{name}` is followed by a second thinking level.", hint="Name one.")
    if begin and _exact_model(provider, begin):
        raise ConfigError(f"`{last}` is no thinking level.", hint=did_you_mean(last, LEVELS, f"They are {' '.join(LEVELS)}."))
    more = f"A model that wolo does not list yet: providers.{provider.name}.models in the settings."
    raise ConfigError(f"{provider.label} has no model `{name}` that wolo knows.", hint=did_you_mean(name, ids, more))


def _exact_model(provider: Provider, name: str) -> Model | None:
    wanted = name.lower()
    return next(
        (model for model in provider.models if wanted == model.id.lower() or wanted in map(str.lower, model.aliases)), None
    )


def _models_starting_with(provider: Provider, name: str) -> list[Model]:
    return [model for model in provider.models if model.id.lower().startswith(name.lower())]
