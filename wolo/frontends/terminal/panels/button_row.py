"""A few answers side by side, each with its key: one of them is selected, and Enter takes that one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from wolo.frontends.terminal.panels.panel import NARROW_COLUMNS, Panel, one_row

_STEPS = {"left": -1, "up": -1, "back-tab": -1, "right": 1, "down": 1, "tab": 1}


class Choice(NamedTuple):
    key: str
    label: str


NUMBERED = 4
"""The first choices that have a number, too."""


class ChoiceRow:
    """`selected` is what saying nothing means; by default the first one."""

    def __init__(self, choices: Sequence[Choice], selected: Choice | None = None) -> None:
        self.choices = tuple(choices)
        self.selected = selected or self.choices[0]

    def find(self, key: str) -> Choice | None:
        """By its letter or its number."""
        if key.isdecimal() and 1 <= int(key) <= len(self.choices[:NUMBERED]):
            return self.choices[int(key) - 1]
        return next((each for each in self.choices if each.key == key.lower()), None)

    def select(self, key: str) -> None:
        """The one selected, or the one an arrow leads to."""
        at = self.choices.index(self.selected)
        found = self.find(key)
        self.selected = found or self.choices[(at + _STEPS.get(key, 0)) % len(self.choices)]

    def laid_out(self, columns: int) -> list[Text]:
        """In a narrow window the keys alone, and what the selected one means."""
        if columns >= NARROW_COLUMNS:
            numbers = [f" ({number})" for number in range(1, NUMBERED + 1)] + [""] * len(self.choices)
            labels = [f"{each.key} {each.label}{number}" for each, number in zip(self.choices, numbers, strict=False)]
            return one_row([self._cell(each, label) for each, label in zip(self.choices, labels, strict=True)], columns)
        keys = one_row([self._cell(each, each.key) for each in self.choices], columns, between="")
        return [*keys, Text(self.selected.label[:columns], "bold")]

    def _cell(self, choice: Choice, shown: str) -> tuple[str, str]:
        return (f"›{shown}", "bold reverse") if choice == self.selected else (f" {shown}", "")


class ChoicePanel(Panel[str]):
    """The key of what was chosen; Esc and Ctrl-D are the first one."""

    def __init__(self, lines: Sequence[Text], choices: Sequence[Choice]) -> None:
        self._lines, self._row = lines, ChoiceRow(choices)
        super().__init__()

    def content(self) -> list[Text]:
        return list(self._lines)

    def choices(self, columns: int) -> list[Text]:
        return self._row.laid_out(columns)

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
