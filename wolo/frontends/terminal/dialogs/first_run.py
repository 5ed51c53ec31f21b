"""Offers the models this machine can use when none is set up, and saves the choice."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import NamedTuple

from wolo.config import keys, layers, settings_writer
from wolo.conversation.resources.model_selection import choose_now
from wolo.diagnostics.provider_login import login_providers
from wolo.errors import ConfigError
from wolo.frontends.streams import error_text
from wolo.frontends.terminal.dialogs import embedded_model, input_prompts, login_dialog, new_server, picker
from wolo.frontends.terminal.dialogs.picker import ABOUT_SERVER, EMBEDDED, SERVER, SETUPS, Item, Menu, pick, print_numbered
from wolo.frontends.terminal.display.line_prompt import Dismissed, ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.models.catalog import Catalog
from wolo.models.catalog_files import key_variable
from wolo.models.http.server_lookup import ModelServer, find_servers
from wolo.models.local.embedded import has_engine
from wolo.models.provider import Provider
from wolo.places import find_places
from wolo.workspace.root import find_site

MOST_SHOWN = 9
KEY = "key"
ABOUT_KEY = "Most providers are told by its first letters. It is checked, then saved."
ABOUT_WOLO = "wolo is a coding agent: a model reads and changes files here and runs commands, as far as you allow."


class ModelOffer(NamedTuple):
    """Ways to a model; where lines are typed, numbered in this order."""

    servers: tuple[ModelServer, ...]
    """Model servers on this machine."""
    has_embedded: bool
    """The engine of the embedded model is installed."""
    providers: tuple[Provider, ...]
    """Providers that take an API key."""

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(model for server in self.servers for model in server.models)[:MOST_SHOWN]


async def offer_model(terminal: Terminal, no_model: ConfigError) -> None:
    """Returns once a model is saved in the settings; raises `no_model` when the user chose none."""
    offering = asyncio.create_task(_offer_in_panels(terminal) if terminal.has_panels else _offer(terminal))
    try:
        with terminal.signals.during(offering.cancel):
            chosen = await offering
    except Dismissed:
        chosen = ""
    except asyncio.CancelledError:
        if not terminal.signals.forgive():
            raise
        chosen = ""
    if not chosen:
        raise no_model


async def _offer_in_panels(terminal: Terminal) -> str:
    from wolo.frontends.terminal.live.temporary_region import temporary_region  # noqa: PLC0415  # prompt_toolkit is for panels only

    async with temporary_region(terminal, is_stoppable=True):
        return await _offer(terminal)


async def _offer(terminal: Terminal) -> str:
    """The model that was chosen and saved; empty: none."""
    offer = ModelOffer(
        servers=tuple(await asyncio.to_thread(find_servers, os.environ)),
        has_embedded=has_engine(),
        providers=tuple(each for each in login_providers() if each.default_model),
    )
    has_panels = terminal.screen.dialog_host is not None
    terminal.screen.show_text(ABOUT_WOLO)
    if not has_panels:
        screen = terminal.screen
        if offer.models:
            running = " and ".join(server.label for server in offer.servers if server.models)
            screen.show_text(f"No model is set up, but {running} runs on this machine:")
            print_numbered([Item(name, name) for name in offer.models], terminal)
            screen.show_text("A ? after the number also tries out what it can do, with a few tiny requests.", "dim")
        key = "aste an API key (it is recognised by its beginning), or choose its provider:"
        screen.show_text(f"Or p{key}" if offer.models else f"No model is set up. P{key}")
        first = len(offer.models) + 1
        login_dialog.show_providers(offer.providers, terminal, first=first)
        screen.show_text("Or use a company's server, by its URL:")
        print_numbered([Item(SERVER, SETUPS[SERVER])], terminal, first=first + len(offer.providers))
        screen.show_text("Or a small model inside wolo, without key or account:")
        name = "the embedded model" if offer.has_embedded else SETUPS[EMBEDDED]
        print_numbered([Item(EMBEDDED, name)], terminal, first=first + len(offer.providers) + 1)
        if offer.has_embedded:
            screen.show_text(f"     {embedded_model.about_embedded()}", "dim")
    try:
        while not (chosen := await (_choose_from_list(offer, terminal) if has_panels else _choose_by_line(offer, terminal))):
            pass
    except EOFError:
        return ""
    spec = chosen.removesuffix("?")
    settings_writer.set_value(find_places(), "model", spec)
    terminal.screen.show_text(f"{spec} is now your default model. `-m` or the setting `model` changes it.", "dim")
    if chosen.endswith("?"):
        await new_server.try_out(choose_now(), terminal)
    return spec


# Choosing from a list


async def _choose_from_list(offer: ModelOffer, terminal: Terminal) -> str:
    """The model, with a ? if it is to be tried out; empty: ask again. Raises EOFError when the user cancels."""
    variables = {each.name: _key_variable(each) for each in offer.providers}
    items = [Item(model, model, f"{server.label}, on this machine") for server in offer.servers for model in server.models]
    switch = "try out what it can do" if items else ""
    with_key = [each for each in offer.providers if variables[each.name]]
    items += [Item(each.name, each.label, f"API key in ${variables[each.name]}") for each in with_key]
    items.append(Item(KEY, "paste an API key", "recognised by its beginning"))
    items += [Item(SERVER, "a company's server (URL)"), Item(EMBEDDED, "a small model inside wolo", "no key, no account")]
    items += [Item(each.name, each.label, "needs an API key") for each in offer.providers if each not in with_key]
    embedded = embedded_model.about_embedded() if offer.has_embedded else "The engine and a small model are installed first."
    hints = {each.name: each.hint for each in offer.providers} | {EMBEDDED: embedded, SERVER: ABOUT_SERVER, KEY: ABOUT_KEY}
    picked = await pick(picker.hinted_menu("No model is set up. Choose a provider:", items, hints, switch=switch), terminal)
    if picked is None:
        raise EOFError
    if picked.value == KEY:
        return await _paste_key(await input_prompts.ask_secret("Paste your API key (input is hidden)", terminal), offer, terminal)
    if picked.value in (EMBEDDED, SERVER):
        return await _set_up(picked.value, terminal)
    provider = next((each for each in offer.providers if each.name == picked.value), None)
    if provider is not None:
        return await _choose_provider(provider, terminal)
    return f"{picked.value}?" if picked.is_on else picked.value


# Choosing by a typed line


async def _choose_by_line(offer: ModelOffer, terminal: Terminal) -> str:
    """As `_choose_from_list`: a number, a provider's name, or a URL."""
    typed = (await ask_line("Which one? Enter for none › ", terminal)).strip()
    if not typed:
        raise EOFError
    name = typed.removesuffix("?").rstrip()
    number = int(name) - 1 if name.isdecimal() else -1
    if 0 <= number < len(offer.models):
        return offer.models[number] + typed[len(name) :].strip()
    if "://" in typed:
        return await new_server.add_server(terminal, typed)
    behind = number - len(offer.models)
    if (setup := {0: SERVER, 1: EMBEDDED}.get(behind - len(offer.providers))) is not None:
        return await _set_up(setup, terminal)
    is_provider = 0 <= behind < len(offer.providers)
    provider = offer.providers[behind] if is_provider else login_dialog.find_provider(typed, offer.providers)
    if provider is not None:
        return await _choose_provider(provider, terminal)
    if login_dialog.is_key(typed):
        return await _paste_key(typed, offer, terminal)
    terminal.screen.show_text(f"There is no {'number' if name.isdecimal() else 'provider'} {typed}.", "warning")
    return ""


# Setting it up


async def _set_up(setup: str, terminal: Terminal) -> str:
    return await (embedded_model.offer_embedded(terminal) if setup == EMBEDDED else new_server.add_server(terminal))


def _key_variable(provider: Provider) -> str:
    """The variable that holds the provider's key, or stands for a saved one; empty: there is no key."""
    config = layers.load(find_site())
    environ = keys.with_stored_keys(find_site(), config)
    return key_variable(provider, environ, config.settings.providers.get(provider.name))


async def _paste_key(key: str, offer: ModelOffer, terminal: Terminal) -> str:
    """Asks for the provider only where the beginning of the key does not tell it."""
    if not key:
        return ""
    known = (each for each in offer.providers if login_dialog.is_key(key) and key.startswith(each.key_prefixes))
    if provider := next(known, None):
        terminal.screen.show_text(f"This is a key of {provider.label}.", "dim")
    else:
        provider = await login_dialog.ask_provider(offer.providers, terminal)
    return await _choose_provider(provider, terminal, key)


async def _choose_provider(provider: Provider, terminal: Terminal, key: str = "") -> str:
    """Asks for a key only if there is none."""
    if not key and (variable := _key_variable(provider)):
        terminal.screen.show_text(f"Using the API key of {provider.label} in ${variable}.", "dim")
    elif not await login_dialog.log_in(provider, terminal, key=key):
        return ""
    shown = list(dict.fromkeys((provider.default_model, *(each.id for each in provider.models))))[:MOST_SHOWN]
    overrides = layers.load(find_site()).settings.providers
    while wanted := await _ask_model(provider, shown, terminal):
        try:
            _, model, _ = Catalog(os.environ, overrides).look_up(f"{provider.name}/{wanted}")
        except ConfigError as error:
            terminal.screen.show_text(error_text(error), "warning")
            continue
        return f"{provider.name}/{model.id}"
    return ""


async def _ask_model(provider: Provider, shown: Sequence[str], terminal: Terminal) -> str:
    """Any name may be typed. Empty: the user cancelled."""
    items = [Item(name, name) for name in shown]
    if terminal.screen.dialog_host is not None:
        menu = Menu(f"Which model of {provider.label}?", lambda is_on: items, is_numbered=True, written=str)
        picked = await pick(menu, terminal)
        return picked.value if picked else ""
    terminal.screen.show_text(f"Models of {provider.label}:")
    print_numbered(items, terminal)
    question = "Which model? Enter selects 1; other names work, too › "
    typed = (await ask_line(question, terminal)).strip()
    return shown[int(typed) - 1] if typed.isdecimal() and 1 <= int(typed) <= len(shown) else typed or shown[0]
