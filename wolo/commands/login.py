"""/login and /logout: save and remove API keys."""

from __future__ import annotations

import asyncio

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.diagnostics.provider_login import found_keys, log_out, login_providers, split_account
from wolo.errors import UsageError


async def _login(context: CommandContext, rest: str) -> Outcome:
    """The terminal replaces this by its own dialog."""
    raise UsageError("/login needs an interactive terminal.", hint=f"wolo login {rest or 'PROVIDER'} --key-stdin < FILE")


async def _logout(context: CommandContext, rest: str) -> Outcome:
    removed, left = await asyncio.to_thread(log_out, *split_account(rest))
    return ShowText(
        "\n".join(
            [removed, *left, "This conversation continues with its current key; /model PROVIDER/MODEL switches to another."]
        )
    )


def _saved_keys(context: CommandContext) -> list[tuple[str, str]]:
    return [
        (f"{each.provider} --name {each.account}" if each.account else each.provider, each.source)
        for each in found_keys()[0]
        if not each.source.startswith(("$", "providers."))
    ]


COMMANDS = (
    Command(
        "login",
        "save the API key of a provider",
        _login,
        usage="[PROVIDER] [--name NAME]",
        more="The key is typed hidden, checked with one tiny request, and saved as by `wolo auth login`.",
        group="Model",
        arguments=lambda _: [(each.name, each.label) for each in login_providers()],
    ),
    Command(
        "logout",
        "remove a saved API key",
        _logout,
        usage="[PROVIDER] [--name NAME]",
        group="Model",
        arguments=_saved_keys,
        while_working=True,
    ),
)
