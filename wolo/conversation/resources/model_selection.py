"""Selects the models of a conversation and connects to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from wolo.agent.asker import RedactingAsker
from wolo.config import keys, layers
from wolo.config.schema import Config, Endpoint, Settings
from wolo.errors import ConfigError, UsageError
from wolo.guard.secrets.redactor import Secrets
from wolo.models import probe_cache
from wolo.models.catalog import CUSTOM, Catalog
from wolo.models.format_selection import FORMATS, dialect_of, format_of, unknown_format
from wolo.models.local import driving
from wolo.models.protocol import LazyModelClient, ModelClient
from wolo.models.provider import CLOUDS, DRIVEN, ModelChoice, ProviderSettings, is_known
from wolo.models.retry import LIMITER_VARIABLE, RetrySettings
from wolo.places import Places, find_places
from wolo.workspace.root import find_site

if TYPE_CHECKING:
    from concurrent.futures import Future
    from ssl import SSLContext

    from wolo.models.cloud.cloud_transport import KeyCaches
    from wolo.models.http.transport import Transport
    from wolo.models.limit_wait import LimitWait
    from wolo.models.probe_cache import ServerFacts

MOST_LISTED = 12
"""Models of a server that an error message lists."""
NO_MODEL = "No model is set up. Do one of these:"
WAYS = """\
wolo auth login                               (saves an API key; or export ZAI_API_KEY=…, or another provider's)
      wolo --base-url URL -m MODEL …                (any OpenAI-compatible server)
      wolo doctor                                   (finds model servers on this machine)
      pip install 'wolo-cli[local]' && wolo models pull local/qwen2.5-coder-0.5b   (the embedded model: no key)"""


def choose(config: Config, environ: Mapping[str, str], *, named: str = "", last: str = "") -> ModelChoice:
    """The model named for this run, else `last` of the session, else that of the settings, else any available one.

    Raises ConfigError if there is none, or if it has not the account of this run.
    """
    named = named or _model_of_run(config)
    choice = find(config, environ, named) if named else None
    if choice is None and last and not _is_fixed(config, "model"):
        try:
            choice = find(config, environ, last)
        except ConfigError:
            choice = None  # it is not available any more
    if choice is None and (config.settings.model or config.endpoint.base_url):
        choice = find(config, environ, config.settings.model)
    if choice is None:
        choice = _whatever_is_there(config, environ)
    if config.endpoint.account:
        keys.check_account(config.endpoint.account, choice, environ)
    return _at_level(config, _check_fixed_model(config, environ, choice))


def _is_fixed(config: Config, key: str) -> bool:
    """By a managed file."""
    return config.sources.get(key, "").startswith(layers.MANAGED)


def _check_fixed_model(config: Config, environ: Mapping[str, str], choice: ModelChoice) -> ModelChoice:
    """Returns the choice. Raises ConfigError where the administrator has fixed another model."""
    if _is_fixed(config, "model") and choice.label != (fixed := find(config, environ, config.settings.model)).label:
        raise ConfigError(f"The model is fixed on this machine: {fixed.label}.", hint=f"By {config.sources['model']}.")
    return choice


def _at_level(config: Config, choice: ModelChoice) -> ModelChoice:
    """At its own thinking level, else that of the settings. Raises ConfigError where another one is fixed."""
    level = config.settings.thinking
    if choice.thinking not in (None, level) and _is_fixed(config, "thinking"):
        raise ConfigError(f"The thinking level is fixed on this machine: {level}.", hint=f"By {config.sources['thinking']}.")
    return choice if choice.thinking else replace(choice, thinking=level)


def gone_notice(config: Config, choice: ModelChoice, last: str) -> str:
    """Explains why a resumed session has another model; empty: it has not."""
    if not last or choice.label == last or _model_of_run(config) or config.endpoint.base_url:
        return ""
    return f"{last}, the last model of this session, is not available any more; using {choice.label}."


def _model_of_run(config: Config) -> str:
    return config.settings.model if config.sources.get("model", "").startswith(("--", "WOLO_")) else ""


def choose_fallbacks(config: Config, environ: Mapping[str, str], first: ModelChoice) -> tuple[ModelChoice, ...]:
    """In order, without `first` and repetitions. Raises ConfigError.

    A base URL or key given for this run applies to the first model only; another provider uses its own.
    """
    specs = config.settings.fallback_model
    found: dict[tuple[str, str], ModelChoice] = {}
    for spec in (specs,) if isinstance(specs, str) else specs:
        if choice := _choose_further(config, environ, first, spec):
            found.setdefault((choice.label, choice.base_url), choice)
    return tuple(found.values())


def choose_other(config: Config, cwd: Path, first: ModelChoice, spec: str) -> ModelChoice | None:
    """The model that answers instead of `first` for a while; None: the same. Raises UsageError if it cannot be used."""
    environ = keys.with_stored_keys(find_site(cwd), config)
    if (choice := _choose_further(config, environ, first, spec)) is not None:
        _check_fixed_model(config, environ, choice)
    check_prices(config, choice)
    return choice


def _choose_further(config: Config, environ: Mapping[str, str], first: ModelChoice, spec: str) -> ModelChoice | None:
    if not spec:
        return None
    named = Catalog({}, config.settings.providers).provider_named(spec)
    here = named == first.provider.name or (config.endpoint.base_url and named in ("", CUSTOM))
    choice = find(config if here else replace(config, endpoint=Endpoint()), environ, spec)
    if (choice.label, choice.base_url) == (first.label, first.base_url):
        return None
    format_of(choice)
    return _at_level(config, choice)


SMALL_ALIASES = frozenset(("haiku", "fast"))
ALIASES = frozenset((*SMALL_ALIASES, "sonnet", "opus"))
"""Models in agent files that were written for any provider, or for another program."""


def resolve_alias(settings: Settings, name: str, provider: str) -> str | None:
    """The model that an agent file means; None: the user has no model for this alias."""
    alias = name.lower()
    if mapped := settings.model_aliases.get(name) or settings.model_aliases.get(alias):
        return mapped
    if alias in SMALL_ALIASES and settings.small_model:
        return settings.small_model
    is_known_there = provider == "anthropic" and alias != "fast"
    return None if alias in ALIASES and not is_known_there else name


def alias_notice(agent: str, alias: str) -> str:
    return (
        f"The agent {agent} names the model {alias}, which is not used: "
        f'the setting model_aliases.{alias} = "provider/model" selects one.'
    )


def choose_small(config: Config, environ: Mapping[str, str], first: ModelChoice) -> tuple[ModelChoice | None, str]:
    """The setting `small_model`, or None and a notice if it cannot be used: the conversation's model does its work."""
    try:
        return _choose_further(config, environ, first, config.settings.small_model), ""
    except ConfigError as error:
        return None, f"small_model is not used: {error.message}"


def for_provider_of(config: Config, environ: Mapping[str, str], spec: str, first: str) -> Config:
    """Drops a key given for this run if `spec` has another provider than `first`, the one the run started with.

    A base URL given for this run applies to all models. Raises ConfigError for an unknown model.
    """
    if not first or not spec or config.endpoint.base_url:
        return config
    provider, _, _ = Catalog(environ, config.settings.providers).look_up(spec)
    return config if provider.name == first else replace(config, endpoint=Endpoint())


def check_prices(config: Config, *choices: ModelChoice | None) -> None:
    """Raises UsageError if a cost limit cannot be enforced."""
    unpriced = [choice.label for choice in choices if choice and not is_known(choice.model.price)]
    if unpriced and config.settings.limits.max_cost is not None:
        raise UsageError(
            f"--max-cost cannot be enforced: the price of {unpriced[0]} is unknown.",
            hint="Set it in providers.NAME.models of the settings, or limit the turns with --max-turns.",
        )


def choose_now() -> ModelChoice:
    """The model of a prompt without options. Raises ConfigError if there is none."""
    site = find_site()
    config = layers.load(site)
    return choose(config, keys.with_stored_keys(site, config))


def find(config: Config, environ: Mapping[str, str], spec: str, *, follows_card: bool = True) -> ModelChoice:
    """Applies the result of a probe. Raises ConfigError with the nearest names, and for a model that is not allowed."""
    choice = config.settings.managed.check_model(_find(config, environ, spec, follows_card=follows_card))
    for name in ("base_url", "api_key", "api"):
        key = f"providers.{choice.provider.name}.{name}"
        if getattr(config.endpoint, name) and _is_fixed(config, key):
            source = config.sources.get(name) or "The address"
            raise ConfigError(f"{source} has no effect here: {key} is fixed on this machine.", hint=f"By {config.sources[key]}.")
    return choice


def _find(config: Config, environ: Mapping[str, str], spec: str, *, follows_card: bool) -> ModelChoice:
    endpoint = config.endpoint
    if endpoint.base_url and not spec:
        spec = _only_model(config, environ)
    if endpoint.api and endpoint.api not in FORMATS:
        raise unknown_format(endpoint.api)
    drive = driving.as_mode(endpoint.drive) if endpoint.drive else None
    choice = Catalog(environ, config.settings.providers).find(
        spec, base_url=endpoint.base_url or None, api_key=endpoint.api_key or None, api=endpoint.api or None
    )
    drive = drive or choice.provider.drive
    choice = replace(choice, drive=drive) if drive else choice
    choice = follow_card(config, choice, keeps_format=bool(endpoint.api)) if follows_card else choice
    return driving.force_mode(choice, drive) if drive else choice


def _only_model(config: Config, environ: Mapping[str, str]) -> str:
    """The model of a base URL that lists one. Asks the server. Raises ConfigError if it lists none or several."""
    from wolo.models.http.server_lookup import served_models  # only where no model is named

    url = config.endpoint.base_url
    unnamed = _find(config, environ, f"{CUSTOM}/unnamed", follows_card=False)
    models = served_models(config.settings.managed.check_address(unnamed))
    match models:
        case [model]:
            return f"{CUSTOM}/{model}"
        case []:
            raise ConfigError("A base URL needs a model.", hint=f"Name it with -m MODEL; {url} lists none.")
    more = f" and {len(models) - MOST_LISTED} more" if len(models) > MOST_LISTED else ""
    raise ConfigError(
        f"A base URL with several models needs the name of one: {', '.join(models[:MOST_LISTED])}{more}.",
        hint="Name it with -m MODEL.",
    )


def follow_card(config: Config, choice: ModelChoice, *, keeps_format: bool) -> ModelChoice:
    """Applies a saved probe. `keeps_format`: the format was given for this run.

    Ignores a probe of another version that contains unknown names.
    """
    if (found := probe_cache.read(find_places().cache, choice)) is None:
        return choice
    own = config.settings.providers.get(choice.provider.name, ProviderSettings())
    followed = probe_cache.apply_probe(choice, found, own=own, keeps_format=keeps_format)
    try:
        dialect_of(followed)
    except ConfigError:
        return choice
    return followed


def _whatever_is_there(config: Config, environ: Mapping[str, str]) -> ModelChoice:
    """The first provider with a key, else the embedded model."""
    key = config.endpoint.api_key or None
    if choice := Catalog(environ, config.settings.providers).default_choice(api_key=key):
        return config.settings.managed.check_model(choice)
    from wolo.models.local.embedded import is_ready  # not needed where a key is

    if is_ready(find_places()):
        return find(config, environ, "local")
    raise ConfigError(NO_MODEL, hint=WAYS)


class ModelAccess(Struct, frozen=True, kw_only=True):
    settings: Settings
    places: Places
    project: str
    """Name of the working directory."""
    cwd: Path
    secrets: Secrets
    attended: bool
    """A user can interrupt connection attempts."""
    wire_log: Path | None = None
    progress: Callable[[int, int], None] | None = None
    """Gets loaded and total bytes of the embedded model, from any thread."""
    transport: Transport | None = None
    """Carries the requests; None: the network."""
    limit_wait: LimitWait | None = None
    """Waits for ends of limits; None: they are errors."""
    extend: Callable[[ModelClient], ModelClient] | None = None
    """Lets extensions change requests; None: there are none."""
    key_caches: KeyCaches = field(default_factory=dict)
    ahead: list[Callable[[], object]] | None = None
    """Gets what can be done ahead of the first question; each may add more, and raise what the question would."""


def make_asker(
    access: ModelAccess, choice: ModelChoice, fallbacks: tuple[ModelChoice, ...] = (), *, after_any_error: bool = False
) -> ModelClient:
    """Redacts secrets from every request. `after_any_error`: fallbacks also answer after errors that retries do not cure."""
    client = _bare(access, choice, fallbacks, after_any_error=after_any_error)
    if access.limit_wait is not None:
        from wolo.models.limit_wait import PromptWaits, ResumingModelClient

        client = ResumingModelClient(client, PromptWaits(access.limit_wait), partial(_to, replace(access, ahead=None)))
    return RedactingAsker(access.extend(client) if access.extend else client, access.secrets)


def make_limit_wait(settings: RetrySettings, *, attended: bool) -> LimitWait | None:
    """None: the ends of limits are not waited for."""
    in_batch = bool(os.environ.get(LIMITER_VARIABLE))
    if not (attended or in_batch or settings.resume_windows or settings.wait_for_reset_s is not None):
        return None
    from wolo.models.limit_wait import LimitWait, policy_of

    policy = policy_of(settings, attended=attended, in_batch=in_batch)
    return LimitWait(policy) if policy.windows else None


def check_reachable(choice: ModelChoice, fallbacks: tuple[ModelChoice, ...], places: Places) -> None:
    """Raises the ConfigError of `make_asker` or of opening the model later. Starts nothing."""
    for each in (choice, *fallbacks):
        if each.provider.name == "local":
            from wolo.models.local.embedded import EmbeddedModel

            EmbeddedModel(each, places)
        else:
            format_of(each)


def _bare(access: ModelAccess, choice: ModelChoice, fallbacks: tuple[ModelChoice, ...], *, after_any_error: bool) -> ModelClient:
    first = _to(access, choice, has_fallback=bool(fallbacks))
    if not fallbacks:
        return first
    from wolo.models.protocol import FallbackModelClient

    second, *rest = fallbacks
    if second.provider.name == "local":
        from wolo.models.local.embedded import EmbeddedModel

        EmbeddedModel(second, access.places, access.cwd)  # raises ConfigError now rather than in the middle of a turn
    open_second = partial(_bare, replace(access, ahead=None), second, tuple(rest), after_any_error=after_any_error)
    return FallbackModelClient(first, second, open_second, after_any_error=after_any_error)


def _to(access: ModelAccess, choice: ModelChoice, *, has_fallback: bool = False) -> ModelClient:
    if choice.provider.name == "local":
        from wolo.models.local.embedded import EmbeddedModel

        embedded = EmbeddedModel(choice, access.places, access.cwd, progress=access.progress)
        embedded.start()  # it loads while the project is read
        return embedded
    from wolo.models.http.tls import certificates_of

    # Without a terminal the request follows at once, so they load while the project is read.
    certificates = None if access.attended or access.transport else certificates_of(choice)
    client = LazyModelClient(choice, partial(_over_network, access, has_fallback, certificates))
    if choice.provider.name in access.settings.providers:
        # A custom provider may be misconfigured: report it at once
        return client.open()
    if access.ahead is not None:
        access.ahead.append(client.open)
    return client


def _over_network(
    access: ModelAccess, has_fallback: bool, certificates: Future[SSLContext] | None, choice: ModelChoice
) -> ModelClient:
    from wolo.models.address import proxy_for
    from wolo.models.client import ClientOptions, HttpModelClient
    from wolo.models.http.http_transport import HttpTransport
    from wolo.models.http.tls import certificates_of

    settings, cache = access.settings, access.places.cache
    options = ClientOptions(
        headers=settings.headers,
        retries=settings.retry,
        attended=access.attended,
        has_fallback=has_fallback,
        project=access.project,
        max_answer_bytes=settings.limits.max_answer_bytes,
        wire_log=access.wire_log,
        limiter=os.environ.get(LIMITER_VARIABLE, ""),
        secrets=lambda: access.secrets.exact,
    )
    transport = access.transport or HttpTransport(certificates=certificates_of(choice) if access.attended else certificates)
    if choice.provider.auth in CLOUDS or choice.key_command:
        from wolo.models.cloud.cloud_transport import add_credentials

        transport = add_credentials(
            choice,
            transport,
            caches=access.key_caches,
            on_key=lambda key: access.secrets.learn(keys.request_secrets(replace(choice, api_key=key))),
        )
    elif isinstance(transport, HttpTransport) and access.ahead is not None and not proxy_for(choice.base_url, os.environ):
        access.ahead.append(partial(transport.connect, choice.base_url))

    def open_plain(choice: ModelChoice) -> ModelClient:
        return HttpModelClient(choice, format_of(choice), transport, options)

    def open_driver(choice: ModelChoice, facts: ServerFacts) -> ModelClient:
        if choice.drive not in DRIVEN:
            return open_plain(driving.as_written(choice) if choice.drive == "written" else choice)
        from wolo.models.local.driver import LocalDriver
        from wolo.models.local.local_chat import LocalChat, server_of

        return LocalDriver(LocalChat(transport, server_of(choice, facts)), choice, access.cwd, open_plain)

    if access.transport is None and driving.may_differ(choice):
        driven = driving.DrivenModelClient(choice, transport, cache, open_driver)
        if access.ahead:  # it connects ahead, too: not through a proxy
            access.ahead.append(driven.look_ahead)
        return driven
    return open_plain(choice)
