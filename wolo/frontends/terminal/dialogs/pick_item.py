"""Asking a person to choose: from a list that stands above the line one writes in, or by number where nothing can move."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from rich.text import Text

from wolo.errors import SessionError
from wolo.frontends.terminal.dialogs.pick_sources import sessions_menu
from wolo.frontends.terminal.dialogs.picker import Item, Menu, Picked, Picker
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.line_prompt import ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.live.temporary_region import temporary_region
from wolo.messages.terminal_text import clean_line

T = TypeVar("T")

MOST_NUMBERED = 20
LABEL_CHARS = 70


async def pick(menu: Menu[T], terminal: Terminal) -> Picked[T] | None:
    """None: the person would rather not. Raises Dismissed for Ctrl-C."""
    stage = terminal.screen.stage
    return await _by_number(menu, terminal) if stage is None else await stage.stand(Picker(menu))


async def pick_session(terminal: Terminal) -> str:
    """Before any conversation stands: the id; empty when the person would rather not.

    Raises SessionError when there is none, Dismissed for Ctrl-C.
    """
    menu = sessions_menu(Path.cwd())
    if not menu.listed(True):
        raise SessionError("There is no session to go on with yet.", hint='Start one: wolo "your task"')
    async with temporary_region(terminal):
        picked = await pick(menu, terminal)
    return picked.value if picked else ""


async def _by_number(menu: Menu[T], terminal: Terminal) -> Picked[T] | None:
    items = list(menu.listed(False))[:MOST_NUMBERED]
    _show(items, terminal.screen)
    while True:
        try:
            typed = (await ask_line(f"{menu.title} Enter takes 1, q leaves › ", terminal.screen, terminal.keyboard)).strip()
        except EOFError:
            return None
        if typed.lower() == "q":
            return None
        if not typed or (typed.isdecimal() and 1 <= int(typed) <= len(items)):
            return Picked(items[int(typed or 1) - 1].value, is_on=False)
        terminal.screen.say(f"There is no number {typed}.", "warning")


def _show(items: list[Item[T]], screen: Screen) -> None:
    for number, item in enumerate(items, start=1):
        label = clean_line(item.label)[:LABEL_CHARS]
        screen.print(Text.assemble((f"{number:>3}  ", "accent"), label, (f"  {clean_line(item.facts)}", "dim")))
