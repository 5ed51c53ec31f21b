"""Menus to choose from: as a list with a filter, or by number where the cursor cannot move."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from prompt_toolkit.application.current import get_app
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from wolo.frontends.terminal.display.line_prompt import ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.panels.panel import Panel, add_hints, key_hints
from wolo.frontends.terminal.panels.region_styles import as_rows
from wolo.messages.terminal_text import clean_line

T = TypeVar("T")

LIST_ROWS = 10
PREVIEW_ROWS = 6
LEAST_ROWS = 4
"""A lower window shows only the list and the filter line."""
REST_S = 0.08
"""Delay before the preview of the marked entry is loaded."""
_MOVES = {"up": -1, "down": 1, "c-p": -1, "c-n": 1, "pageup": -LIST_ROWS, "pagedown": LIST_ROWS}
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
        return re.split(r"(?<=\.) ", hints[name]) if hints.get(name) else ()

    return Menu(title, lambda is_on: items, switch, preview if any(hints.values()) else None, is_numbered=True)


async def pick(menu: Menu[T], terminal: Terminal) -> Picked[T] | None:
    """None: the user cancelled. Raises Dismissed for Ctrl-C."""
    if (dialog_host := terminal.screen.dialog_host) is None:
        return await _pick_by_number(menu, terminal)
    return await dialog_host.show_dialog(Picker(menu))


def print_numbered(items: Sequence[Item[T]], terminal: Terminal, *, first: int = 1) -> None:
    for number, item in enumerate(items, start=first):
        facts = f"  {clean_line(item.facts)}" if item.facts else ""
        label = clean_line(item.label)[:LABEL_CHARS]
        terminal.screen.print(Text.assemble((f"{number:>3}  ", "accent"), label, (facts, "dim")))


async def _pick_by_number(menu: Menu[T], terminal: Terminal) -> Picked[T] | None:
    items = list(menu.listed(False))[:MOST_NUMBERED]
    print_numbered(items, terminal)
    while True:
        try:
            typed = (await ask_line(f"{menu.title} Enter selects 1, q cancels › ", terminal)).strip()
        except EOFError:
            return None
        if typed.lower() == "q":
            return None
        if not typed or (typed.isdecimal() and 1 <= int(typed) <= len(items)):
            return Picked(items[int(typed or 1) - 1].value, is_on=False)
        terminal.screen.show_text(f"There is no number {typed}.", "warning")


class Picker(Panel[Picked[T] | None]):
    """None: the user cancelled. The user opened it, so keys count at once."""

    def __init__(self, menu: Menu[T]) -> None:
        self._menu = menu
        self._is_on = False
        self._items: tuple[Item[T], ...] = ()
        self._found: tuple[Item[T], ...] = ()
        self._words: tuple[str, ...] = ()
        """Text that the filter searches, item by item."""
        self._list()
        self._at = 0
        self._previews: dict[tuple[T, bool], Sequence[str]] = {}
        self._loading: asyncio.Task[None] | None = None
        super().__init__()

    # Parts of a panel

    def open(self) -> None:
        super().open()
        self.write("› ")
        self._preview_soon()

    @property
    def ignores_keys(self) -> bool:
        return False

    def on_edit(self) -> None:
        typed = self.field.text.strip()
        if self._menu.is_numbered and typed.isdecimal() and 1 <= int(typed) <= len(self._items):
            self._found = self._items
            self._move_to(int(typed) - 1)
            return
        wanted = self.field.text.casefold().split()
        pairs = zip(self._items, self._words, strict=True)
        self._found = tuple(item for item, words in pairs if all(each in words for each in wanted))
        self._move_to(0)

    def submit(self, written: str) -> None:
        if self._found:
            self.resolve(Picked(self._found[self._at].value, self._is_on))
        elif self._menu.written is not None and written.strip():
            self.resolve(Picked(self._menu.written(written.strip()), self._is_on))

    def leave_field(self) -> None:
        self.resolve(None)

    def close(self) -> None:
        super().close()
        if self._loading is not None:
            self._loading.cancel()

    def _writing_keys(self) -> KeyBindings:
        keys = super()._writing_keys()
        for key, by in _MOVES.items():
            keys.add(key, eager=True)(lambda event, by=by: self._move_to(self._at + by))
        keys.add("tab", eager=True)(lambda event: self._toggle())
        return keys

    # Choosing

    def _move_to(self, at: int) -> None:
        self._at = max(0, min(at, len(self._found) - 1))
        self._preview_soon()

    def _toggle(self) -> None:
        if self._menu.switch:
            chosen = self._found[self._at].value if self._found else None
            self._is_on = not self._is_on
            self._list()
            self.on_edit()
            self._move_to(next((at for at, each in enumerate(self._found) if each.value == chosen), 0))

    def _list(self) -> None:
        self._found = self._items = tuple(self._menu.listed(self._is_on))
        self._words = tuple(f"{each.label} {each.facts}".casefold() for each in self._items)

    def _preview_soon(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
        if self._menu.preview is not None and self._found:
            self._loading = asyncio.ensure_future(self._load_preview(self._found[self._at]))
        get_app().invalidate()

    async def _load_preview(self, item: Item[T]) -> None:
        key = (item.value, self._is_on)
        if key not in self._previews and self._menu.preview is not None:
            await asyncio.sleep(REST_S)
            self._previews[key] = await asyncio.to_thread(self._menu.preview, item.value, self._is_on)
            get_app().invalidate()

    # Drawing

    def title(self) -> Text:
        return Text(self._menu.title)

    def rows(self, columns: int, room: int) -> list[StyleAndTextTuples]:
        is_roomy = room >= LEAST_ROWS
        titled: list[StyleAndTextTuples] = (
            [[("bold", _cut(self._menu.title, columns))]] if is_roomy and not self.is_framed else []
        )
        around = len(titled) + is_roomy
        listed = min(len(self._found) or 1, LIST_ROWS, room - around)
        if not self._found:
            words = "  No match." if self._menu.written is None else "  Enter uses the typed text."
            return [*titled, [("class:dim", _cut(words, columns))]]
        first = max(0, min(self._at - listed // 2, len(self._found) - listed))
        rows = [*titled, *(self._row(at, columns) for at in range(first, first + listed))]
        if self._menu.preview is not None:
            preview = self._previews.get((self._found[self._at].value, self._is_on), ())
            more = max(min(PREVIEW_ROWS, room - listed - around), 0)
            rows += [[("class:dim", _cut(f"    {clean_line(line)}", columns))] for line in preview[:more]]
        return rows

    def below(self, columns: int, room: int) -> list[StyleAndTextTuples]:
        if room < LEAST_ROWS:
            return []
        place = f"{self._at + 1} of {len(self._found)}" if self._found else "0 of 0"
        hints = [("Enter", "select")] if self._found else []
        text = Text.assemble((place, "dim"), (" · " if hints else "", "dim")).append_text(key_hints(*hints))
        if text.cell_len > columns:
            return as_rows([key_hints(*hints)], columns)[:1]
        switch = [("Tab", f"{'[x]' if self._is_on else '[ ]'} {self._menu.switch}")] if self._menu.switch else []
        return as_rows([add_hints(text, (("Esc", "cancel"), *switch, ("type", "to filter")), columns)], columns)[:1]

    def _row(self, at: int, columns: int) -> StyleAndTextTuples:
        item, is_chosen = self._found[at], at == self._at
        facts = f"  {clean_line(item.facts)}" if item.facts else ""
        if cell_len(facts) > columns // 2:
            facts = ""
        number = f"{self._items.index(item) + 1:>2}  " if self._menu.is_numbered else ""
        label = _cut(f"{number}{clean_line(item.label) or '-'}", columns - 2 - cell_len(facts))
        if not is_chosen:
            return [("", f"  {label}"), ("class:dim", facts)]
        return [("class:selection bold", f"› {label}"), ("class:selection class:dim", facts)]


def _cut(text: str, columns: int) -> str:
    columns = max(columns, 1)
    return text if cell_len(text) <= columns else f"{set_cell_size(text, columns - 1).rstrip()}…"
