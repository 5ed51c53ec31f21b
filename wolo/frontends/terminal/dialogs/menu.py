"""A menu to choose from: as a list with a filter, or by number where the cursor cannot move."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from rich.text import Text

from wolo.frontends.terminal.display.line_prompt import ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.messages.terminal_text import clean_line

T = TypeVar("T")

MOST_NUMBERED = 20
LABEL_CHARS = 70
EMBEDDED, SERVER = "embedded", "server"
SETUPS = {EMBEDDED: "install the embedded model", SERVER: "another server (URL)"}
"""Entries of model menus that set up a model which is not listed."""
ABOUT_SERVER = "Any server that speaks Chat Completions. It is tried out and saved as a provider, with the models it lists."


class Item(NamedTuple, Generic[T]):
    value: T
    label: str
    facts: str = ""
    """Shown after the label."""


class Picked(NamedTuple, Generic[T]):
    value: T
    is_on: bool
    """The menu's switch was on."""


class Menu(NamedTuple, Generic[T]):
    title: str
    listed: Callable[[bool], Sequence[Item[T]]]
    """Entries, with the switch off or on."""
    switch: str = ""
    """Label of the switch that Tab toggles; empty: there is none."""
    preview: Callable[[T, bool], Sequence[str]] | None = None
    """Details of an entry; called in a thread."""
    is_numbered: bool = False
    """Typing a number marks that entry."""
    written: Callable[[str], T] | None = None
    """Makes a choice of typed text that matches no entry."""


def hinted_menu(title: str, items: Sequence[Item[str]], hints: Mapping[str, str], *, switch: str = "") -> Menu[str]:
    """A numbered menu whose preview shows the hint for an entry, a sentence a line."""

    def preview(name: str, is_on: bool) -> Sequence[str]:
        return re.split(r"(?<=\.) ", hints.get(name, ""))

    return Menu(title, lambda is_on: items, switch, preview, is_numbered=True)


async def pick(menu: Menu[T], terminal: Terminal) -> Picked[T] | None:
    """None: the user cancelled. Raises Dismissed for Ctrl-C."""
    if (stage := terminal.screen.stage) is None:
        return await _pick_by_number(menu, terminal)
    from wolo.frontends.terminal.dialogs.picker import Picker  # noqa: PLC0415  # prompt_toolkit is for panels only

    return await stage.stand(Picker(menu))


async def _pick_by_number(menu: Menu[T], terminal: Terminal) -> Picked[T] | None:
    items = list(menu.listed(False))[:MOST_NUMBERED]
    for number, item in enumerate(items, start=1):
        label = clean_line(item.label)[:LABEL_CHARS]
        terminal.screen.print(Text.assemble((f"{number:>3}  ", "accent"), label, (f"  {clean_line(item.facts)}", "dim")))
    while True:
        try:
            typed = (await ask_line(f"{menu.title} Enter selects 1, q cancels › ", terminal.screen, terminal.keyboard)).strip()
        except EOFError:
            return None
        if typed.lower() == "q":
            return None
        if not typed or (typed.isdecimal() and 1 <= int(typed) <= len(items)):
            return Picked(items[int(typed or 1) - 1].value, is_on=False)
        terminal.screen.say(f"There is no number {typed}.", "warning")
