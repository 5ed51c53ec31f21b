"""Finds, checks, saves and removes API keys, and adds custom providers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct

from wolo.config import key_store, keys, layers, settings_writer
from wolo.config.layers import PROVIDER_NAME
from wolo.config.python_files.extension_providers import ShowStep, is_key_program, run_dialog
from wolo.errors import AuthError, BadAnswer, ConfigError, ProviderError, QuotaExhausted, RateLimited, Unavailable, UsageError
from wolo.extension import LoginStep
from wolo.formats.format import Request
from wolo.messages.message import Producer, user
from wolo.messages.terminal_text import clean_line
from wolo.models import address, headers, secret_references
from wolo.models.address import join_url
from wolo.models.catalog import ALIASES, Catalog, clean_key
from wolo.models.catalog_files import Overrides, key_variable, load, names_of, unknown_provider
from wolo.models.cloud.cloud_transport import add_credentials
from wolo.models.format_selection import LEAST_CHARS, format_of, mask_key, redact
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.server_lookup import served_models
from wolo.models.http.tls import certificates_of
from wolo.models.http.transport import HttpCall, HttpStatusError
from wolo.models.provider import ModelChoice, ModelSettings, Provider, ProviderSettings
from wolo.places import Notices, find_places
from wolo.workspace.root import find_site


def login_providers() -> list[Provider]:
    """Providers at a known URL whose key can be saved."""
    overrides = _overrides()
    every = (load(name, overrides, os.environ) for name in names_of(overrides))
    return [each for each in every if each.base_url and not _why_not(each, overrides)]


def find_login_provider(name: str) -> Provider:
    """A search service counts as a provider. Raises ConfigError for an unknown one, or one whose saved key would not be used."""
    if (service := name.strip().lower()) in keys.SEARCH_KEYS:
        return Provider(name=service, label=service.capitalize(), base_url="", key_env=(keys.SEARCH_KEYS[service],))
    overrides = _overrides()
    provider = load(_spell(name, overrides), overrides, os.environ)
    if why := _why_not(provider, overrides):
        raise why
    return provider


def no_argument() -> UsageError:
    """For a key given as an argument: shell history and process list have it by now."""
    return UsageError(
        "A key must not be an argument: others could read it there.", hint="`wolo auth login PROVIDER` asks for it."
    )


async def secret_of_dialog(provider: Provider, show: ShowStep) -> str | None:
    """What the login dialog of an extension returns; None: no extension has one for it. Raises ExtensionError."""
    site = find_site()
    return await run_dialog(layers.load(site), site, provider.name, show)


def describe_step(step: LoginStep) -> str:
    """What the user has to do; empty: only to wait."""
    code = f", and enter the code {clean_line(step.code)} there" if step.code else ""
    return f"Open {clean_line(step.url)} to log in{code}." if step.url else ""


async def check_key(provider: Provider, key: str) -> KeyCheck:
    if provider.name in keys.SEARCH_KEYS:
        return KeyCheck(verdict="untried", message=f"The key of {provider.label} is tried at the first search.")
    overrides = _overrides()
    key = clean_key(key)
    model = provider.default_model or next((model.id for model in provider.models), "")
    if not model or not provider.base_url:
        return KeyCheck(verdict="untried", message=f"Could not check the key: no model of {provider.label} is known.")
    choice = Catalog(os.environ, overrides).find(f"{provider.name}/{model}", api_key=key)
    try:
        await _ask(choice)
    except ProviderError as error:
        redact(error, choice)
        match error:
            case AuthError():
                return _trial("refused", f"{provider.label} rejected the key", error)
            case RateLimited() | QuotaExhausted():
                return _trial("works", f"{provider.label} accepted the key, but has no quota for it now", error)
            case Unavailable():
                return _trial("unclear", f"Could not check the key with {provider.label}", error)
            case _:
                return _trial("unclear", f"{provider.label} did not confirm the key", error)
    return KeyCheck(verdict="works", message=f"{provider.label} accepted the key.")


async def check_model(choice: ModelChoice) -> KeyCheck:
    """Asks the model once. Raises ConfigError for credentials of a cloud that cannot be had."""
    try:
        await _ask(choice)
    except ProviderError as error:
        redact(error, choice)
        return _trial("refused" if isinstance(error, AuthError) else "unclear", f"{choice.label} did not answer", error)
    return KeyCheck(verdict="works", message=f"{choice.label} answered.")


def save_key(provider: Provider, key: str, *, in_keyring: bool, account: str = "") -> str:
    """Returns where the key is stored. Raises ConfigError, also for an invalid key or account."""
    where = key_store.save(find_places(), key_store.row_name(provider.name, account), clean_key(key), in_keyring=in_keyring)
    return "the system's keyring" if where == "keyring" else str(find_places().config / key_store.FILE)


def account_use(provider: Provider, account: str) -> str:
    """Says how requests use a key with a name; empty: without more."""
    if account in ("", key_store.DEFAULT):
        return ""
    always = f', providers.{provider.name}.account = "{account}" in your settings always' if provider.base_url else ""
    return f"`--account {account}` uses it for a run{always}."


def split_account(text: str) -> tuple[str, str]:
    """Provider and account of `PROVIDER [--name NAME]`. Raises UsageError, also for an invalid name."""
    provider, option, account = text.partition("--name")
    if option and not account.strip():
        raise UsageError("--name needs a value.", hint="--name NAME")
    key_store.row_name("", account.strip())
    return provider.strip(), account.strip()


class FoundKey(NamedTuple):
    provider: str
    source: str
    masked: str
    """The last characters, or why it is unknown."""
    counts: bool
    """The key in use."""
    account: str | None = None
    """Name of a saved key; None: it has none."""


def found_keys() -> tuple[list[FoundKey], list[str]]:
    """All keys in order of preference, and notices. Raises ConfigError."""
    overrides, notices = _overrides(), Notices()
    stored = key_store.read(find_places(), notices)
    if os.environ.get("WOLO_API_KEY", "").strip():
        notices.add("WOLO_API_KEY is set: it overrides every other key of the provider a run starts with.")
    keys: list[FoundKey] = []
    for name in names_of(overrides):
        provider = load(name, overrides, os.environ)
        rows = list(_keys_of(provider, overrides, stored, notices))
        is_moved = bool(rows) and _is_moved(provider, overrides)
        first = next((index for index, each in enumerate(rows) if each.counts and not is_moved), -1)
        keys += [each._replace(counts=index == first) for index, each in enumerate(rows)]
    rows_of_others = {row: each for row, each in stored.items() if key_store.account_of(row)[0] not in names_of(overrides)}
    keys += [_stored_key(row, each.where, "") for row, each in rows_of_others.items()]
    return keys, list(notices)


def _keys_of(
    provider: Provider, overrides: Overrides, stored: Mapping[str, key_store.StoredKey], notices: Notices
) -> Iterator[FoundKey]:
    """All sources of a key; the first one counts."""
    settings = overrides.get(provider.name)
    rows = {row: each for row, each in stored.items() if key_store.account_of(row)[0] == provider.name}
    chosen = key_store.row_name(provider.name, settings.account) if settings and settings.account else ""
    if chosen in rows:
        yield _read_stored(chosen, rows.pop(chosen), notices)
    elif chosen:
        notices.add(key_store.unknown_account(settings.account if settings else "", provider.name, stored).message)
    if settings and (configured := settings.api_key.strip()):
        source = f"providers.{provider.name}.api_key"
        if configured.startswith(secret_references.COMMAND):
            yield FoundKey(provider.name, source, "from a program", True)
        elif secret_references.is_there(configured, os.environ):
            yield FoundKey(
                provider.name, source, mask_key(secret_references.resolve(configured, os.environ, setting=source)), True
            )
    for variable in provider.key_env:
        if value := os.environ.get(variable, "").strip():
            yield FoundKey(provider.name, f"${variable}", mask_key(value), True)
    if each := rows.pop(provider.name, None):
        yield _read_stored(provider.name, each, notices)
    for row, each in rows.items():
        yield _read_stored(row, each, notices)._replace(counts=False)


def _read_stored(row: str, stored: key_store.StoredKey, notices: Notices) -> FoundKey:
    key = key_store.fetch(row, stored, notices)
    return _stored_key(row, stored.where, mask_key(key) if key else "cannot be read")._replace(counts=bool(key))


def _stored_key(row: str, where: str, masked: str) -> FoundKey:
    provider, account = key_store.account_of(row)
    return FoundKey(provider, where, masked, False, None if account == key_store.DEFAULT else account)


def log_out(name: str, account: str = "") -> tuple[str, list[str]]:
    """Returns what was removed, and what wolo cannot remove. Raises UsageError if there is nothing to remove."""
    stored = key_store.read(find_places(), Notices())
    fitting = [row for row in stored if not account or key_store.account_of(row)[1] == account]
    if not name and len(fitting) != 1:
        providers = dict.fromkeys(key_store.account_of(row)[0] for row in fitting or stored)
        hint = f"wolo auth logout {'|'.join(providers)}" if stored else "`wolo auth status` shows where keys come from."
        raise UsageError("Which provider's key?" if stored else "There are no saved keys.", hint=hint)
    overrides = _overrides()
    if name:
        name = name if any(key_store.account_of(row)[0] == name for row in stored) else _spell(name, overrides)
        row = key_store.row_name(name, account)
    else:
        row = fitting[0]
        name, account = key_store.account_of(row)
    if row not in stored and account:
        raise key_store.unknown_account(account, name, stored)
    left = [
        f"{each.source} still has a key of {each.provider}, which wolo cannot remove."
        for each in found_keys()[0]
        if each.provider == name and each.source not in ("keyring", key_store.FILE)
    ]
    if (where := key_store.remove(find_places(), row)) is None:
        others = [each for each in stored if key_store.account_of(each)[0] == name]
        hint = " ".join(
            [*left, *(f"`{key_store.login_command(each).replace('login', 'logout')}` removes another." for each in others)]
        )
        raise UsageError(f"There is no saved key of {name}.", hint=hint)
    shown = f"{name} (account {account})" if row != name else name
    return f"Removed the key of {shown} from {'the keyring' if where == 'keyring' else key_store.FILE}.", left


def _overrides() -> Overrides:
    return layers.load(find_site()).settings.providers


def _spell(name: str, overrides: Overrides) -> str:
    """The exact provider name: as given, by alias, or by unique prefix."""
    text = name.strip().lower()
    names = names_of(overrides)
    exact = next((each for each in names if each.lower() == text), "") or ALIASES.get(text, "")
    begun = [each for each in names if text and each.lower().startswith(text)]
    if exact or len(begun) == 1:
        return exact or begun[0]
    if len(text) >= LEAST_CHARS and not begun:
        raise no_argument()
    raise unknown_provider(name, overrides)


def _why_not(provider: Provider, overrides: Overrides) -> ConfigError | None:
    settings = overrides.get(provider.name)
    group = f"providers.{provider.name}"
    if settings and is_key_program(settings.api_key):
        return None if provider.key_env else ConfigError(f"An extension fetches the key of {provider.label}.")
    if settings and settings.api_key:
        return ConfigError(f"The key of {provider.label} comes from {group}.api_key.", hint="Change or remove it there.")
    if not provider.key_env and provider.name in overrides:
        variable = f"{provider.name.upper().replace('-', '_').replace('.', '_')}_API_KEY"
        return ConfigError(
            f"{provider.label} has no variable name for its key.", hint=f'Set {group}.key_env = ["{variable}"], then log in.'
        )
    if not provider.key_env:
        return ConfigError(f"{provider.label} needs no key.")
    if _is_moved(provider, overrides):
        return ConfigError(
            f"{provider.label} has a custom base URL, which does not get its usual key.",
            hint=f'Name one for it: {group}.key_env = ["NAME_API_KEY"], then log in.',
        )
    return None


def _is_moved(provider: Provider, overrides: Overrides) -> bool:
    """The settings changed its URL without a key for the new one."""
    settings = overrides.get(provider.name)
    has_own = settings is not None and bool(settings.api_key)
    return not has_own and bool(provider.key_env) and not key_variable(provider, dict.fromkeys(provider.key_env, "any"), settings)


TRY_S: Final = 10.0
ANSWER_TOKENS: Final = 16
"""The lowest limit that every server accepts."""


class KeyCheck(Struct, frozen=True, kw_only=True):
    verdict: Literal["works", "refused", "unclear", "untried"]
    """`unclear`: no server confirmed the key. `untried`: no model to ask is known."""
    message: str
    hint: str = ""
    exit_code: int = 0

    @property
    def may_be_kept(self) -> bool:
        return self.verdict in ("works", "untried")


def _trial(verdict: Literal["works", "refused", "unclear"], text: str, error: ProviderError) -> KeyCheck:
    exit_code = 0 if verdict == "works" else error.exit_code
    return KeyCheck(verdict=verdict, message=f"{text}: {error.message}", hint=error.hint, exit_code=exit_code)


async def _ask(choice: ModelChoice) -> None:
    """Returns when an answer starts. Raises ProviderError or ConfigError."""
    format = format_of(choice)
    request = Request(
        model=choice.model.id,
        producer=Producer(provider=choice.provider.name, format=format.name, model=choice.model.id),
        messages=(user("Hi"),),
        max_tokens=ANSWER_TOKENS,
    )
    call = HttpCall(
        url=join_url(choice.base_url, format.path(choice.model.id), choice.provider.query),
        body=format.encode(request),
        headers=headers.request_headers(choice),
        framing=format.framing,
        first_byte_s=TRY_S,
        idle_s=TRY_S,
    )
    transport, decoder = add_credentials(choice, HttpTransport(certificates=certificates_of(choice))), format.decoder(request)
    try:
        async with asyncio.timeout(TRY_S), contextlib.aclosing(transport.send(call)) as batches:
            async for batch in batches:
                with contextlib.suppress(BadAnswer):  # cut at once, as it was asked to be
                    for payload in batch.payloads:
                        decoder.feed(payload)
                    if batch.whole is not None:
                        format.read_whole(batch.whole)
                return
    except HttpStatusError as refused:
        raise format.read_error(refused.status, refused.headers, refused.body) from None
    except TimeoutError:
        raise Unavailable(f"It did not answer within {TRY_S:g} s.", hint="Check the network connection and the proxy.") from None
    finally:
        await transport.close()


MOST_MODELS = 200
"""Maximum number of listed models to save; others can still be requested."""


class FoundServer(Struct, frozen=True):
    base_url: str
    models: tuple[str, ...]
    """As listed; empty: none, or no answer."""


def look_up_server(url: str, key: str) -> FoundServer:
    """Asks a server for its models; tries `/v1` if the URL has no path.

    Blocks. Raises ConfigError for an invalid URL.
    """
    checked = address.check_url(url if "://" in url else f"http://{url}").rstrip("/")
    candidates = [checked] if urlsplit(checked).path.strip("/") else [f"{checked}/v1", checked]
    for candidate in candidates:
        if models := served_models(Catalog({}).find("custom/any", base_url=candidate, api_key=key or None)):
            return FoundServer(candidate, tuple(models))
    return FoundServer(candidates[0], ())


def suggested_name(url: str, taken: Mapping[str, object] | None = None) -> str:
    """`localhost-8080` for `http://localhost:8080/v1`, numbered if that is taken."""
    where = urlsplit(url)
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", where.hostname or "server").strip("-.") or "server"
    name = f"{plain}-{where.port}" if where.port else plain
    used = {each.lower() for each in (names_of({}) if taken is None else taken)}
    return next(each for each in (name, *(f"{name}-{number}" for number in range(2, 1000))) if each.lower() not in used)


def save_provider(name: str, server: FoundServer, key: str) -> None:
    """Writes `providers.NAME` to the user's settings and saves the key. Raises UsageError, and saves nothing then."""
    places = find_places()
    overrides = layers.load(find_site()).settings.providers
    if not re.fullmatch(PROVIDER_NAME, name):
        raise UsageError(f"{name} is not a valid provider name.", hint="Use letters, digits and . _ -")
    if name.lower() in (each.lower() for each in names_of(overrides)):
        raise UsageError(f"The provider {name} exists already.", hint="Choose another name.")
    variable = re.sub(r"\W", "_", name).upper() + "_API_KEY"
    settings = ProviderSettings(
        base_url=server.base_url,
        key_env=(variable,) if key else None,
        models=tuple(ModelSettings(id=each) for each in server.models[:MOST_MODELS]),
    )
    settings_writer.set_table(places, "providers", name, settings)
    if key:
        save_key(find_login_provider(name), key, in_keyring=True)


def taken_names() -> dict[str, object]:
    return dict.fromkeys(names_of(layers.load(find_site()).settings.providers))
