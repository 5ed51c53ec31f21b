"""Asking whether hooks that came with a trusted folder may run: each file on its own, with every command in full."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.text import Text

from wolo.config.cli_options import Given
from wolo.conversation.resources.hooks import HookSet, awaiting_consent
from wolo.conversation.resources.hooks import save_consent as keep_agreement
from wolo.frontends.terminal.dialogs.ask_trust import Wording, ask_once, keep_answer, whole
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.places import find_places
from wolo.workspace.root import find_root

LET_RUN = Wording("Let them run?", "Yes, let them run", "the hooks of this project", "they run", "run")


async def ask_hooks(given: Given, terminal: Terminal) -> None:
    """Whatever is not a yes lets nothing run. Raises Dismissed for Ctrl-C, ConfigError for answers others may have written."""
    root = find_root()
    for found in awaiting_consent(find_places(), root, Path.cwd(), given):
        answer = await ask_once(_shown(found), LET_RUN, terminal)
        if answer in ("y", "yes", "never"):
            keep_answer(partial(keep_agreement, find_places(), root, found, "never" if answer == "never" else "yes"), terminal)


def _shown(found: HookSet) -> list[Text]:
    lines = [Text.assemble(("? ", "bold warning"), ("Hooks of this project want to run, from ", "bold"), whole(found.source))]
    for event, hook in found.hooks:
        about = f"  {event}{f' for {hook.matcher}' if hook.matcher else ''}"
        lines += [whole(about, "dim"), Text.assemble("    ", whole(hook.command))]
    return [
        *lines,
        Text("  They run with all your rights, outside any sandbox.", "dim"),
        Text("  They can make wolo stricter, never looser.", "dim"),
        Text("  If one of them changes, you are asked again.", "dim"),
    ]
