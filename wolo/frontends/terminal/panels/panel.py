"""A panel takes the place of the input until it is answered: a border with a title, content that scrolls, key hints.

Nothing is cut: what does not fit is scrolled, also in a window of five rows. Small windows have no border.
The last key hints stand in the border below.
The border is on the left alone: when a window becomes narrower, tmux rewraps full rows and pushes as many into its history.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from prompt_toolkit import layout
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout.processors import BeforeInput, Processor
from rich.text import Text

from wolo.frontends.terminal.display.line_prompt import Dismissed, LineInterrupted
from wolo.frontends.terminal.display.terminal import suspend
from wolo.frontends.terminal.io.input_parser import is_within_paste
from wolo.frontends.terminal.io.prompt_toolkit_adapter import Stack
from wolo.frontends.terminal.panels.key_guard import PASTE_S, KeyGuard
from wolo.frontends.terminal.panels.region_styles import Row, as_fragments, as_rows

T = TypeVar("T")

FIELD_ROWS = 3
FACTS_FROM_ROWS = 10
"""A lower window shows the panel and nothing else."""
FRAME_FROM_ROWS, FRAME_FROM_COLUMNS = 14, 40
GAP_FROM_ROWS = 20
"""In a lower window no empty row is above the border."""
FOLDED_ROWS = 2
"""Rows of folded text that are visible."""
MOST_ROWS = 9
"""Of a panel whose text is folded."""
SIDE, BOTTOM = "│ ", "╰ "
"""The border on the left, and before its last row."""
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


class Fold(NamedTuple):
    """Lines from `start` to `end`, of which the rows from the line `first` on are visible while they are folded."""

    start: int
    end: int
    first: int
    to_end: bool
    """Unfolding shows the end of the text, not its beginning."""


class Panel(Generic[T]):
    """`answer` holds the result. Ctrl-C dismisses every panel at once; each kind of panel decides what Esc does."""

    processors: tuple[Processor, ...] = ()
    """Change how typed text is displayed."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.field = Buffer(on_text_changed=lambda _: self.on_edit())
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
        self._quoted = self._seen = 0
        """Last row of the text that the panel is about, the last row that was visible."""
        self._fold: Fold | None = None
        """In rows."""
        self._is_folded, self._is_open = False, False
        """Text is folded now; it was unfolded once."""
        self._was_unfolded = False
        self._key_guard = KeyGuard(self.on_keys, self.on_ready)
        self._body = layout.Window(
            layout.FormattedTextControl(self._paint, focusable=True, show_cursor=False, key_bindings=self._choosing_keys()),
            dont_extend_height=True,
        )
        self._line = layout.Window(
            layout.BufferControl(
                self.field,
                [*self.processors, BeforeInput(lambda: [("class:asking", self._label)])],
                key_bindings=self._writing_keys(),
            ),
            wrap_lines=True,
            height=layout.Dimension(min=1, max=FIELD_ROWS),
            dont_extend_height=True,
        )
        framed = Condition(lambda: self.is_framed)
        side = layout.ConditionalContainer(_side(), framed)
        written = layout.ConditionalContainer(layout.VSplit([side, self._line]), Condition(lambda: bool(self._label)))
        hints = layout.Window(layout.FormattedTextControl(self._hints), dont_extend_height=True)
        hinted = layout.ConditionalContainer(hints, Condition(lambda: self.is_writing and bool(self._hints())))
        has_no_hints = Condition(lambda: self.is_framed and not self.below(*self._room()))
        bottom = layout.ConditionalContainer(
            layout.Window(layout.FormattedTextControl([("class:border", BOTTOM)]), height=1), has_no_hints
        )
        self.container: layout.AnyContainer = Stack([self._body, written, hinted, bottom], modal=True)

    # For the kinds of panels

    def title(self) -> Text | None:
        """In the border; without one there is no border. None: no title."""
        return None

    def content(self) -> list[Text]:
        """The part that scrolls."""
        return []

    def choices(self, columns: int) -> list[Text]:
        """The part below it and below the field that does not: choices and key hints."""
        return []

    def fold(self) -> Fold | None:
        """Lines of the content that are folded within a border until they are scrolled, or until `unfold`. None: none are."""
        return None

    def handle_key(self, key: str) -> None:
        """Handles one key while no text is typed: a character, or one of the names above."""

    def escape(self) -> None:
        self.dismiss()

    def submit(self, written: str) -> None:
        """Handles Enter in the field."""

    def on_edit(self) -> None:
        """Called after each change of the field."""

    def on_keys(self, keys: list[str]) -> None:
        """Handles keys pressed together: moves, then one key that answers, perhaps with Enter. Anything else was pasted."""
        moves = next((at for at, key in enumerate(keys) if key not in MOVES), len(keys))
        if len(rest := keys[moves:]) < 2 or (len(rest) == 2 and rest[0] != "enter" and rest[1] == "enter"):
            self.handle_keys(keys)

    def on_ready(self) -> None:
        get_app().invalidate()

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
        return self._key_guard.ignores_keys

    @property
    def is_writing(self) -> bool:
        return bool(self._label)

    def handle_keys(self, keys: Sequence[str]) -> None:
        for key in keys:
            if not self.answer.done() and not self.is_writing:
                self.handle_key(key)
        get_app().invalidate()

    def resolve(self, answer: T) -> None:
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
        if self._is_folded and key in by:
            self._is_open = True
        elif not self._most or key not in by:
            return False
        self._top = max(0, min(self._top + by[key], self._most)) if not self._is_folded else (key == "end") * sys.maxsize
        self._showing, self._in_view = None, _ANYWHERE
        return True

    def unfold(self) -> bool:
        """Unfolds the text that the panel is about, to its end. False: all of it was visible, or this was done before."""
        if self._was_unfolded or self._seen >= self._quoted:
            return False
        self._was_unfolded = self._is_open = True
        if not self._is_folded or self._fold is None or self._fold.to_end:
            # a page is lower where there is more to scroll
            self._top = max(self._top, self._quoted - self._page + self._is_folded)
        self._showing, self._in_view = None, _ANYWHERE
        return True

    def redraw(self, *, showing: int | None = None) -> None:
        """Draws new content; `showing` is the line that has to be visible."""
        self._wrapped, self._showing, self._in_view = (0, ()), showing, _ANYWHERE
        get_app().invalidate()

    def close(self) -> None:
        self._key_guard.close()

    # Drawing

    @property
    def has_room_for_frame(self) -> bool:
        size = get_app().output.get_size()
        return size.rows >= FRAME_FROM_ROWS and size.columns >= FRAME_FROM_COLUMNS

    @property
    def is_framed(self) -> bool:
        return self.title() is not None and self.has_room_for_frame

    def _paint(self) -> StyleAndTextTuples:
        columns, room = self._room()
        rows = self._with_side(self.rows(columns, room))
        if not self.is_writing:
            rows += self._with_bottom(self.below(columns, room))
        if self.is_framed:
            gap: list[Row] = [[("", "")]] if self._has_gap else []
            first, *others = self._title_rows()
            rows = [*gap, [("class:border", "╭─ "), *first], *self._with_side([[("", " "), *row] for row in others]), *rows]
        return as_fragments(rows)

    def _hints(self) -> StyleAndTextTuples:
        return as_fragments(self._with_bottom(self.below(*self._room())))

    @property
    def _has_gap(self) -> bool:
        return self.is_framed and get_app().output.get_size().rows >= GAP_FROM_ROWS

    def _title_rows(self) -> list[Row]:
        """Parts of the title that have a colour of their own keep it."""
        rows = as_rows([self.title() or Text()], get_app().output.get_size().columns - 4)
        return [[(style if "class:" in style else f"{style} bold class:accent", text) for style, text, *_ in row] for row in rows]

    def _room(self) -> tuple[int, int]:
        """Columns and rows within the border, without those of the field."""
        size, is_framed = get_app().output.get_size(), self.is_framed
        columns = size.columns - len(SIDE) * is_framed
        around = (size.rows >= FACTS_FROM_ROWS) + (len(self._title_rows()) if is_framed else 0) + self._has_gap
        if self.is_writing:
            around += min(len(as_rows([Text(f"{self._label}{self.field.text} ")], columns)), FIELD_ROWS)
        return columns, max(size.rows - around, 1)

    def _with_side(self, rows: list[Row]) -> list[Row]:
        return [[("class:border", SIDE), *row] for row in rows] if self.is_framed else rows

    def _with_bottom(self, rows: list[Row]) -> list[Row]:
        if not self.is_framed or not rows:
            return rows
        return [*self._with_side(rows[:-1]), [("class:border", BOTTOM), *rows[-1]]]

    def below(self, columns: int, room: int) -> list[Row]:
        rows = as_rows(self.choices(columns), columns)[: max(room - 1, 0)]
        return [[("", " ")] for _ in rows] if self.ignores_keys else rows  # keys do not count yet, so none is offered

    def rows(self, columns: int, room: int) -> list[Row]:
        """The part of the content that is visible, and below it which lines that are, where it scrolls."""
        if self._wrapped[0] != columns:
            self._wrap(columns)
        rows, below = list(self._wrapped[1]), self.below(columns, room)
        if self._fold is not None:
            rows = self._fold_rows(rows, self._fold, len(below), columns)
        self._page = max(room - len(below), 1)
        if len(rows) > self._page:
            self._page = max(self._page - 1, 1)
        self._most = max(len(rows) - self._page, 0)
        first, end = self._in_view
        self._top = min(max(self._top, end - self._page), first, self._most)
        if not self._is_folded:
            self._seen = max(self._seen, self._top + self._page)
        page = list(rows[self._top : self._top + self._page])
        if self._most:
            words = f"lines {self._top + 1}-{self._top + self._page} of {len(rows)}"
            if self._was_unfolded:
                words = f"{words} · Yes counts now" if len(words) + 17 <= columns else "Yes counts now"
            is_wide = get_app().output.get_size().columns >= NARROW_COLUMNS
            page.append([("class:dim", f"{words} · ↑↓ PgUp PgDn scroll" if is_wide else words)])
        return page

    def _wrap(self, columns: int) -> None:
        """Wraps the content anew, and counts in rows what is known in lines: quoted text, fold, what has to be visible."""
        lines, title = self.content(), self.title()
        is_titled = title is not None and not self.is_framed
        if title is not None and is_titled:
            lines = [Text.assemble(("? ", "bold accent"), title), *lines]
        self._wrapped = (columns, as_rows(lines, columns))

        def rows_above(line: int) -> int:
            return len(as_rows(lines[:line], columns))

        self._quoted = rows_above(max((at for at, line in enumerate(lines, start=1) if line.no_wrap), default=0))
        self._seen, self._fold = 0, None
        if (fold := self.fold()) is not None:
            start, end, first = (rows_above(at + is_titled) for at in fold[:3])
            self._fold = Fold(start, end, first, to_end=fold.to_end)
        if self._showing is not None:
            at = self._showing + is_titled
            self._in_view = rows_above(at), rows_above(at + 1)

    def _fold_rows(self, rows: list[Row], fold: Fold, num_below: int, columns: int) -> list[Row]:
        """The rows with the folded ones counted, all in all at most MOST_ROWS; the same rows where nothing has to be folded."""
        start, end, first = fold[:3]
        around = len(self._title_rows()) + start + 1 + num_below if self.is_framed else 0
        num_shown = max(min(FOLDED_ROWS, MOST_ROWS - around - len(rows[end:])), 1)
        self._is_folded = self.is_framed and not self._is_open and end - start > num_shown + 1
        if not self._is_folded:
            return rows
        after = rows[end:]
        if len(after) > (most := max(MOST_ROWS - around - num_shown, 0)):
            after = after[:most]
            after[-1:] = [[*row, ("class:dim", "…")] for row in after[-1:]]
        first = min(first, end - num_shown)
        more: Row = [("class:dim", f"{end - start - num_shown} more lines · PgDn or Yes unfolds"[:columns])]
        return [*rows[:start], *rows[first : first + num_shown], more, *after]

    # Its keys

    def _choosing_keys(self) -> KeyBindings:
        keys = KeyBindings()
        for key, name in _KEY_NAMES.items():
            keys.add(key, eager=True)(lambda event, name=name: self._key_guard.handle_key(name))
        keys.add(Keys.Any)(lambda event: self._key_guard.handle_key(event.data))  # not eager: it matches Esc, too

        @keys.add(Keys.BracketedPaste, eager=True)
        def take_paste(event: KeyPressEvent) -> None:
            was_ignoring = self.ignores_keys
            self._key_guard.ignore_for(PASTE_S)
            if not was_ignoring:
                self.on_paste(event.data)

        keys.add("c-z", eager=True)(lambda event: self._step_aside())
        keys.add("escape")(lambda event: self.escape())
        keys.add("c-c", eager=True)(lambda event: self.dismiss(LineInterrupted))
        return keys

    def _step_aside(self) -> None:
        """Suspends wolo; keys typed to resume it answer nothing."""

        def away() -> None:
            suspend()
            self._key_guard.begin()

        run_in_terminal(away)

    def on_paste(self, text: str) -> None:
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
        for key in (Keys.BracketedPaste, "enter", Keys.Any):
            is_eager = key is not Keys.Any
            keys.add(key, filter=ignores_keys, eager=is_eager)(lambda event: self._key_guard.handle_key(""))
        keys.add("c-c", eager=True)(lambda event: self.dismiss(LineInterrupted))
        return keys


def key_hints(*hints: tuple[str, str]) -> Text:
    """`Enter select · Esc cancel`: the one style of key hints."""
    text = Text()
    for at, (key, action) in enumerate(hints):
        text.append(" · " if at else "", "dim").append(key).append(f" {action}", "dim")
    return text


def add_hints(text: Text, hints: Sequence[tuple[str, str]], columns: int) -> Text:
    """The text with as many key hints behind it as fit the row."""
    for hint in hints:
        longer = text.copy().append(" · " if text else "", "dim").append_text(key_hints(hint))
        if longer.cell_len > columns:
            break
        text = longer
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


def _side() -> layout.Window:
    """The border of the input field, which may have several rows."""
    return layout.Window(
        layout.FormattedTextControl([("class:border", "\n".join([SIDE] * FIELD_ROWS))]),
        width=len(SIDE),
        height=layout.Dimension(min=1, max=FIELD_ROWS, preferred=1),
    )
