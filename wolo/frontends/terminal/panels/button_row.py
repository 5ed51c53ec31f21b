"""Choices side by side, each with its key; Enter chooses the selected one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from prompt_toolkit.application.current import get_app
from rich.text import Text

from wolo.frontends.terminal.panels.panel import FRAME_FROM_ROWS, NARROW_COLUMNS, Panel, key_hints, one_row

_STEPS = {"left": -1, "up": -1, "back-tab": -1, "right": 1, "down": 1, "tab": 1}


class Choice(NamedTuple):
    key: str
    label: str


NUMBERED = 4
"""How many of the first choices can be chosen by number, too."""


class ChoiceRow:
    """`selected` is the default choice; without it the first one."""

    def __init__(self, choices: Sequence[Choice], selected: Choice | None = None) -> None:
        self.choices = tuple(choices)
        self.selected = selected or self.choices[0]

    def find(self, key: str) -> Choice | None:
        """Finds a choice by its letter or its number."""
        if key.isdecimal() and 1 <= int(key) <= len(self.choices[:NUMBERED]):
            return self.choices[int(key) - 1]
        return next((each for each in self.choices if each.key == key.lower()), None)

    def select(self, key: str) -> None:
        """Selects a choice by its key, or moves by an arrow."""
        at = self.choices.index(self.selected)
        found = self.find(key)
        self.selected = found or self.choices[(at + _STEPS.get(key, 0)) % len(self.choices)]

    def laid_out(self, columns: int) -> list[Text]:
        """In a narrow window: the keys, and the label of the selected choice."""
        if columns >= NARROW_COLUMNS:
            return one_row([self._cell(each, f"{each.key} {each.label} ") for each in self.choices], columns, between=" ")
        keys = one_row([self._cell(each, each.key) for each in self.choices], columns, between="")
        return [*keys, Text(self.selected.label[:columns], "bold")]

    def _cell(self, choice: Choice, shown: str) -> tuple[str, str]:
        return (f"›{shown}", "selection") if choice == self.selected else (f" {shown}", "")


class ChoicePanel(Panel[str]):
    """Answers with the key of the choice; Esc and Ctrl-D choose the first one. The first line is the title."""

    def __init__(self, lines: Sequence[Text], choices: Sequence[Choice]) -> None:
        self._title, *self._lines = lines
        self._row = ChoiceRow(choices)
        super().__init__()

    def title(self) -> Text:
        return without_mark(self._title)

    def content(self) -> list[Text]:
        return [without_mark(line) for line in self._lines]

    def choices(self, columns: int) -> list[Text]:
        return with_hints(self._row.laid_out(columns), ("Enter", "select"), ("Esc", "cancel"), columns=columns)

    def press(self, key: str) -> None:
        if key == "enter":
            self.settle(self._row.selected.key)
        elif key == "end-of-input":
            self.escape()
        elif found := self._row.find(key):
            self.settle(found.key)
        elif key in ("left", "right", "tab", "back-tab") or not self.scroll(key):
            self._row.select(key)

    def escape(self) -> None:
        self.settle(self._row.choices[0].key)


def without_mark(line: Text) -> Text:
    """A line as it is inside a border: without the `? ` or the blanks that begin it elsewhere."""
    if line.plain[:2] not in ("? ", "! ", "  "):
        return line
    rest = line[2:]
    rest.no_wrap = line.no_wrap
    return rest


def with_hints(choices: Sequence[Text], *hints: tuple[str, str], columns: int) -> list[Text]:
    """Choices with key hints and room around them, where there is room."""
    if columns < NARROW_COLUMNS or get_app().output.get_size().rows < FRAME_FROM_ROWS:
        return list(choices)
    return [Text(), *choices, Text(), key_hints(*hints)]
