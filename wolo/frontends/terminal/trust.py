"""Asking whether a folder is trusted, once, where it brings something along that would change how wolo works."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from wolo.config import project, trust
from wolo.config.given import Given
from wolo.config.project import Brought
from wolo.errors import ConfigError
from wolo.frontends.terminal.question import ask_line
from wolo.frontends.terminal.terminal import Terminal
from wolo.messages.terminal_text import spelled_out
from wolo.places import find_places
from wolo.workspace.root import find_root

ANSWER_WITHIN_S = 120.0
"""Nobody may be there: a script can have a terminal too, and its task must not wait for ever."""
MOST_SHOWN = 12


async def ask_trust(given: Given, terminal: Terminal) -> None:
    """Whatever is not a yes leaves the folder untrusted. Raises Dismissed for Ctrl-C."""
    root = find_root()
    brought = project.find(root, Path.cwd())
    if not brought or given.get("trust") == str(root) or trust.answer_for(find_places(), root, []):
        return
    _show(root, brought, terminal)
    match await _answer(terminal):
        case "y" | "yes":
            _keep(root, "trusted", terminal)
        case "never":
            _keep(root, "never", terminal)


def _show(root: Path, brought: Sequence[Brought], terminal: Terminal) -> None:
    terminal.screen.print(Text.assemble(("? ", "bold yellow"), ("This folder brings along:", "bold")))
    width = max(len(each.kind) for each in brought)
    for each in brought[:MOST_SHOWN]:
        terminal.screen.print(Text.assemble((f"  {each.kind:<{width}}  ", "dim"), _spelled_out(each.path.relative_to(root))))
    if len(brought) > MOST_SHOWN:
        terminal.screen.say(f"  and {len(brought) - MOST_SHOWN} more", "dim")
    terminal.screen.print(Text.assemble(("  in ", "dim"), _spelled_out(root)))
    terminal.screen.say(
        "  Nothing of it is used unless you trust the folder. Your permissions stay as they are either way.", "dim"
    )


async def _answer(terminal: Terminal) -> str:
    """What was typed; empty when nothing was, or nobody is there."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            typed = await ask_line("  Trust it? [y]es  [N]ot now  [never] › ", terminal.screen, terminal.keyboard)
    except (EOFError, TimeoutError):
        return ""
    return typed.strip().lower()


def _keep(root: Path, answer: trust.Answer, terminal: Terminal) -> None:
    try:
        trust.keep(find_places(), root, answer)
    except ConfigError as error:
        terminal.screen.say(f"Your answer could not be kept: {error.message}", "yellow")
        if answer == "trusted":
            terminal.screen.say("--trust trusts the folder for one run.", "dim")


def _spelled_out(path: Path) -> Text:
    """The whole name, on one line."""
    text = Text()
    for piece, is_escape in spelled_out(str(path)):
        text.append(piece.replace("\n", "\\n"), "reverse" if is_escape or "\n" in piece else "cyan")
    return text
