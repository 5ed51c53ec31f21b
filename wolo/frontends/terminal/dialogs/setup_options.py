"""What a newcomer can choose from, as lists: a model of this machine, the embedded one, a provider, one of its models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from wolo.frontends.terminal.dialogs.pick_item import pick
from wolo.frontends.terminal.dialogs.picker import Item, Menu
from wolo.frontends.terminal.dialogs.unlisted_models import ABOUT_SERVER, EMBEDDED, OTHERS, SERVER
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.models.http.server_lookup import Server
from wolo.models.provider import Provider


async def pick_offer(
    servers: Sequence[Server],
    embedded: str,
    has_embedded: bool,
    providers: Sequence[Provider],
    key_there: Callable[[Provider], str],
    terminal: Terminal,
) -> tuple[str, bool]:
    """A model of a server, EMBEDDED, SERVER or the name of a provider, and whether a model is to be tried out.

    `embedded` says what that one is, `has_embedded` whether its engine is installed; `key_there` where a key of a provider is.
    Raises EOFError when none is wanted.
    """
    items = [Item(model, model, f"{server.label}, on this machine") for server in servers for model in server.models]
    switch = "try out what it can do" if items else ""
    if has_embedded:
        items.append(Item(EMBEDDED, "a small model inside wolo", "no key, no account"))
    items += [
        Item(each.name, each.label, _about(key_there(each))) for each in sorted(providers, key=lambda each: not key_there(each))
    ]
    others = (SERVER,) if has_embedded else (EMBEDDED, SERVER)
    items += [Item(each, OTHERS[each]) for each in others]
    hints = {each.name: each.hint for each in providers} | {EMBEDDED: embedded, SERVER: ABOUT_SERVER}
    menu = Menu("There is no model yet. Who shall answer?", lambda is_on: items, switch, _told(hints), is_numbered=True)
    picked = await pick(menu, terminal)
    if picked is None:
        raise EOFError
    return picked.value, picked.is_on


async def pick_provider(providers: Sequence[Provider], terminal: Terminal) -> Provider:
    """Raises EOFError when none is wanted."""
    items = [Item(each.name, each.label) for each in providers]
    menu = Menu(
        "Whose key is it?", lambda is_on: items, preview=_told({each.name: each.hint for each in providers}), is_numbered=True
    )
    picked = await pick(menu, terminal)
    if picked is None:
        raise EOFError
    return next(each for each in providers if each.name == picked.value)


async def pick_model(provider: Provider, names: Sequence[str], terminal: Terminal) -> str:
    """Any name may be written; empty: the person would rather not."""
    items = [Item(name, name) for name in names]
    menu = Menu(f"Which model of {provider.label}?", lambda is_on: items, is_numbered=True, written=str)
    picked = await pick(menu, terminal)
    return picked.value if picked else ""


def _about(variable: str) -> str:
    return f"${variable} is its key" if variable else "with an API key"


def _told(hints: Mapping[str, str]) -> Callable[[str, bool], Sequence[str]]:
    return lambda name, is_on: re.split(r"(?<=\.) ", hints.get(name, ""))
