"""/login and /logout: save the API key of a provider, or remove it. Only a terminal can ask for a key."""

from __future__ import annotations

import asyncio

from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.diagnostics.credentials import found_keys, log_out, login_providers
from wolo.errors import UsageError


async def run(desk: CommandContext, rest: str) -> Outcome:
    """Where nobody can type a key unseen."""
    raise UsageError("A key is asked for in a terminal.", hint=f"wolo login {rest or 'PROVIDER'} --key-stdin < FILE")


async def run_logout(desk: CommandContext, rest: str) -> Outcome:
    removed, left = await asyncio.to_thread(log_out, rest)
    return ShowText(
        "\n".join([removed, *left, "This conversation keeps the key it began with; /model PROVIDER/MODEL changes to another."])
    )


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    return [(each.name, each.label) for each in login_providers()]


def logout_arguments(desk: CommandContext) -> list[tuple[str, str]]:
    return [(each.provider, each.source) for each in found_keys()[0] if not each.source.startswith(("$", "providers."))]
