"""Logging in at a terminal: which provider, its key without showing it, a tiny request to try it, and where it is kept."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from wolo.diagnostics.provider_login import KeyCheck, keep_key, try_to_log_in
from wolo.errors import ConfigError
from wolo.frontends.terminal.dialogs.confirm import confirm
from wolo.frontends.terminal.dialogs.secret_prompt import ask_unseen
from wolo.frontends.terminal.display.line_prompt import ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.models.provider import Provider

COLUMN = 26
"""Room for a number and the name of a provider."""


def show_providers(providers: Sequence[Provider], terminal: Terminal, *, first: int = 1) -> None:
    """Numbered, in as many columns as there is room for."""
    across = max(terminal.screen.stdout.columns // COLUMN, 1)
    down = -(-len(providers) // across)
    for row in range(down):
        line = Text()
        for index in range(row, len(providers), down):
            name = providers[index].label[: COLUMN - 6]
            line.append(f"{first + index:>3}  ", "accent").append(name.ljust(COLUMN - 5))
        line.rstrip()
        terminal.screen.print(line)


def named(typed: str, providers: Sequence[Provider]) -> Provider | None:
    """By its name, by what people call it, or by a beginning of either that only one has."""
    wanted = typed.strip().lower()
    spelled = [(each, {each.name.lower(), each.label.lower()}) for each in providers]
    exact = [each for each, names in spelled if wanted in names]
    begun = [each for each, names in spelled if any(name.startswith(wanted) for name in names)]
    found = exact or begun
    return found[0] if wanted and (exact or len(begun) == 1) else None


async def ask_provider(providers: Sequence[Provider], terminal: Terminal) -> Provider:
    """Raises EOFError and Dismissed when none is wanted."""
    if terminal.screen.stage is not None:
        from wolo.frontends.terminal.dialogs.setup_options import pick_provider  # noqa: PLC0415  # prompt_toolkit is for panels only

        return await pick_provider(providers, terminal)
    terminal.screen.say("Whose key is it?")
    show_providers(providers, terminal)
    while True:
        typed = (await ask_line("Number or name › ", terminal.screen, terminal.keyboard)).strip()
        if typed.isdecimal() and 1 <= int(typed) <= len(providers):
            return providers[int(typed) - 1]
        if found := named(typed, providers):
            return found
        terminal.screen.say(f"There is no provider {typed}." if typed else "Ctrl-D leaves.", "warning")


async def log_in(provider: Provider, terminal: Terminal, *, tests: bool = True, in_keyring: bool = True) -> bool:
    """Whether a key of this provider is kept now. Raises EOFError when none is wanted, ConfigError when it cannot be kept."""
    if provider.hint:
        terminal.screen.say(provider.hint, "dim")
    while True:
        key = await ask_unseen(f"Paste the key of {provider.label} and press Enter; it is not shown.", terminal)
        if not key:
            return False
        try:
            trial = await _try(provider, key, terminal) if tests else None
        except ConfigError as error:
            terminal.screen.say(f"{error.message} {error.hint}", "warning")
            continue
        if trial is None or trial.may_be_kept or await _is_wanted_anyway(trial, terminal):
            terminal.screen.say(f"The key is kept in {keep_key(provider, key, in_keyring=in_keyring)}.", "dim")
            return True


async def _try(provider: Provider, key: str, terminal: Terminal) -> KeyCheck:
    terminal.screen.status.start("trying the key")
    try:
        trial = await try_to_log_in(provider, key)
    finally:
        terminal.screen.status.stop()
    terminal.screen.say(f"{trial.words} {trial.hint}".rstrip(), "" if trial.may_be_kept else "warning")
    return trial


async def _is_wanted_anyway(trial: KeyCheck, terminal: Terminal) -> bool:
    """A key that was refused is not kept."""
    if trial.verdict == "refused":
        return False
    return await confirm("Keep it all the same?", terminal, no="No, drop it", yes="Yes, keep it")
