"""Adds a model server by its URL: tries it out, and saves it as a provider with its models."""

from __future__ import annotations

import asyncio

from wolo.diagnostics.provider_login import FoundServer, look_up_server, save_provider, suggested_name, taken_names
from wolo.errors import ConfigError, ProviderError, UsageError
from wolo.frontends.streams import error_text
from wolo.frontends.terminal.dialogs.input_prompts import ask_secret, ask_text, confirm
from wolo.frontends.terminal.dialogs.picker import Item, print_numbered
from wolo.frontends.terminal.display.line_prompt import PassedOver
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.messages.terminal_text import clean_line
from wolo.models import probe_cache
from wolo.models.catalog import Catalog
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.server_lookup import ask_window
from wolo.models.probe import Probe
from wolo.models.provider import ModelChoice
from wolo.places import find_places

MOST_SHOWN = 20
ABILITIES = {"call tools": "tools", "see images": "images"}
"""In words for a newcomer, by the name of the finding."""


async def add_server(terminal: Terminal, url: str = "") -> str:
    """The chosen model, `provider/model`; empty: none. Raises Dismissed and EOFError when the user cancels."""
    try:
        url = url or await ask_text("Base URL, such as http://localhost:8080/v1 › ", terminal)
        if not url:
            return ""
        key = await ask_secret("Paste its API key (input is hidden), or press Enter for none", terminal)
        if (server := await _look_up(url, key, terminal)) is None:
            return ""
        shown = server.models[:MOST_SHOWN]
        print_numbered([Item(name, name) for name in shown], terminal)
        model = await ask_text(
            "Which model? Enter selects 1; other names work, too › " if shown else "Name of the model › ", terminal
        )
        if model.isdecimal() and 1 <= int(model) <= len(shown):
            model = shown[int(model) - 1]
        elif not model:
            if not shown:
                return ""
            model = shown[0]
        choice = Catalog({}).find(f"custom/{model}", base_url=server.base_url, api_key=key or None)
        if not await try_out(choice, terminal) and not await confirm("Save it anyway?", terminal):
            return ""
        return await _save(server, model, key, terminal)
    except PassedOver:
        return ""


async def try_out(choice: ModelChoice, terminal: Terminal) -> bool:
    """Sends a few tiny requests and saves the findings. False: the model did not answer."""
    transport = HttpTransport()
    terminal.screen.status.start("trying out")
    try:
        window = await asyncio.to_thread(ask_window, choice)
        result = await Probe(
            choice, transport, lambda finding: terminal.screen.status.describe(f"trying out {finding.what}")
        ).run(window)
        probe_cache.write(find_places().cache, result)
        # One sentence; the findings one by one are for `models probe`
        spec = f"{choice.provider.name}/{choice.model.id}"
        works = {finding.what: finding.works for finding in result.findings}
        can = [f"can {name}" for name, what in ABILITIES.items() if works.get(what)]
        cannot = [name for name, what in ABILITIES.items() if works.get(what) is False]
        lacks = f"; it cannot {' or '.join(cannot)}" if cannot else ""
        terminal.screen.show_text(
            f"It answers{''.join(f', {each}' for each in can)}{lacks}. Details: wolo models probe {clean_line(spec)}", "dim"
        )
    except (ProviderError, OSError) as error:
        terminal.screen.show_text(f"Cannot try out the model: {error}", "warning")
        return False
    finally:
        terminal.screen.status.stop()
        await transport.close()
    return True


async def _look_up(url: str, key: str, terminal: Terminal) -> FoundServer | None:
    terminal.screen.status.start("asking the server for its models")
    try:
        server = await asyncio.to_thread(look_up_server, url, key)
    except ConfigError as error:
        terminal.screen.show_text(error_text(error), "warning")
        return None
    finally:
        terminal.screen.status.stop()
    if not server.models:
        terminal.screen.show_text(f"No models are listed at {clean_line(server.base_url)}, or nothing answers there.", "warning")
    return server


async def _save(server: FoundServer, model: str, key: str, terminal: Terminal) -> str:
    suggested = suggested_name(server.base_url, taken_names())
    while True:
        name = await ask_text(f"Name of this provider, Enter for {suggested} › ", terminal) or suggested
        try:
            await asyncio.to_thread(save_provider, name, server, key)
        except UsageError as error:
            terminal.screen.show_text(error_text(error), "warning")
            continue
        count = "1 model" if len(server.models) == 1 else f"{len(server.models)} models"
        terminal.screen.show_text(f"Saved provider {name} with {count} in {find_places().config / 'config.toml'}.", "dim")
        return f"{name}/{model}"
