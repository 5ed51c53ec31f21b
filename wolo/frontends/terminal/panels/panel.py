"""A panel takes the place of the input until it is answered: a border with a title, content that scrolls, key hints.

Nothing is cut: what does not fit is scrolled, also in a window of five rows. Small windows have no border.
"""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
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
    VSplit,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput, Processor
from rich.text import Text

from wolo.frontends.terminal.display.line_prompt import Dismissed, Interrupted
from wolo.frontends.terminal.io.input_parser import is_within_paste
from wolo.frontends.terminal.io.terminal_signals import suspend
from wolo.frontends.terminal.panels.key_guard import PASTE_S, KeyGuard
from wolo.frontends.terminal.panels.region_styles import Row, as_rows, row_width

T = TypeVar("T")

FIELD_ROWS = 3
FACTS_FROM_ROWS = 10
"""A lower window shows the panel and nothing else."""
FRAME_FROM_ROWS, FRAME_FROM_COLUMNS = 14, 40
GAP_FROM_ROWS = 20
"""In a lower window no empty row is above the border."""
FRAME_COLUMNS = 4
"""Cells that the sides of a border take."""
NARROW_COLUMNS = 60

_ANYWHERE = (sys.maxsize, 0)

_KEY_NAMES = {
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
"""Keys that move and answer nothing."""


class Panel(ABC, Generic[T]):
    """`answer` holds the result. Ctrl-C dismisses every panel at once; each kind of panel decides what Esc does."""

    processors: tuple[Processor, ...] = ()
    """Change how typed text is displayed."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.field = Buffer(on_text_changed=lambda _: self.edited())
        self._label = ""
        """Before the field; empty while no text is typed."""
        self._top = 0
        """Rows scrolled out at the top."""
        self._page = 1
        """Rows of content that are visible."""
        self._most = 0
        """The last row one can scroll to."""
        self._wrapped: tuple[int, Sequence[Row]] = (0, ())
        self._showing: int | None = None
        """Line of the content that has to be visible."""
        self._in_view = _ANYWHERE
        """Its rows."""
        self._key_guard = KeyGuard(self.on_keys, _paint)
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
        framed = Condition(lambda: self.is_framed)
        sides = [ConditionalContainer(_border(side), framed) for side in ("│ ", " │")]
        written = ConditionalContainer(VSplit([sides[0], self._line, sides[1]]), Condition(lambda: bool(self._label)))
        bottom = ConditionalContainer(Window(FormattedTextControl(self._bottom), height=1), framed)
        self.container: AnyContainer = HSplit([self._body, written, bottom], modal=True)

    # For the kinds of panels

    def title(self) -> Text | None:
        """In the border; without one there is no border. None: no title."""
        return None

    @abstractmethod
    def content(self) -> list[Text]:
        """The part that scrolls."""

    @abstractmethod
    def choices(self, columns: int) -> list[Text]:
        """The part below it that does not: choices and key hints."""

    @abstractmethod
    def press(self, key: str) -> None:
        """Handles one key while no text is typed: a character, or one of the names above."""

    def escape(self) -> None:
        self.dismiss()

    def submit(self, written: str) -> None:
        """Handles Enter in the field."""

    def edited(self) -> None:
        """Called after each change of the field."""

    def on_keys(self, keys: list[str]) -> None:
        """Handles keys pressed together: moves, then one key that answers, perhaps with Enter. Anything else was pasted."""
        moves = next((at for at, key in enumerate(keys) if key not in MOVES), len(keys))
        if len(rest := keys[moves:]) < 2 or (len(rest) == 2 and rest[0] != "enter" and rest[1] == "enter"):
            self.press_all(keys)

    def end(self) -> None:
        """Handles Ctrl-D in an empty field."""
        self.leave_field()

    # Its life

    def open(self) -> None:
        """Called when the panel becomes visible; keys count after the time it takes to read it."""
        get_app().vi_state.reset()
        get_app().layout.focus(self._line if self.is_writing else self._body)
        self._key_guard.begin()

    @property
    def ignores_keys(self) -> bool:
        """Keys do not count yet."""
        return self._key_guard.ignores_keys

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
        """Opens the field for text, until `leave_field`."""
        self._label = label
        self.field.set_document(Document(draft), bypass_readonly=True)
        get_app().vi_state.reset()
        get_app().layout.focus(self._line)

    def leave_field(self) -> None:
        self._label = ""
        get_app().layout.focus(self._body)

    def scroll(self, key: str) -> bool:
        """False where nothing scrolls."""
        by = {"up": -1, "down": 1, "page-up": -self._page, "page-down": self._page, "home": -self._most, "end": self._most}
        if not self._most or key not in by:
            return False
        self._top = max(0, min(self._top + by[key], self._most))
        self._showing, self._in_view = None, _ANYWHERE
        return True

    def changed(self, *, showing: int | None = None) -> None:
        """Draws new content; `showing` is the line that has to be visible."""
        self._wrapped, self._showing, self._in_view = (0, ()), showing, _ANYWHERE
        _paint()

    def close(self) -> None:
        self._key_guard.close()

    # Drawing

    @property
    def is_framed(self) -> bool:
        size = get_app().output.get_size()
        return self.title() is not None and size.rows >= FRAME_FROM_ROWS and size.columns >= FRAME_FROM_COLUMNS

    def _painted(self) -> StyleAndTextTuples:
        size = get_app().output.get_size()
        is_framed = self.is_framed
        columns = size.columns - FRAME_COLUMNS * is_framed
        has_gap = is_framed and size.rows >= GAP_FROM_ROWS
        room = size.rows - (size.rows >= FACTS_FROM_ROWS) - self._field_rows(columns) - 2 * is_framed - has_gap
        rows: Iterable[Row] = self.rows(columns, max(room, 1))
        if is_framed:
            gap: list[Row] = [[("", "")]] if has_gap else []
            rows = [*gap, self._top_border(size.columns), *(_between_sides(row, columns) for row in rows)]
        return [piece for at, row in enumerate(rows) for piece in ([("", "\n"), *row] if at else row)]

    def rows(self, columns: int, room: int) -> list[Row]:
        """Returns the visible page of the content, and the choices."""
        if self._wrapped[0] != columns:
            self._wrap(columns)
        rows = self._wrapped[1]
        below = as_rows(self.choices(columns), columns)[: max(room - 1, 0)]
        if self.ignores_keys:
            below = [[("", " ")] for _ in below]  # keys do not count yet, so none is offered
        self._page = max(room - len(below), 1)
        if len(rows) > self._page:
            self._page = max(self._page - 1, 1)
        self._most = max(len(rows) - self._page, 0)
        first, end = self._in_view
        self._top = min(max(self._top, end - self._page), first, self._most)
        return [*rows[self._top : self._top + self._page], *self._position(len(rows)), *below]

    def _wrap(self, columns: int) -> None:
        lines = self.content()
        if (title := self.title()) is not None and not self.is_framed:
            lines = [Text.assemble(("? ", "bold accent"), title), *lines]
        self._wrapped = (columns, as_rows(lines, columns))
        if self._showing is not None:
            at = self._showing + (title is not None and not self.is_framed)
            first = len(as_rows(lines[:at], columns))
            self._in_view = first, first + len(as_rows(lines[at : at + 1], columns))

    def _position(self, total: int) -> list[Row]:
        if not self._most:
            return []
        words = f"lines {self._top + 1}-{self._top + self._page} of {total}"
        is_wide = get_app().output.get_size().columns >= NARROW_COLUMNS
        return [[("class:dim", f"{words} · ↑↓ PgUp PgDn scroll" if is_wide else words)]]

    def _top_border(self, columns: int) -> Row:
        title = as_rows([self.title() or Text()], columns - 6)[0]
        rest = "─" * max(columns - 5 - row_width(title), 0)
        return [
            ("class:border", "╭─ "),
            *((f"{style} bold class:accent", text) for style, text, *_ in title),
            ("class:border", f" {rest}╮"),
        ]

    def _bottom(self) -> StyleAndTextTuples:
        return [("class:border", f"╰{'─' * max(get_app().output.get_size().columns - 2, 0)}╯")]

    def _field_rows(self, columns: int) -> int:
        if not self.is_writing:
            return 0
        return min(len(as_rows([Text(f"{self._label}{self.field.text} ")], columns)), FIELD_ROWS)

    # Its keys

    def _choosing_keys(self) -> KeyBindings:
        keys = KeyBindings()
        for key, name in _KEY_NAMES.items():
            keys.add(key, eager=True)(lambda event, name=name: self._key_guard.press(name))

        @keys.add(Keys.Any)  # not eager: it matches Esc, too
        def press(event: KeyPressEvent) -> None:
            self._key_guard.press(event.data)

        @keys.add(Keys.BracketedPaste, eager=True)
        def pasted(event: KeyPressEvent) -> None:
            was_ignoring = self.ignores_keys
            self._key_guard.ignore_for(PASTE_S)
            if not was_ignoring:
                self.pasted(event.data)

        keys.add("c-z", eager=True)(lambda event: self._step_aside())

        @keys.add("escape")
        def escape(event: KeyPressEvent) -> None:
            self.escape()

        keys.add("c-c", eager=True)(lambda event: self.dismiss(Interrupted))
        return keys

    def _step_aside(self) -> None:
        """Suspends wolo; keys typed to resume it answer nothing."""

        def away() -> None:
            suspend()
            self._key_guard.begin()

        run_in_terminal(away)

    def pasted(self, text: str) -> None:
        """Handles a paste; by default it answers nothing."""

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

        ignores_keys = Condition(lambda: self.ignores_keys)

        @keys.add(Keys.Any, filter=ignores_keys)
        @keys.add("enter", filter=ignores_keys, eager=True)
        @keys.add(Keys.BracketedPaste, filter=ignores_keys, eager=True)
        def drop(event: KeyPressEvent) -> None:
            self._key_guard.press("")

        keys.add("c-c", eager=True)(lambda event: self.dismiss(Interrupted))
        return keys


def key_hints(*hints: tuple[str, str]) -> Text:
    """`Enter select · Esc cancel`: the one style of key hints."""
    text = Text()
    for at, (key, action) in enumerate(hints):
        text.append(" · " if at else "", "dim").append(key).append(f" {action}", "dim")
    return text


def one_row(cells: Sequence[tuple[str, str]], columns: int, between: str = "   ") -> list[Text]:
    """Puts cells side by side, in as many rows as they need; none is broken."""
    rows = [Text()]
    for text, style in cells:
        cell = Text(text, style)
        if rows[-1].cell_len and rows[-1].cell_len + len(between) + cell.cell_len > columns:
            rows.append(Text())
        if rows[-1].cell_len:
            rows[-1].append(between)
        rows[-1].append_text(cell)
    return rows


def _border(characters: str) -> Window:
    """Returns one side of the border of the input field, which may have several rows."""
    return Window(
        FormattedTextControl([("class:border", "\n".join([characters] * FIELD_ROWS))]),
        width=len(characters),
        height=Dimension(min=1, max=FIELD_ROWS, preferred=1),
    )


def _between_sides(row: Row, columns: int) -> Row:
    padding = " " * max(columns - row_width(row), 0)
    return [("class:border", "│ "), *row, ("", padding), ("class:border", " │")]


def _paint() -> None:
    get_app().invalidate()


Complaint = Callable[[str], str]
"""Returns the error of a rule that was typed; empty when it is valid."""
