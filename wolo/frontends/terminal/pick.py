"""Choosing one of this directory's sessions: `wolo --resume` without saying which."""

from __future__ import annotations

import time
from pathlib import Path

from rich.text import Text

from wolo.errors import SessionError
from wolo.frontends.terminal.question import ask_line
from wolo.frontends.terminal.terminal import Terminal
from wolo.messages.terminal_text import clean_line
from wolo.places import find_places
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

MOST_SHOWN = 20
TITLE_CHARS = 70


async def pick_session(terminal: Terminal) -> str:
    """The id; empty when the person would rather not. Raises SessionError when there is nothing to choose from."""
    with Store.open(find_places().data) as store:
        found = [info for info in store.list(Path.cwd()) if info.turns]
    if not found:
        raise SessionError(
            "There is no session of this directory to go on with.", hint="`wolo sessions list --all` shows others."
        )
    _show(found[:MOST_SHOWN], terminal)
    while True:
        try:
            typed = (await ask_line("Which one? Enter takes 1, q leaves › ", terminal.screen, terminal.keyboard)).strip()
        except EOFError:
            return ""
        if typed.lower() == "q":
            return ""
        if not typed or (typed.isdecimal() and 1 <= int(typed) <= len(found)):
            return found[int(typed or 1) - 1].id
        terminal.screen.say(f"There is no number {typed}.", "yellow")


def _show(found: list[SessionInfo], terminal: Terminal) -> None:
    for number, info in enumerate(found, start=1):
        called = clean_line(info.name or info.title)[:TITLE_CHARS]
        facts = f"  {age(time.time() - info.updated)} · {info.turns} turns{' · open elsewhere' if info.live else ''}"
        terminal.screen.print(Text.assemble((f"{number:>3}  ", "cyan"), called, (facts, "dim")))


def age(seconds: float) -> str:
    """`3 min ago`."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit} ago"
    return "just now"
