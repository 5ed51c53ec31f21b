"""Asking whether hooks that came with a trusted folder may run: each file on its own, with every command in full."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from wolo.config.given import Given
from wolo.conversation.hooking import HookSet, keep_answer, to_agree
from wolo.errors import ConfigError
from wolo.frontends.terminal.terminal import Terminal
from wolo.frontends.terminal.trust import Wording, ask_once
from wolo.messages.terminal_text import spelled_out
from wolo.places import find_places
from wolo.workspace.root import find_root

LET_RUN = Wording("Let them run?", "Yes, let them run", "the hooks of this project", "they run", "run")


async def ask_hooks(given: Given, terminal: Terminal) -> None:
    """Whatever is not a yes lets nothing run. Raises Dismissed for Ctrl-C, ConfigError for answers others may have written."""
    root = find_root()
    for found in to_agree(find_places(), root, Path.cwd(), given):
        answer = await ask_once(_shown(found), LET_RUN, terminal)
        if answer in ("y", "yes", "never"):
            try:
                keep_answer(find_places(), root, found, "never" if answer == "never" else "yes")
            except ConfigError as error:
                terminal.screen.say(f"Your answer could not be kept: {error.message}", "yellow")


def _shown(found: HookSet) -> list[Text]:
    lines = [Text.assemble(("? ", "bold yellow"), ("Hooks of this project want to run, from ", "bold"), _whole(found.source))]
    for event, hook in found.hooks:
        about = f"  {event}{f' for {hook.matcher}' if hook.matcher else ''}"
        lines += [Text.assemble(*_spelled(about, "dim")), Text.assemble("    ", _whole(hook.command))]
    return [
        *lines,
        Text("  They run as you do, outside of the sandbox. They can make wolo stricter, never looser.", "dim"),
    ]


def _whole(text: str) -> Text:
    """All of it, on one line."""
    return Text.assemble(*_spelled(text, "cyan"))


def _spelled(text: str, style: str) -> list[tuple[str, str]]:
    pieces = spelled_out(text)
    return [(piece.replace("\n", "\\n"), "reverse" if is_escape or "\n" in piece else style) for piece, is_escape in pieces]
