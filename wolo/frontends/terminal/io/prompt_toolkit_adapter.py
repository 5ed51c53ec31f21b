"""Private members of prompt_toolkit under public names; no other file uses one.

`PRIVATE_MEMBERS` lists them, and a test looks for each in the installed version.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from prompt_toolkit import Application
from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import Completion
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.document import Document
from prompt_toolkit.input import ansi_escape_sequences
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Container, HSplit, UIContent
from prompt_toolkit.layout.menus import CompletionsMenuControl
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import DEFAULT_ATTRS, BaseStyle
from prompt_toolkit.utils import _CHAR_SIZES_CACHE

try:
    from prompt_toolkit.input.posix_utils import PosixStdinReader
    from prompt_toolkit.input.vt100 import Vt100Input
except (AssertionError, ImportError):  # Windows, where lines are read and nothing is painted
    PosixStdinReader = Vt100Input = object  # type: ignore[assignment,misc]
PRIVATE_MEMBERS: dict[type, tuple[str, ...]] = {
    Vt100Input: ("_fileno", "_buffer", "stdin_reader", "vt100_parser"),
    Vt100_Output: ("_buffer", "_cursor_visible"),
    Renderer: ("_last_screen", "_last_size", "_cursor_pos", "_attrs_for_style"),
    Application: ("_redraw", "_on_resize", "_merged_style"),
    CompletionsMenuControl: ("_show_meta",),
    HSplit: ("_all_children",),
}


def set_char_width(character: str, width: int) -> None:
    _CHAR_SIZES_CACHE[character] = width


def map_sequence(sequence: str, key: Keys) -> None:
    """Reads an input sequence as a key; `Keys.Ignore` drops it."""
    ansi_escape_sequences.ANSI_SEQUENCES[sequence] = key


class KeyInput(Vt100Input):
    """Reads text from stdin and collects the keys in it."""

    def __init__(self) -> None:
        super().__init__(sys.stdin)
        self.descriptor = self._fileno
        self.stdin_reader = PosixStdinReader(self._fileno, errors="replace", encoding="utf-8")

    def read_text(self, most_bytes: int) -> str:
        """Invalid UTF-8 becomes U+FFFD."""
        return self.stdin_reader.read(most_bytes)

    def parse_keys(self, text: str) -> None:
        self.vt100_parser.feed(text)

    def add_key(self, key: KeyPress) -> None:
        self._buffer.append(key)

    def pop_keys(self) -> list[KeyPress]:
        keys, self._buffer = self._buffer, []
        return keys


class BufferedOutput(Vt100_Output):
    """Collects what is written until `pop_written`."""

    def pop_written(self) -> str:
        written = "".join(self._buffer)
        self._buffer.clear()
        return written

    def show_cursor(self) -> None:
        """Does not change whether it blinks."""
        if not self._cursor_visible:
            self._cursor_visible = True
            self.write_raw("\x1b[?25h")


class PaintedRenderer(Renderer):
    """Gives access to what was painted last, so that it can be corrected."""

    @property
    def last_painted(self) -> Screen | None:
        return self._last_screen

    @last_painted.setter
    def last_painted(self, screen: Screen | None) -> None:
        self._last_screen = screen

    @property
    def painted_size(self) -> Size | None:
        return self._last_size

    @painted_size.setter
    def painted_size(self, size: Size) -> None:
        self._last_size = size

    @property
    def cursor(self) -> Point:
        """From the first painted cell."""
        return self._cursor_pos

    @cursor.setter
    def cursor(self, at: Point) -> None:
        self._cursor_pos = at

    def has_default_look(self, style: str) -> bool:
        return self._attrs_for_style is not None and self._attrs_for_style[style] == DEFAULT_ATTRS


class RegionApplication(Application[None]):
    """`redraw` and `on_resize` can be overridden."""

    def __init__(self, **given: Any) -> None:
        super().__init__(terminal_size_polling_interval=None, **given)

    def redraw(self, is_last: bool = False) -> None:
        super()._redraw(is_last)

    def on_resize(self) -> None:
        super()._on_resize()

    @property
    def merged_style(self) -> BaseStyle:
        return self._merged_style

    def _redraw(self, render_as_done: bool = False) -> None:
        self.redraw(render_as_done)

    def _on_resize(self) -> None:
        self.on_resize()


class Stack(HSplit):
    """Containers one below the other; without the empty window that prompt_toolkit draws between each two of them."""

    @property
    def _all_children(self) -> list[Container]:
        return self.children


def typed_part(document: Document, completion: Completion) -> str:
    """The text before the cursor that the completion replaces."""
    text = document.text_before_cursor
    return text[len(text) + completion.start_position :]


class CompletionRows(CompletionsMenuControl):
    def __init__(self, shows_help: Callable[[], bool]) -> None:
        """`shows_help`: help stands beside the completions, where there is any."""
        super().__init__()
        self._shows_help = shows_help

    def create_content(self, width: int, height: int) -> UIContent:
        """Highlights the first completion where Enter would take it."""
        state = get_app().current_buffer.complete_state
        is_open = state is not None and state.complete_index is None and bool(state.completions)
        if state is None or not is_open or not typed_part(state.original_document, state.completions[0]).strip('@"'):
            return super().create_content(width, height)
        state.complete_index = 0
        try:
            return super().create_content(width, height)
        finally:
            state.complete_index = None

    def _show_meta(self, complete_state: CompletionState) -> bool:
        return super()._show_meta(complete_state) and self._shows_help()
