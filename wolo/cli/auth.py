"""`wolo auth`: saves and removes API keys, in the system keyring or in `keys.toml`. Keys are never arguments."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.errors import UsageError
from wolo.frontends.streams import print_line, print_message, print_messages

if TYPE_CHECKING:
    from wolo.models.provider import Provider

app = typer.Typer(rich_markup_mode=None)

Named = Annotated[str, typer.Argument(metavar="[PROVIDER]", show_default=False)]
FromStdin = Annotated[
    bool, typer.Option("--key-stdin", help="Read the key from stdin; the default when stdin is not a terminal.")
]
NoTest = Annotated[bool, typer.Option("--no-test", help="Save the key without testing it.")]
Others = Annotated[list[str] | None, typer.Argument(hidden=True)]
Account = Annotated[str, typer.Option("--name", help="Name of this key, where a provider has several.", metavar="NAME")]
NoKeyring = Annotated[bool, typer.Option("--no-keyring", help="Save it in keys.toml, not in the keyring.")]


@app.command("login")
def login(
    provider: Named = "",
    others: Others = None,
    key_stdin: FromStdin = False,
    no_test: NoTest = False,
    no_keyring: NoKeyring = False,
    name: Account = "",
) -> None:
    """Save the API key of a provider.

    The key is typed at a terminal without being shown, or read from stdin, and tested with one tiny request.
    """
    from wolo.config.key_store import row_name
    from wolo.diagnostics.provider_login import find_login_provider, no_argument

    if others:
        raise no_argument()
    row_name("", name)  # before anything is asked
    del key_stdin  # stdin is read anyway when it is not a terminal; at a terminal the key would be visible
    taker = find_login_provider(provider) if provider else None
    if not sys.stdin.isatty():
        if taker is None:
            raise UsageError("Which provider is the key for?", hint="wolo auth login PROVIDER --key-stdin < FILE")
        exit_code = asyncio.run(_log_in_from_stdin(taker, name, tests=not no_test, in_keyring=not no_keyring))
    elif not sys.stdout.isatty():
        raise UsageError("Typing a key needs a terminal.", hint="wolo auth login PROVIDER --key-stdin < FILE")
    else:
        exit_code = asyncio.run(_log_in_at_terminal(taker, name, tests=not no_test, in_keyring=not no_keyring))
    raise typer.Exit(exit_code)


async def _log_in_from_stdin(provider: Provider, account: str, *, tests: bool, in_keyring: bool) -> int:
    from wolo.cli.run import read_piped
    from wolo.diagnostics.provider_login import account_use, check_key, save_key

    if not (key := read_piped(patient=True).strip()):
        raise UsageError("No key on stdin.", hint="wolo auth login PROVIDER --key-stdin < FILE")
    trial = await check_key(provider, key) if tests else None
    if trial is not None:
        print_message(trial.message, hint=trial.hint)
        if not trial.may_be_kept:
            print_message(
                "The key was not saved.", hint="" if trial.verdict == "refused" else "--no-test saves it without testing."
            )
            return trial.exit_code or 1
    where = save_key(provider, key, in_keyring=in_keyring, account=account)
    print_line(f"The API key of {provider.label} is saved in {where}.")
    if use := account_use(provider, account):
        print_message(use)
    return 0


async def _log_in_at_terminal(provider: Provider | None, account: str, *, tests: bool, in_keyring: bool) -> int:
    from wolo.diagnostics.provider_login import login_providers
    from wolo.frontends.terminal.dialogs.login_dialog import ask_provider, log_in
    from wolo.frontends.terminal.display.line_prompt import Dismissed
    from wolo.frontends.terminal.display.terminal import hold_terminal
    from wolo.frontends.terminal.live.temporary_region import temporary_region

    with hold_terminal() as terminal:
        terminal.state.is_interactive = True
        try:
            async with temporary_region(terminal, is_stoppable=True):
                provider = provider or await ask_provider(login_providers(), terminal)
                return 0 if await log_in(provider, terminal, account, tests=tests, in_keyring=in_keyring) else 1
        except EOFError:
            return 1
        except (Dismissed, asyncio.CancelledError):
            return terminal.signals.exit_status or 130


@app.command("logout")
def logout(provider: Named = "", name: Account = "") -> None:
    """Remove a saved API key.

    PROVIDER may be omitted when only one key is saved.
    """
    from wolo.diagnostics.provider_login import log_out

    removed, left = log_out(provider, name)
    print_line(removed)
    print_messages(left)


@app.command("status")
def status(as_json: AsJson = False) -> None:
    """List every API key, its source and the one in use.

    Only the last characters of a key are shown.
    """
    from wolo.diagnostics.provider_login import found_keys

    keys, notices = found_keys()
    print_messages(notices)
    if as_json:
        print_json([each._asdict() for each in keys])
        return
    for each in keys:
        source = f"{each.source} (account {each.account})" if each.account else each.source
        print_line(f"{'*' if each.counts else ' '} {each.provider:<14} {each.masked:<14} {source}")
    if keys:
        print_message("* marks the key in use.")
    else:
        print_message("There is no API key yet.", hint="`wolo auth login` saves one.")
