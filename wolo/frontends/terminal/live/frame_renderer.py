"""Paints the live region in whole frames: only changed cells, also on rows that a resize has rewrapped."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from prompt_toolkit import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.screen import Char, Screen, WritePosition
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.styles import DEFAULT_ATTRS, Attrs

from wolo.frontends.terminal.io.graphemes import spell_out
from wolo.frontends.terminal.io.prompt_toolkit_adapter import BufferedOutput, PaintedRenderer, RegionApplication
from wolo.frontends.terminal.io.terminal_output import AsyncOutput
from wolo.frontends.terminal.panels.region_styles import colour_depth
from wolo.frontends.terminal.render.scroll_insert import Shown, grow, move, move_down, print_above, rows_taken

BEGIN_SYNC, END_SYNC = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know it show nothing in between; others ignore it."""
_ONE_GO_BYTES = 256
"""A terminal takes in so much at once: a smaller frame needs no sign of its beginning and end."""

RESIZE_QUIET_S = 0.3
"""tmux reports repeated resizes only after a quarter of a second."""

_CHARS_IN_CELL = 10
"""Characters per cell, colours included, up to which the rows of a text are counted."""
_NOTHING = re.compile(r"(?:\x1b\[0?m|\x1b\[\?(?:7|12|25)[hl])*")
"""A frame without a change."""
_LAST_ROW = " class:last-line"
"""prompt_toolkit adds it to the style of a window's last row, which is another row when the window grows."""
_WITHOUT_REFLOW = ("linux", "screen", "vt", "cons", "xterm-mono")
_WITHOUT_INSERT = ("vt52", "vt100", "vt101", "vt131")


class FrameOutput(BufferedOutput):
    """Sends each frame as one piece. Never queries the terminal: a reply could end up in the typed text."""

    def __init__(self, outlet: AsyncOutput) -> None:
        super().__init__(
            sys.stdout, _terminal_size, term=os.environ.get("TERM"), enable_cpr=False, default_color_depth=colour_depth()
        )
        self._outlet = outlet
        self._depth = 0
        self._size: Size | None = None
        """Of the window, while a frame is drawn."""
        self._is_plain = False
        """Colours are known to be off."""
        self._cuts = False
        self._encoding = sys.stdout.encoding or "utf-8"

    def erase_down(self) -> None:
        """Erases from the beginning of a row, and that row by itself.

        tmux takes erasing from the top left corner for clearing the screen, and saves a copy of it in its history.
        """
        self.write_raw("\x1b7\x1b[K\r\x1b[B\x1b[J\x1b8")

    @contextmanager
    def frame(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._size = None
            self._send()

    def get_size(self) -> Size:
        """Asks the terminal once a frame."""
        if not self._depth:
            return super().get_size()
        if self._size is None:
            self._size = super().get_size()
        return self._size

    def write(self, data: str) -> None:
        if not self._cuts and not data.isascii():
            self._cuts = True
            super().disable_autowrap()
        if data.startswith("\r\n"):
            data = data.replace("\r\n", "\n")  # the terminal returns to the first column by itself
        if (spelled := spell_out(data)) is data:
            super().write(data)
        else:
            self.write_raw(spelled)

    def flush(self) -> None:
        if not self._depth:
            self._send()

    def set_attributes(self, attrs: Attrs, color_depth: ColorDepth) -> None:
        if attrs == DEFAULT_ATTRS:
            self.reset_attributes()
        else:
            self._is_plain = False
            super().set_attributes(attrs, color_depth)

    def reset_attributes(self) -> None:
        if not self._is_plain:
            self._is_plain = True
            super().reset_attributes()

    def disable_autowrap(self) -> None:
        """Delayed until `write` gets text that a terminal may show wider than expected."""

    def enable_autowrap(self) -> None:
        if self._cuts:
            self._cuts = False
            super().enable_autowrap()

    def _send(self) -> None:
        if self._depth or not (data := self.pop_written()):
            return
        self._is_plain = False
        if data.endswith("\x1b[?25h") and _NOTHING.fullmatch(data):
            return
        if len(data) > _ONE_GO_BYTES:
            data = f"{BEGIN_SYNC}{data}{END_SYNC}"
        self._outlet.write(data.encode(self._encoding, "replace"))


class FrameRenderer(PaintedRenderer):
    """Finds its first row again after the terminal has rewrapped the rows of a narrower window."""

    does_reflow = True
    can_insert = True
    _home = Point(0, 0)
    """Column of the cursor, and its row counted from the end of the region, before `insert` moved it."""

    def insert(self, text: str, tail: Window, rows: int, *, keeps: bool) -> bool:
        """Prints complete lines above the region and resizes its `tail` window to `rows`.

        `keeps`: the tail keeps its rows; otherwise they become empty. False: not possible here, nothing is written.
        """
        self._follow_reflow()
        screen, size = self.last_painted, self.output.get_size()
        taken = rows_taken(text, size.columns) if len(text) <= size.rows * size.columns * _CHARS_IN_CELL else None
        if screen is None or size != self.painted_size or taken is None or not self.can_insert:
            return False
        self._home = Point(self.cursor.x, screen.height - self.cursor.y)
        at = screen.visible_windows_to_write_positions.get(tail)
        cells = [cell for _, cell in sorted(screen.data_buffer[0].items())]
        is_plain = all(self.has_default_look(cell.style) for cell in cells)
        region = Shown(
            screen.height,
            self.cursor.y,
            at.height if at else 0,
            "".join(cell.char for cell in cells).rstrip() if is_plain else "",  # the first row, unless it has colours
        )
        if screen.height + taken + max(rows - region.tail, 0) > size.rows or (region.tail and not rows + taken):
            return False
        if keeps and taken and not region.continues_in(text):
            self._insert(move_down(text, taken, region), tail, region, region.tail, kept=region.tail)
            taken, region = 0, region._replace(row=0)
        if taken:
            self._insert(print_above(text, taken, region, rows), tail, region, rows)
        elif rows != region.tail:
            stay = min(rows, region.tail)
            self._insert(grow(region, rows - region.tail), tail, region, rows, kept=stay, row=stay)
        return True

    def _insert(self, sequence: str, tail: Window, region: Shown, rows: int, kept: int = 0, row: int = 0) -> None:
        assert self.last_painted is not None
        self.output.hide_cursor()
        self.output.write_raw(sequence)
        # the screen with a tail of so many rows: the first `kept` ones as they were, the others empty
        screen, moved, more = self.last_painted, Screen(), rows - region.tail
        for y in range(region.tail, region.height):
            moved.data_buffer[y + more] = screen.data_buffer[y]
        for y in range(kept):
            for column, cell in screen.data_buffer[y].items():
                moved.data_buffer[y][column] = cell if more == 0 else Char(cell.char, cell.style.removesuffix(_LAST_ROW))
        moved.height = region.height + more
        for window, at in screen.visible_windows_to_write_positions.items():
            moved.visible_windows_to_write_positions[window] = WritePosition(at.xpos, at.ypos + more, at.width, at.height)
        moved.visible_windows_to_write_positions.pop(tail, None)
        if rows:
            moved.visible_windows_to_write_positions[tail] = WritePosition(0, 0, screen.width, rows)
        self.last_painted = moved
        self.cursor = Point(x=0, y=row)

    def paint_tail(self, rows: Sequence[str]) -> None:
        """Paints only the tail, after `insert` has resized it: ASCII in the terminal's own colours."""
        screen = self.last_painted
        assert screen is not None
        at, pieces = self.cursor, []
        for y, row in enumerate(rows):
            x, is_shorter = _replace(screen.data_buffer[y], row, _LAST_ROW if y == len(rows) - 1 else "")
            if x < len(row) or is_shorter:
                pieces.append(move(at, Point(x, y)) + row[x:] + ("\x1b[K" if is_shorter else ""))
                at = Point(len(row), y)
        home = Point(self._home.x, screen.height - self._home.y)
        if at != home:
            pieces.append(move(at, home))
            self.output.hide_cursor()
            self.output.write_raw("".join(pieces))
            self.output.show_cursor()
            self.cursor = home

    def leaves_rows(self, last: Window) -> bool:
        """The region has become lower: there are empty rows below its `last` window."""
        if self.last_painted is None:
            return False
        at = self.last_painted.visible_windows_to_write_positions.get(last)
        return at is not None and at.ypos + at.height < self.last_painted.height

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        self._follow_reflow()
        super().render(app, layout, is_done)

    def erase(self, leave_alternate_screen: bool = True) -> None:
        self._follow_reflow()
        super().erase(leave_alternate_screen)

    def _follow_reflow(self) -> None:
        columns = self.output.get_size().columns
        if self.last_painted is None or self.painted_size is None or columns == self.painted_size.columns:
            return
        if columns < self.painted_size.columns and self.does_reflow:
            rows, cursor = self.last_painted.data_buffer, self.cursor
            above = sum(_rows_taken(rows[row], _length(rows[row]), columns) for row in range(cursor.y))
            within = _rows_taken(rows[cursor.y], cursor.x + 1, columns) - 1
            self.cursor = Point(x=cursor.x % columns, y=above + within)
        self.painted_size = Size(rows=self.painted_size.rows, columns=columns)
        self.last_painted = None


class FrameApplication(RegionApplication):
    """Paints nothing while the terminal is behind or its window is being resized: it would be outdated when seen."""

    def __init__(self, outlet: AsyncOutput, output: FrameOutput, on_rest: Callable[[], None], **given: Any) -> None:
        """`on_rest` is called when the window has kept its size for a while."""
        super().__init__(output=output, **given)
        self._outlet, self._frames, self._on_rest = outlet, output, on_rest
        self._resize_timer: asyncio.TimerHandle | None = None
        self.renderer: FrameRenderer = FrameRenderer(self.merged_style, output)
        self.renderer.does_reflow, self.renderer.can_insert = does_reflow(os.environ), can_insert(os.environ)

    def redraw(self, is_last: bool = False) -> None:
        if is_last or not self.must_wait:
            with self._frames.frame():
                super().redraw(is_last)

    @property
    def must_wait(self) -> bool:
        return self._outlet.is_behind or self._resize_timer is not None

    def on_resize(self) -> None:
        """Waits: the window may have changed again since the signal."""
        if self._resize_timer is not None:
            self._resize_timer.cancel()
        self._resize_timer = asyncio.get_running_loop().call_later(RESIZE_QUIET_S, self._finish_resize)

    def _finish_resize(self) -> None:
        self._resize_timer = None
        if self.is_running:
            with self._frames.frame():
                super().on_resize()
            self._on_rest()


def _replace(cells: dict[int, Char], row: str, style: str) -> tuple[int, bool]:
    """Replaces a row of the screen; returns the first column that differs, and whether the row was longer."""
    length, first = _length(cells), len(row)
    for x, char in enumerate(row):
        cell = cells.get(x)
        if x < first and (cell is None or cell.char != char or cell.style.removesuffix(_LAST_ROW)):
            first = x
        if cell is None or cell.char != char or cell.style != style:
            cells[x] = Char(char, style)
    for x in [x for x in cells if x >= len(row)]:
        del cells[x]
    return first, length > len(row)


def can_insert(environment: Mapping[str, str]) -> bool:
    """The terminal can insert rows: all but the very oldest can."""
    return not environment.get("TERM", "").startswith(_WITHOUT_INSERT)


def does_reflow(environment: Mapping[str, str]) -> bool:
    """The terminal rewraps rows that have become too long (most do), instead of cutting them (xterm, the console, screen)."""
    if "TMUX" in environment:
        return True
    return "XTERM_VERSION" not in environment and not environment.get("TERM", "").startswith(_WITHOUT_REFLOW)


def _length(row: Mapping[int, Char]) -> int:
    """Cells up to the last visible character."""
    return max((at + cell.width for at, cell in row.items() if cell.char != " "), default=0)


def _rows_taken(row: Mapping[int, Char], length: int, columns: int) -> int:
    """Rows that this one takes in a window of so many columns; a wide character is never split."""
    rows, column, at = 1, 0, 0
    while at < length:
        width = max(row[at].width, 1)
        if column + width > columns:
            rows, column = rows + 1, 0
        column += width
        at += width
    return rows


def _terminal_size() -> Size:
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        columns, rows = 80, 24
    return Size(rows=rows or 24, columns=columns or 80)
