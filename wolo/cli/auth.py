"""`wolo auth`: API keys that wolo keeps, in the system's keyring or a file of its own. No key is ever an argument."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from wolo.cli.listing import AsJson, print_json
from wolo.errors import UsageError
from wolo.frontends.streams import say, tell

if TYPE_CHECKING:
    from wolo.models.provider import Provider

app = typer.Typer(rich_markup_mode=None)

Named = Annotated[str, typer.Argument(metavar="[PROVIDER]", show_default=False)]
FromStdin = Annotated[bool, typer.Option("--key-stdin", help="The key comes on stdin, as it does wherever stdin is no terminal.")]
NoTest = Annotated[bool, typer.Option("--no-test", help="Keep it without trying it.")]
Others = Annotated[list[str] | None, typer.Argument(hidden=True)]
NoKeyring = Annotated[bool, typer.Option("--no-keyring", help="Keep it in keys.toml, also where there is a keyring.")]


@app.command("login")
def login(
    provider: Named = "",
    others: Others = None,
    key_stdin: FromStdin = False,
    no_test: NoTest = False,
    no_keyring: NoKeyring = False,
) -> None:
    """Keep the API key of a provider.

    It is typed unseen in a terminal or read from stdin, and tried with one tiny request.
    """
    import asyncio

    from wolo.diagnostics.provider_login import find_login_provider, no_argument

    if others:
        raise no_argument()
    del key_stdin  # says what is so wherever stdin is no terminal; at one the key would show
    taker = find_login_provider(provider) if provider else None
    if not sys.stdin.isatty():
        if taker is None:
            raise UsageError("Whose key is it?", hint="wolo auth login PROVIDER --key-stdin < FILE")
        exit_code = asyncio.run(_log_in_from_stdin(taker, tests=not no_test, in_keyring=not no_keyring))
    elif not sys.stdout.isatty():
        raise UsageError("A key is asked for in a terminal.", hint="wolo auth login PROVIDER --key-stdin < FILE")
    else:
        exit_code = asyncio.run(_log_in_at_terminal(taker, tests=not no_test, in_keyring=not no_keyring))
    raise typer.Exit(exit_code)


async def _log_in_from_stdin(provider: Provider, *, tests: bool, in_keyring: bool) -> int:
    from wolo.cli.run import read_piped
    from wolo.diagnostics.provider_login import keep_key, try_to_log_in

    key = read_piped(patient=True).strip()
    if not key:
        raise UsageError("No key came on stdin.", hint="wolo auth login PROVIDER --key-stdin < FILE")
    trial = await try_to_log_in(provider, key) if tests else None
    if trial is not None:
        say(trial.words, hint=trial.hint)
        if not trial.may_be_kept:
            say("The key is not kept.", hint="" if trial.verdict == "refused" else "--no-test keeps it all the same.")
            return trial.exit_code or 1
    tell(f"The key of {provider.label} is kept in {keep_key(provider, key, in_keyring=in_keyring)}.")
    return 0


async def _log_in_at_terminal(provider: Provider | None, *, tests: bool, in_keyring: bool) -> int:
    import asyncio

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
                return 0 if await log_in(provider, terminal, tests=tests, in_keyring=in_keyring) else 1
        except EOFError:
            return 1
        except Dismissed:
            return 130
        except asyncio.CancelledError:
            if not terminal.signals.exit_status:
                raise
            return terminal.signals.exit_status


@app.command("logout")
def logout(provider: Named = "") -> None:
    """Remove a key that wolo keeps.

    Without a name: the only one.
    """
    from wolo.diagnostics.provider_login import log_out

    removed, left = log_out(provider)
    tell(removed)
    for words in left:
        say(words)


@app.command("status")
def status(as_json: AsJson = False) -> None:
    """Every API key: where it comes from, which one counts.

    Of a key only its end is shown.
    """
    from wolo.diagnostics.provider_login import found_keys

    found, notices = found_keys()
    for notice in notices:
        say(notice)
    if as_json:
        print_json([each._asdict() for each in found])
        return
    for each in found:
        tell(f"{'*' if each.counts else ' '} {each.provider:<14} {each.masked:<14} {each.source}")
    if found:
        say("* is the key that counts.")
    else:
        say("There is no API key yet.", hint="`wolo auth login` keeps one.")
