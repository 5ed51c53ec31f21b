"""A viewer on the alternate screen: scrolls and searches lines that the scrollback shows in short."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output.color_depth import ColorDepth
from rich.text import Text

from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.input_parser import FocusTracker, TerminalInput
from wolo.frontends.terminal.io.prompt_toolkit_adapter import RegionApplication
from wolo.frontends.terminal.io.terminal_output import AsyncOutput
from wolo.frontends.terminal.live.frame_renderer import FrameOutput
from wolo.frontends.terminal.panels.panel import add_hints
from wolo.frontends.terminal.panels.region_styles import RegionColours, Row, as_fragments, as_rows, colour_depth

REFRESH_S = 0.5
"""How often the last row looks for a question that waits."""
ESCAPE_S = 0.05
MOVES = {
    **dict.fromkeys(("up", "k", "c-p"), -1),
    **dict.fromkeys(("down", "j", "c-n", "enter"), 1),
    **dict.fromkeys(("pageup", "b", "c-b"), "-page"),
    **dict.fromkeys(("pagedown", " ", "c-f"), "page"),
    "c-u": "-half",
    "c-d": "half",
    **dict.fromkeys(("home", "g"), "-end"),
    **dict.fromkeys(("end", "G"), "end"),
}
CLOSES = ("q", "closes")
CLOSING = ("q", "escape", "c-o", "c-c")


class Viewer:
    """Shows lines, first the one `at`, until a key closes it. `stops` are lines that `[` and `]` go to."""

    def __init__(self, lines: Sequence[Text], state: TerminalState, *, at: int, stops: Sequence[int]) -> None:
        self._lines, self._state, self._stops = lines, state, sorted(stops)
        self._columns = 0
        self._starts: list[int] = [0]
        """The first row of each line, and the number of all rows."""
        self._top = 0
        self._opens_at: int | None = at
        self._pattern: re.Pattern[str] | None = None
        self._hits: list[int] = []
        """Rows in which the search found something."""
        self._note = ""
        self._field = Buffer(multiline=False)

    async def show(self, outlet: AsyncOutput, focus: FocusTracker) -> None:
        """Raises EOFError when the terminal is closed."""
        colours = RegionColours(self._state, is_soft=colour_depth() == ColorDepth.DEPTH_24_BIT)
        field = Window(BufferControl(self._field, [BeforeInput("/")]), height=1)
        is_searching = Condition(lambda: has_focus(self._field)())
        page = Window(FormattedTextControl(self._page, focusable=True, show_cursor=False))
        status = Window(FormattedTextControl(self._status), height=1)
        self._app = RegionApplication(
            layout=Layout(
                HSplit([page, ConditionalContainer(field, is_searching), ConditionalContainer(status, ~is_searching)]), page
            ),
            key_bindings=self.make_keys(page),
            full_screen=True,
            refresh_interval=REFRESH_S,
            output=FrameOutput(outlet),
            input=TerminalInput(focus),
            style=colours.style(),
            style_transformation=colours,
            include_default_pygments_style=False,
        )
        self._app.ttimeoutlen = self._app.timeoutlen = ESCAPE_S
        await self._app.run_async(handle_sigint=False, set_exception_handler=False)

    # Keys

    def make_keys(self, page: Window) -> KeyBindings:
        """The letters are in the guide, and the most important ones in the last row."""
        keys = KeyBindings()
        is_reading = ~has_focus(self._field)
        for key, by in MOVES.items():
            keys.add(key, filter=is_reading)(lambda event, by=by: self._move(by))
        for key in CLOSING:
            keys.add(key, filter=is_reading)(lambda event: event.app.exit())
        keys.add("/", filter=is_reading)(lambda event: event.app.layout.focus(self._field))
        for key, step in (("n", 1), ("N", -1)):
            keys.add(key, filter=is_reading)(lambda event, step=step: self._go_to_hit(step))
        for key, step in (("]", 1), ("[", -1)):
            keys.add(key, filter=is_reading)(lambda event, step=step: self._go_to_stop(step))

        @keys.add("enter", filter=~is_reading)
        def search(event: object) -> None:
            # Finds a text; without a capital letter, in either case. An empty one ends the search.
            self._pattern, self._hits = None, []
            if self._field.text:
                self._pattern = re.compile(
                    re.escape(self._field.text), 0 if self._field.text != self._field.text.lower() else re.IGNORECASE
                )
                self._find_hits()
                self._go_to_hit(0)
            self._field.reset()
            self._app.layout.focus(page)

        for key in ("escape", "c-c"):

            @keys.add(key, filter=~is_reading, eager=True)
            def cancel(event: object) -> None:
                self._field.reset()
                self._app.layout.focus(page)

        return keys

    def _move(self, by: int | str) -> None:
        height, name = self._height, str(by).removeprefix("-")
        rows = {"page": max(height - 1, 1), "half": max(height // 2, 1), "end": self._starts[-1]}.get(name)
        step = int(by) if rows is None else -rows if str(by).startswith("-") else rows
        self._note, self._top = "", self._top + step

    def _go_to_stop(self, step: int) -> None:
        self._note = ""
        rows = [self._starts[line] for line in self._stops]
        ahead = [row for row in rows if (row - self._top) * step > 0]
        if ahead:
            self._top = min(ahead) if step > 0 else max(ahead)

    # Search

    def _find_hits(self) -> None:
        self._hits = []
        for number, line in enumerate(self._lines):
            if self._pattern is None or not self._pattern.search(line.plain):
                continue
            start = self._starts[number]
            rows = ["".join(text for _, text, *_ in row) for row in as_rows([line], self._columns)]
            within = [start + at for at, row in enumerate(rows) if self._pattern.search(row)]
            self._hits += within or [start]  # it is broken over two rows

    def _go_to_hit(self, step: int) -> None:
        """The next one from the top of the window on, around the end."""
        if self._pattern is None or not self._hits:
            self._note = "Nothing found." if self._pattern is not None else "No search yet."
            return
        if step < 0:
            at = next((row for row in reversed(self._hits) if row < self._top), self._hits[-1])
        else:
            at = next((row for row in self._hits if row >= self._top + step), self._hits[0])
        self._top, self._note = at, f"{self._hits.index(at) + 1} of {len(self._hits)} found"

    # Drawing

    @property
    def _height(self) -> int:
        return max(self._app.output.get_size().rows - 1, 1)

    def _page(self) -> StyleAndTextTuples:
        if (columns := max(self._app.output.get_size().columns, 2)) != self._columns:
            # Counts the rows of all lines, and stays at the same line
            line = bisect_right(self._starts, self._top) - 1 if self._opens_at is None else self._opens_at
            self._columns, self._opens_at = columns, None
            self._starts = [0, *accumulate(self._num_rows(line) for line in self._lines)]
            self._top = self._starts[min(line, len(self._lines))]
            self._find_hits()
        self._top = max(0, min(self._top, self._starts[-1] - self._height))
        rows: list[Row] = []
        number = bisect_right(self._starts, self._top) - 1
        skipped = self._top - self._starts[number]
        while number < len(self._lines) and len(rows) < self._height + skipped:
            text = self._lines[number].copy()
            if self._pattern is not None:
                for hit in self._pattern.finditer(text.plain):
                    text.stylize("reverse", *hit.span())
            rows += as_rows([text], columns)
            number += 1
        return as_fragments(rows[skipped : skipped + self._height])

    def _num_rows(self, line: Text) -> int:
        plain = line.plain
        return 1 if plain.isascii() and len(plain) <= self._columns else len(as_rows([line], self._columns))

    def _status(self) -> StyleAndTextTuples:
        columns, last = self._columns, min(self._top + self._height, self._starts[-1])
        text = Text(f"{self._top + 1}-{last} of {self._starts[-1]}")
        if self._state.is_asking:
            text = Text("wolo asks you something", "bold warning")
        elif self._note:
            text.append(f" · {self._note}", "accent")
        if text.cell_len + len(f" · {CLOSES[0]} {CLOSES[1]}") > columns:
            text = Text("? ", "bold warning") if self._state.is_asking else Text()
        hits = (("n N", "next"),) if self._hits else ()
        hints = (CLOSES, *hits, ("/", "search"), ("↑↓ PgUp PgDn", "scroll"), ("[ ]", "calls"))
        return as_fragments(as_rows([add_hints(text, hints, columns)], columns)[:1])
