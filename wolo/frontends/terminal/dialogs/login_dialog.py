"""Logs in at a terminal: asks for a provider and its API key, checks the key and saves it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial

from rich.text import Text

from wolo.diagnostics.provider_login import KeyCheck, account_use, check_key, describe_step, save_key, secret_of_dialog
from wolo.errors import ConfigError
from wolo.extension import LoginStep
from wolo.frontends.streams import error_text
from wolo.frontends.terminal.dialogs.input_prompts import ask_secret, confirm
from wolo.frontends.terminal.dialogs.picker import Item, hinted_menu, pick
from wolo.frontends.terminal.display.line_prompt import ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.mcp.oauth.callback import open_browser
from wolo.messages.terminal_text import clean_line
from wolo.models.provider import Provider

LEAST_KEY = 16
"""Characters of the shortest API key."""
COLUMN = 26
"""Cells for a number and the name of a provider."""


def show_providers(providers: Sequence[Provider], terminal: Terminal, *, first: int = 1) -> None:
    across = max(terminal.screen.stdout.columns // COLUMN, 1)
    down = -(-len(providers) // across)
    for row in range(down):
        line = Text()
        for index in range(row, len(providers), down):
            name = providers[index].label[: COLUMN - 6]
            line.append(f"{first + index:>3}  ", "accent").append(name.ljust(COLUMN - 5))
        line.rstrip()
        terminal.screen.print(line)


def find_provider(typed: str, providers: Sequence[Provider]) -> Provider | None:
    """Finds a provider by its name, its label, or an unambiguous beginning of either."""
    typed = typed.strip().lower()
    spelled = [(each, {each.name.lower(), each.label.lower()}) for each in providers]
    exact = [each for each, names in spelled if typed in names]
    begun = [each for each, names in spelled if any(name.startswith(typed) for name in names)]
    found = exact or begun
    return found[0] if typed and (exact or len(begun) == 1) else None


async def ask_provider(providers: Sequence[Provider], terminal: Terminal) -> Provider:
    """Raises EOFError and Dismissed when the user cancels."""
    if terminal.screen.dialog_host is not None:
        hints = {each.name: each.hint for each in providers}
        picked = await pick(hinted_menu("Which provider?", [Item(each.name, each.label) for each in providers], hints), terminal)
        if picked is None:
            raise EOFError
        return next(each for each in providers if each.name == picked.value)
    terminal.screen.show_text("Which provider?")
    show_providers(providers, terminal)
    while True:
        typed = (await ask_line("Number or name › ", terminal)).strip()
        if typed.isdecimal() and 1 <= int(typed) <= len(providers):
            return providers[int(typed) - 1]
        if provider := find_provider(typed, providers):
            return provider
        terminal.screen.show_text(f"There is no provider {typed}." if typed else "Ctrl-D quits.", "warning")


def is_key(text: str) -> bool:
    return len(text) >= LEAST_KEY and not re.search(r"[\s/]", text)


async def log_in(
    provider: Provider, terminal: Terminal, account: str = "", *, key: str = "", tests: bool = True, in_keyring: bool = True
) -> bool:
    """True once a key is saved: first `key`, if there is one.

    Raises EOFError when the user cancels, ConfigError when the key cannot be saved, and ExtensionError.
    """
    if not (key or account) and (secret := await secret_of_dialog(provider, partial(_show_step, terminal))) is not None:
        where = save_key(provider, secret, in_keyring=in_keyring)
        terminal.screen.show_text(f"Logged in to {provider.label}; the login is saved in {where}.", "dim")
        return True
    if provider.hint and not key:
        terminal.screen.show_text(provider.hint, "dim")
    while True:
        pasted = key or await ask_secret(f"Paste your {provider.label} API key (input is hidden)", terminal)
        if not pasted:
            return False
        key = ""
        try:
            trial = await _try(provider, pasted, terminal) if tests else None
        except ConfigError as error:
            terminal.screen.show_text(error_text(error), "warning")
            continue
        is_refused = trial is not None and trial.verdict == "refused"  # such a key is never saved
        if (
            trial is None
            or trial.may_be_kept
            or (not is_refused and await confirm("Save it anyway?", terminal, no="No, discard it", yes="Yes, save it"))
        ):
            where = save_key(provider, pasted, in_keyring=in_keyring, account=account)
            terminal.screen.show_text(f"The key is saved in {where}. {account_use(provider, account)}".rstrip(), "dim")
            return True


async def _show_step(terminal: Terminal, step: LoginStep) -> str:
    if step.url:
        terminal.screen.show_text(describe_step(step))
        open_browser(step.url, os.environ)
    return await ask_secret(clean_line(step.ask), terminal) if step.ask else ""


async def _try(provider: Provider, key: str, terminal: Terminal) -> KeyCheck:
    terminal.screen.status.start("checking the key")
    try:
        trial = await check_key(provider, key)
    finally:
        terminal.screen.status.stop()
    terminal.screen.show_text(f"{trial.message} {trial.hint}".rstrip(), "" if trial.may_be_kept else "warning")
    return trial
