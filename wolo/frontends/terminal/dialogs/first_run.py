"""Nothing is configured yet: what this machine has to offer is offered, and the choice is saved."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from wolo.config import keys, layers
from wolo.config.settings_writer import set_value
from wolo.conversation.resources.model_selection import choose_now
from wolo.diagnostics.provider_login import login_providers
from wolo.errors import ConfigError
from wolo.frontends.terminal.dialogs.embedded_model import about_embedded, offer_embedded
from wolo.frontends.terminal.dialogs.login import log_in, named, show_providers
from wolo.frontends.terminal.dialogs.new_server import add_server, try_out
from wolo.frontends.terminal.dialogs.unlisted_models import EMBEDDED, OTHERS, SERVER
from wolo.frontends.terminal.display.line_prompt import Dismissed, ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.messages.terminal_text import clean_line
from wolo.models import catalog
from wolo.models.catalog_files import key_variable
from wolo.models.http.server_lookup import Server, find_servers
from wolo.models.local.embedded import has_engine
from wolo.models.provider import Provider
from wolo.places import find_places

MOST_SHOWN = 9


async def offer_model(terminal: Terminal, nothing_there: ConfigError) -> None:
    """Returns once a model is saved in the settings; raises `nothing_there` when none was wanted, whatever key said so."""
    offering = asyncio.create_task(_offer_in_panels(terminal) if terminal.has_panels else _offer(terminal))
    try:
        with terminal.signals.during(lambda: _cancel(offering)):
            chosen = await offering
    except Dismissed:
        chosen = ""
    except asyncio.CancelledError:
        if not terminal.signals.forgive():
            raise
        chosen = ""
    if not chosen:
        raise nothing_there


async def _offer_in_panels(terminal: Terminal) -> str:
    from wolo.frontends.terminal.live.temporary_region import temporary_region  # noqa: PLC0415  # prompt_toolkit is for panels only

    async with temporary_region(terminal, is_stoppable=True):
        return await _offer(terminal)


async def _offer(terminal: Terminal) -> str:
    """The model that was chosen and saved; empty: none."""
    servers = await asyncio.to_thread(find_servers, os.environ)
    menu = Menu(
        models=tuple(model for server in servers for model in server.models)[:MOST_SHOWN],
        has_embedded=has_engine(),
        providers=tuple(each for each in login_providers() if each.default_model),
    )
    if terminal.screen.stage is None:
        _show_menu(menu, [server.label for server in servers if server.models], terminal)
    try:
        while not (chosen := await _choose(menu, servers, terminal)):
            pass
    except EOFError:
        return ""
    spec = chosen.removesuffix("?")
    set_value(find_places(), "model", spec)
    terminal.screen.say(f"Saved: {spec} answers from now on. `-m` or the setting `model` changes it.", "dim")
    if chosen.endswith("?"):
        await try_out(choose_now(), terminal)
    return spec


def _cancel(offering: asyncio.Task[str]) -> None:
    offering.cancel()


class Menu(NamedTuple):
    """What there is to choose from, numbered in this order."""

    models: tuple[str, ...]
    """Of servers on this machine."""
    has_embedded: bool
    providers: tuple[Provider, ...]
    """Those that take a key."""

    @property
    def before_providers(self) -> int:
        return len(self.models) + self.has_embedded

    @property
    def others(self) -> tuple[str, ...]:
        """What comes last: the embedded model where its engine is not installed, and a server that is not listed."""
        return (SERVER,) if self.has_embedded else (EMBEDDED, SERVER)


def _show_menu(menu: Menu, servers: list[str], terminal: Terminal) -> None:
    if menu.models:
        terminal.screen.say(f"There is no model yet, but {' and '.join(servers)} runs on this machine:")
        _show_numbered(menu.models, terminal)
        terminal.screen.say("A ? behind the number also tries out what it can do, with a few tiny requests.", "dim")
    if menu.has_embedded:
        terminal.screen.say("A small one can run inside wolo, without key or account:")
        number = len(menu.models) + 1
        terminal.screen.print(Text.assemble((f"{number:>3}  ", "accent"), "the embedded model"))
        terminal.screen.say(f"     {about_embedded()}", "dim")
    terminal.screen.say(
        "Or bring an API key of one of these:" if menu.before_providers else "There is no model yet. Whose API key do you have?"
    )
    show_providers(menu.providers, terminal, first=menu.before_providers + 1)
    for number, other in enumerate(menu.others, start=menu.before_providers + len(menu.providers) + 1):
        terminal.screen.print(Text.assemble((f"{number:>3}  ", "accent"), OTHERS[other]))


def _show_numbered(names: Sequence[str], terminal: Terminal) -> None:
    for number, name in enumerate(names, start=1):
        terminal.screen.print(Text.assemble((f"{number:>3}  ", "accent"), clean_line(name)))


async def _choose(menu: Menu, servers: Sequence[Server], terminal: Terminal) -> str:
    """The model, with a ? when a person wants to know what it can do; empty: ask again. Raises EOFError when none is wanted."""
    if terminal.screen.stage is not None:
        return await _choose_from_list(menu, servers, terminal)
    typed = (await ask_line("Use which one? Enter for none › ", terminal.screen, terminal.keyboard)).strip()
    if not typed:
        raise EOFError
    wanted = typed.removesuffix("?").rstrip()
    number = int(wanted) - 1 if wanted.isdecimal() else -1
    if 0 <= number < len(menu.models):
        return menu.models[number] + typed[len(wanted) :].strip()
    if menu.has_embedded and number == len(menu.models):
        return await offer_embedded(terminal)
    if "://" in typed:
        return await add_server(terminal, typed)
    behind = number - menu.before_providers
    if 0 <= behind - len(menu.providers) < len(menu.others):
        return await _choose_other(menu.others[behind - len(menu.providers)], terminal)
    provider = menu.providers[behind] if 0 <= behind < len(menu.providers) else named(typed, menu.providers)
    if provider is not None:
        return await _choose_provider(provider, terminal)
    terminal.screen.say(f"There is no {'number' if wanted.isdecimal() else 'provider'} {typed}.", "warning")
    return ""


async def _choose_from_list(menu: Menu, servers: Sequence[Server], terminal: Terminal) -> str:
    from wolo.frontends.terminal.dialogs import setup_options  # noqa: PLC0415  # prompt_toolkit is for panels only

    embedded = about_embedded() if menu.has_embedded else "The engine and a small model are installed first."
    chosen, is_on = await setup_options.pick_offer(servers, embedded, menu.has_embedded, menu.providers, _key_there, terminal)
    if chosen in (EMBEDDED, SERVER):
        return await _choose_other(chosen, terminal)
    provider = next((each for each in menu.providers if each.name == chosen), None)
    if provider is not None:
        return await _choose_provider(provider, terminal)
    return f"{chosen}?" if is_on else chosen


async def _choose_other(other: str, terminal: Terminal) -> str:
    return await (offer_embedded(terminal) if other == EMBEDDED else add_server(terminal))


def _key_there(provider: Provider) -> str:
    """The variable that holds its key, or would if it were not kept; empty: there is none."""
    overrides = layers.load(find_places(), os.environ).settings.providers
    environ = keys.with_stored_keys(os.environ, find_places(), [], overrides)
    return key_variable(provider, environ, overrides.get(provider.name))


async def _choose_provider(provider: Provider, terminal: Terminal) -> str:
    """Where a key is already, none is asked for."""
    if variable := _key_there(provider):
        terminal.screen.say(f"There is a key of {provider.label} already (${variable}).", "dim")
    elif not await log_in(provider, terminal):
        return ""
    shown = list(dict.fromkeys((provider.default_model, *(each.id for each in provider.models))))[:MOST_SHOWN]
    overrides = layers.load(find_places(), os.environ).settings.providers
    while wanted := await _ask_model(provider, shown, terminal):
        try:
            _, model, _ = catalog.look_up(f"{provider.name}/{wanted}", environ=os.environ, overrides=overrides)
        except ConfigError as error:
            terminal.screen.say(f"{error.message} {error.hint}".rstrip(), "warning")
            continue
        return f"{provider.name}/{model.id}"
    return ""


async def _ask_model(provider: Provider, shown: Sequence[str], terminal: Terminal) -> str:
    """Empty where none was chosen from a list."""
    if terminal.screen.stage is not None:
        from wolo.frontends.terminal.dialogs.setup_options import pick_model  # noqa: PLC0415  # prompt_toolkit is for panels only

        return await pick_model(provider, shown, terminal)
    terminal.screen.say(f"Models of {provider.label}:")
    _show_numbered(shown, terminal)
    typed = (await ask_line("Which one? Enter takes 1, a name another › ", terminal.screen, terminal.keyboard)).strip()
    return shown[int(typed) - 1] if typed.isdecimal() and 1 <= int(typed) <= len(shown) else typed or shown[0]
