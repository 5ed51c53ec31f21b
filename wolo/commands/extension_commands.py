"""Slash commands that extensions add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from wolo.commands.command import Command, CommandContext, Outcome, SendPrompt, ShowText, shorten
from wolo.conversation.running_extensions import Extensions
from wolo.errors import ExtensionError
from wolo.extensions.custom_tools.extension_host import ExtensionDownError, ExtensionHost
from wolo.messages.terminal_text import clean, clean_line

if TYPE_CHECKING:
    from wolo.extensions.custom_tools.tool_listing import ListedCommand

_LONGEST_HELP = 58


def extension_commands(extensions: Extensions) -> Iterator[Command]:
    for host, listed in extensions.commands:
        yield Command(
            listed.name,
            shorten(clean_line(listed.help), _LONGEST_HELP) or f"command of the extension {host.name}",
            partial(_run, host, listed),
            usage=clean_line(listed.usage),
            more=f"{clean(listed.help)} Defined by the extension {host.file.source}.".strip(),
            group="Custom",
            makes_prompt=True,
            arguments=partial(_complete, extensions, host, listed) if listed.completes else None,
        )


async def _run(host: ExtensionHost, listed: ListedCommand, context: CommandContext, rest: str) -> Outcome:
    try:
        answer = await host.ask("command", name=listed.name, arguments=rest)
    except ExtensionDownError as error:
        raise ExtensionError(f"/{listed.name}: the extension {host.name} {error}.") from error
    if answer.error:
        raise ExtensionError(f"/{listed.name} failed: {answer.error}")
    shown = clean(answer.output)
    if prompt := "\n\n".join(str(value) for action, value in answer.actions if action == "prompt"):
        return SendPrompt(clean(prompt), typed=rest, notices=(shown,) if shown else ())
    return ShowText(shown or "Done.")


def _complete(
    extensions: Extensions, host: ExtensionHost, listed: ListedCommand, context: CommandContext
) -> Sequence[tuple[str, str]]:
    return [(clean_line(value), "") for value in extensions.completions(host, listed.name)]
