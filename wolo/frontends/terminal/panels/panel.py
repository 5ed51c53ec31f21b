"""A panel: what is asked, page by page, and what one can answer. It stands where one writes otherwise, until it is answered.

All of it is there to be read, also in a window of five lines: what does not fit is scrolled through, never cut.
"""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    AnyContainer,
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput, Processor
from rich.text import Text

from wolo.frontends.terminal.display.line_prompt import Dismissed, Interrupted
from wolo.frontends.terminal.io.input_parser import is_within_paste
from wolo.frontends.terminal.io.signals import suspend
from wolo.frontends.terminal.panels.key_guard import PASTE_S, Attention
from wolo.frontends.terminal.panels.text_rows import Row, as_rows

T = TypeVar("T")

FIELD_ROWS = 3
FACTS_FROM_ROWS = 10
"""A lower window shows the panel and nothing else."""
NARROW_COLUMNS = 60

_ANYWHERE = (sys.maxsize, 0)

_NAMED = {
    "left": "left",
    "right": "right",
    "up": "up",
    "down": "down",
    "pageup": "page-up",
    "pagedown": "page-down",
    "home": "home",
    "end": "end",
    "tab": "tab",
    "s-tab": "back-tab",
    "enter": "enter",
    "c-d": "end-of-input",
}
MOVES = frozenset({"left", "right", "up", "down", "page-up", "page-down", "home", "end", "tab", "back-tab"})
"""Keys that answer nothing."""


class Panel(ABC, Generic[T]):
    """The kinds of panels say what is shown and what the keys do; `answer` holds what came of it.

    Ctrl-C dismisses every panel, at once; what Esc does is theirs.
    """

    processors: tuple[Processor, ...] = ()
    """How what is written is shown, where that is not as it is."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.field = Buffer(on_text_changed=lambda _: self.edited())
        self._label = ""
        """Stands before the field; empty while there is nothing to write."""
        self._top = 0
        """How many rows have been scrolled over."""
        self._page = 1
        self._most = 0
        """The page that is shown, and how far one can scroll."""
        self._wrapped: tuple[int, Sequence[Row]] = (0, ())
        self._showing: int | None = None
        """The line of the content that has to be in view."""
        self._in_view = _ANYWHERE
        """Its rows."""
        self._attention = Attention(self.heard, _paint)
        self._body = Window(
            FormattedTextControl(self._painted, focusable=True, show_cursor=False, key_bindings=self._choosing_keys()),
            dont_extend_height=True,
        )
        self._line = Window(
            BufferControl(
                self.field,
                [*self.processors, BeforeInput(lambda: [("class:asking", self._label)])],
                key_bindings=self._writing_keys(),
            ),
            wrap_lines=True,
            height=Dimension(min=1, max=FIELD_ROWS),
            dont_extend_height=True,
        )
        written = ConditionalContainer(self._line, Condition(lambda: bool(self._label)))
        self.container: AnyContainer = HSplit([self._body, written], modal=True)

    # What the kinds of panels say

    @abstractmethod
    def content(self) -> list[Text]:
        """What can be scrolled."""

    @abstractmethod
    def choices(self, columns: int) -> list[Text]:
        """What stays below it."""

    @abstractmethod
    def press(self, key: str) -> None:
        """One key while nothing is written: a character, or one of the names above."""

    def escape(self) -> None:
        self.dismiss()

    def submit(self, written: str) -> None:
        """Enter, in the field."""

    def edited(self) -> None:
        """What stands in the field is another."""

    def heard(self, keys: list[str]) -> None:
        """Keys pressed together: moves, and one key that answers, perhaps with Enter behind it. Anything else was pasted."""
        moves = next((at for at, key in enumerate(keys) if key not in MOVES), len(keys))
        if len(rest := keys[moves:]) < 2 or (len(rest) == 2 and rest[0] != "enter" and rest[1] == "enter"):
            self.press_all(keys)

    def end(self) -> None:
        """Ctrl-D in an empty field."""
        self.leave_field()

    # What they can do

    def open(self) -> None:
        """It stands now; keys count once it could be read."""
        get_app().vi_state.reset()
        get_app().layout.focus(self._line if self.is_writing else self._body)
        self._attention.begin()

    @property
    def is_deaf(self) -> bool:
        """Keys do not count yet."""
        return self._attention.is_deaf

    @property
    def is_writing(self) -> bool:
        return bool(self._label)

    def press_all(self, keys: Sequence[str]) -> None:
        for key in keys:
            if not self.answer.done() and not self.is_writing:
                self.press(key)
        _paint()

    def settle(self, answer: T) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def dismiss(self, how: type[Exception] = Dismissed) -> None:
        if not self.answer.done():
            self.answer.set_exception(how())

    def write(self, label: str, draft: str = "") -> None:
        """From now on keys are written into the field, until `leave_field`."""
        self._label = label
        self.field.set_document(Document(draft), bypass_readonly=True)
        get_app().vi_state.reset()
        get_app().layout.focus(self._line)

    def leave_field(self) -> None:
        self._label = ""
        get_app().layout.focus(self._body)

    def scroll(self, key: str) -> bool:
        """False when there is nothing to scroll."""
        by = {"up": -1, "down": 1, "page-up": -self._page, "page-down": self._page, "home": -self._most, "end": self._most}
        if not self._most or key not in by:
            return False
        self._top = max(0, min(self._top + by[key], self._most))
        self._showing, self._in_view = None, _ANYWHERE
        return True

    def changed(self, *, showing: int | None = None) -> None:
        """The content is another; one line of it has to be in view."""
        self._wrapped, self._showing, self._in_view = (0, ()), showing, _ANYWHERE
        _paint()

    def close(self) -> None:
        self._attention.close()

    # How it looks

    def _painted(self) -> StyleAndTextTuples:
        size = get_app().output.get_size()
        if self._wrapped[0] != size.columns:
            self._wrap(size.columns)
        rows = self._wrapped[1]
        below = as_rows(self.choices(size.columns), size.columns)
        room = size.rows - (size.rows >= FACTS_FROM_ROWS) - self._field_rows(size.columns)
        below = below[: max(room - 1, 0)]
        if self.is_deaf:
            below = [[("", " ")] for _ in below]  # what can be pressed is told once it counts
        self._page = max(room - len(below), 1)
        if len(rows) > self._page:
            self._page = max(self._page - 1, 1)
        self._most = max(len(rows) - self._page, 0)
        first, end = self._in_view
        self._top = min(max(self._top, end - self._page), first, self._most)
        shown = [*rows[self._top : self._top + self._page], *self._place(len(rows)), *below]
        return [piece for at, row in enumerate(shown) for piece in ([("", "\n"), *row] if at else row)]

    def _wrap(self, columns: int) -> None:
        lines = self.content()
        self._wrapped = (columns, as_rows(lines, columns))
        if self._showing is not None:
            first = len(as_rows(lines[: self._showing], columns))
            self._in_view = first, first + len(as_rows(lines[self._showing : self._showing + 1], columns))

    def _place(self, total: int) -> list[Row]:
        if not self._most:
            return []
        words = f" {self._top + 1}-{self._top + self._page} of {total} lines"
        return [[("class:dim", f"{words} · PgUp PgDn ↑↓" if get_app().output.get_size().columns >= NARROW_COLUMNS else words)]]

    def _field_rows(self, columns: int) -> int:
        if not self.is_writing:
            return 0
        return min(len(as_rows([Text(f"{self._label}{self.field.text} ")], columns)), FIELD_ROWS)

    # Its keys

    def _choosing_keys(self) -> KeyBindings:
        keys = KeyBindings()
        for key, name in _NAMED.items():
            keys.add(key, eager=True)(lambda event, name=name: self._attention.press(name))

        @keys.add(Keys.Any)  # not eager: it stands for Esc, too
        def press(event: KeyPressEvent) -> None:
            self._attention.press(event.data)

        @keys.add(Keys.BracketedPaste, eager=True)
        def pasted(event: KeyPressEvent) -> None:
            was_deaf = self.is_deaf
            self._attention.turn_away(PASTE_S)
            if not was_deaf:
                self.pasted(event.data)

        keys.add("c-z", eager=True)(lambda event: self._step_aside())

        @keys.add("escape")
        def escape(event: KeyPressEvent) -> None:
            self.escape()

        keys.add("c-c", eager=True)(lambda event: self.dismiss(Interrupted))
        return keys

    def _step_aside(self) -> None:
        """What is typed to come back is no answer."""

        def away() -> None:
            suspend()
            self._attention.begin()

        run_in_terminal(away)

    def pasted(self, text: str) -> None:
        """A paste answers nothing."""

    def _writing_keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter", eager=True)
        def submit(event: KeyPressEvent) -> None:
            if is_within_paste(event.app):
                self.field.insert_text("\n")
            else:
                self.submit(self.field.text)

        keys.add("c-z", eager=True)(lambda event: self._step_aside())
        keys.add("escape")(lambda event: self.leave_field())
        keys.add("c-d", filter=Condition(lambda: not self.field.text), eager=True)(lambda event: self.end())

        deaf = Condition(lambda: self.is_deaf)

        @keys.add(Keys.Any, filter=deaf)
        @keys.add("enter", filter=deaf, eager=True)
        @keys.add(Keys.BracketedPaste, filter=deaf, eager=True)
        def drop(event: KeyPressEvent) -> None:
            """It was meant for something else."""
            self._attention.press("")

        keys.add("c-c", eager=True)(lambda event: self.dismiss(Interrupted))
        return keys


def one_row(cells: Sequence[tuple[str, str]], columns: int, between: str = "   ") -> list[Text]:
    """Cells side by side, as many rows as they need; none is broken."""
    rows = [Text()]
    for text, style in cells:
        cell = Text(text, style)
        if rows[-1].cell_len and rows[-1].cell_len + len(between) + cell.cell_len > columns:
            rows.append(Text())
        if rows[-1].cell_len:
            rows[-1].append(between)
        rows[-1].append_text(cell)
    return rows


def _paint() -> None:
    get_app().invalidate()


Complaint = Callable[[str], str]
"""What is wrong with what was written; empty when nothing is."""
