"""The foot of the screen: the few lines that stay while everything above them scrolls away for good.

From top to bottom: the line that is not finished yet, what is under way, what waits to be sent, where the person writes, and a
line of facts. All else is printed once, above, and is the terminal's from then on. The foot alone is painted anew.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from prompt_toolkit.application import in_terminal
from prompt_toolkit.application.current import get_app, set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.key_binding import ConditionalKeyBindings, KeyBindingsBase
from prompt_toolkit.layout import (
    AnyContainer,
    BufferControl,
    ConditionalContainer,
    Dimension,
    DynamicContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput, Processor

from wolo.frontends.terminal.display.dialog_host import Asked
from wolo.frontends.terminal.display.line_prompt import Interrupted
from wolo.frontends.terminal.io.async_output import Outlet
from wolo.frontends.terminal.io.focus_tracking import Presence
from wolo.frontends.terminal.io.input_parser import Incoming
from wolo.frontends.terminal.io.palette import STYLE, Shades
from wolo.frontends.terminal.live.completion_menu import offered_menu, search_line
from wolo.frontends.terminal.live.frame_renderer import FrameApplication, FrameOutput
from wolo.frontends.terminal.panels.line_input import LinePanel
from wolo.frontends.terminal.panels.panel import FACTS_FROM_ROWS
from wolo.frontends.terminal.render.scroll_insert import rows_taken
from wolo.frontends.terminal.render.wrap import newest_rows

T = TypeVar("T")

TAIL_ROWS = 6
ACTIVITY_ROWS = 5
PINNED_ROWS = 5
PINNED_FROM_ROWS = 15
"""In a lower window there is no room for what only stays in sight."""
WAITING_ROWS = 5
WRITING_ROWS = 10
PAINT_S = 0.25
"""What is printed above is gathered for so long, because the foot is painted anew each time."""
ESCAPE_S = 0.05
"""How long an escape may be the beginning of another key."""


class Foot:
    leaves_what_was_typed = False
    keys_in_short = "Enter sends, Alt-Enter makes a new line"

    def __init__(
        self,
        writing: Buffer,
        keys: KeyBindingsBase,
        *,
        facts: Callable[[int], str],
        processors: list[Processor] | None = None,
        uses_vi: bool = False,
        prompt: str = "› ",
        is_light: Callable[[], bool] = lambda: False,
    ) -> None:
        """`facts` are told how many cells there are, whenever the foot is painted."""
        self.writing = writing
        self.tail = ""
        """The beginning of a line that is still coming, with its colours."""
        self.unfinished = ""
        """What there is of a line that is printed once it is finished."""
        self.activity: Callable[[int], list[str]] = lambda columns: []
        """What is under way, in lines of so many cells; empty when nothing is."""
        self.pinned: Callable[[int], list[str]] = lambda columns: []
        """What stays in sight, likewise."""
        self.waiting: Callable[[], tuple[str, ...]] = tuple
        """What was sent and not heard yet."""
        self.hint = ""
        """A word beside an empty line."""
        self.gone: Callable[[], None] = lambda: None
        """Called when nothing can be read from the terminal any more."""
        self.interrupted: Callable[[], None] = lambda: None
        """Called when Ctrl-C was the answer."""
        self._facts = facts
        self._invitation = prompt
        self._begun = ""
        """What of a line that is not finished was painted last."""
        self._unprinted: list[str] = []
        self._due: asyncio.TimerHandle | None = None
        self._painted_at = float("-inf")
        self._panels: list[Asked[Any]] = []
        """What is asked: the last one is seen, and the others wait below it."""
        self._asking = Condition(lambda: self.is_asking)
        self._running: asyncio.Task[None] | None = None
        self._is_aside = False
        self._tail_window = _window(self._growing, TAIL_ROWS)
        self._facts_window = _window(self._fact_line, 1)
        self._outlet = Outlet(sys.stdout.fileno())
        self._outlet.emptied = self.flush
        self._output = FrameOutput(self._outlet)
        self.presence = Presence(self.send)
        self.app = FrameApplication(
            self._outlet,
            self._output,
            layout=self._layout(processors or []),
            key_bindings=ConditionalKeyBindings(keys, ~self._asking),
            editing_mode=EditingMode.VI if uses_vi else EditingMode.EMACS,
            input=Incoming(self.presence),
            style=STYLE,
            style_transformation=Shades(is_light),
            erase_when_done=True,
            include_default_pygments_style=False,
        )
        self.app.resized = self.flush
        self.app.ttimeoutlen = self.app.timeoutlen = ESCAPE_S

    # Its life

    def appear(self) -> None:
        """Below what was printed so far; from now on the keyboard belongs to it."""
        self.flush()
        self._outlet.open()
        self._running = asyncio.ensure_future(self._live())

    async def _live(self) -> None:
        try:
            await self.app.run_async(handle_sigint=False, set_exception_handler=False)
        except EOFError:
            self.gone()

    async def vanish(self) -> None:
        """Nothing of it stays on the screen; what was printed does."""
        self._print_now()
        if self._running is not None:
            if self.app.is_running:
                self.app.exit()
            with suppress(asyncio.CancelledError):
                await self._running
            self._running = None
        self._outlet.close()

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """The terminal is another program's while the block runs; what is printed meanwhile waits."""
        self.flush()
        with set_app(self.app):
            async with in_terminal():
                self._is_aside = True
                try:
                    yield
                finally:
                    self._is_aside = False
                    self._output.write_raw("\r\x1b[K")  # wherever the other program has left the cursor
        if self._panels:
            self._panels[-1].open()
        self.paint()

    def drop(self) -> None:
        """The process ends on the spot: the terminal's modes are given back, and nothing else is waited for."""
        self.presence.report(False)
        self._output.disable_bracketed_paste()
        self._output.show_cursor()
        self._output.flush()

    @property
    def is_asking(self) -> bool:
        return bool(self._panels)

    def paint(self) -> None:
        """Something it shows has changed. What a person types is painted at once, by the application itself."""
        if self._due is None:
            wait_s = max(self._painted_at + PAINT_S - time.monotonic(), 0.0)
            self._due = asyncio.get_running_loop().call_later(wait_s, self.flush)

    def send(self, sequence: str) -> None:
        self._output.write_raw(sequence)
        self._output.flush()

    # What is printed above

    def print(self, text: str) -> None:
        """Complete lines, with their colours."""
        self._unprinted.append(text)
        self.paint()

    def flush(self) -> None:
        """What was gathered goes above the foot, in one go; it goes on waiting while the terminal is behind."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self.app.must_wait or self._is_aside:
            return
        self._painted_at = time.monotonic()
        self._print_now()

    def _print_now(self) -> None:
        text = "".join(self._unprinted)
        self._unprinted.clear()
        if not self.app.is_running:
            self._output.write_raw(text)
            self._output.flush()
            return
        with self._output.frame():
            if not self._insert(text) and text:
                self.app.renderer.erase(leave_alternate_screen=False)
                self._output.write_raw(text)
            self.app._redraw()
            if self.app.renderer.leaves_rows(self._facts_window):
                self.app.renderer.erase(leave_alternate_screen=False)
                self.app._redraw()

    def _insert(self, text: str) -> bool:
        """False: the terminal cannot print it above what stands there."""
        before, self._begun = self._begun, f"{self.tail}{self.unfinished}"
        keeps = bool(before) and self._begun.startswith(before)
        return self.app.renderer.insert(text, self._tail_window, self._tail_rows(), keeps=keeps)

    # What is asked

    async def ask(self, question: str, *, draft: str = "", may_pass: bool = False) -> str:
        """One line in answer to a question, beginning with the `draft`. Raises what a LinePanel raises."""
        return await self.stand(LinePanel(question, draft=draft, may_pass=may_pass))

    async def stand(self, panel: Asked[T]) -> T:
        """The panel takes the place of everything but the facts until it is answered; what was being written stays as it was."""
        self._panels.append(panel)
        self._uncover()
        try:
            return await panel.answer
        except Interrupted:
            self.interrupted()
            raise
        finally:
            panel.close()
            self._panels.remove(panel)
            self._uncover()

    def _uncover(self) -> None:
        if self._panels:
            with set_app(self.app):
                self._panels[-1].open()
        else:
            self.app.layout.focus(self.writing)
        self._repaint()

    def _repaint(self) -> None:
        """From its first row on: it may have become lower."""
        self.flush()
        if self.app.is_running and not self._is_aside and not self.app.must_wait:
            with self._output.frame():
                self.app.renderer.erase(leave_alternate_screen=False)
                self.app._redraw()

    # How it looks

    def _layout(self, processors: list[Processor]) -> Layout:
        search = search_line()
        control = BufferControl(
            self.writing,
            input_processors=[*processors, BeforeInput(self._prompt)],
            search_buffer_control=search.control,
            preview_search=True,
        )
        writing = Window(
            control,
            wrap_lines=True,
            height=Dimension(min=1, max=WRITING_ROWS),
            dont_extend_height=True,
        )
        unasked = HSplit(
            [
                ConditionalContainer(self._tail_window, Condition(lambda: bool(self.tail or self.unfinished))),
                _shown(lambda: self._dim(self.activity), lambda: bool(self.activity(1)), ACTIVITY_ROWS),
                _shown(lambda: self._dim(self.pinned), self._has_pinned, PINNED_ROWS),
                _shown(self._waiting_lines, lambda: bool(self.waiting()), WAITING_ROWS),
                writing,
                search,
                offered_menu(),
            ]
        )
        rows: list[AnyContainer] = [
            DynamicContainer(lambda: self._panels[-1].container if self._panels else unasked),
            ConditionalContainer(self._facts_window, Condition(self._has_facts)),
        ]
        return Layout(HSplit(rows), focused_element=writing)

    def _prompt(self) -> StyleAndTextTuples:
        hint = [("class:hint", f"{self.hint} ")] if self.hint and not get_app().current_buffer.text else []
        return [("class:prompt", self._invitation), *hint]

    def _growing(self) -> StyleAndTextTuples:
        return to_formatted_text(ANSI(self._newest_rows()))

    def _newest_rows(self) -> str:
        return newest_rows(f"{self.tail}{self.unfinished}", self._output.get_size().columns, TAIL_ROWS)

    def _tail_rows(self) -> int:
        """About as many as it will have: what is painted has the last word."""
        if self._panels or not (self.tail or self.unfinished):
            return 0
        taken = rows_taken(f"{self._newest_rows()}\n", self._output.get_size().columns)
        return min(taken or 1, TAIL_ROWS)

    def _has_facts(self) -> bool:
        return not self.is_asking or self._output.get_size().rows >= FACTS_FROM_ROWS

    def _has_pinned(self) -> bool:
        return self._output.get_size().rows >= PINNED_FROM_ROWS and bool(self.pinned(1))

    @property
    def rows(self) -> int:
        """Of the window."""
        return self._output.get_size().rows

    @property
    def _columns(self) -> int:
        """In which a line does not wrap."""
        return max(self._output.get_size().columns - 1, 1)

    def _dim(self, lines: Callable[[int], list[str]]) -> StyleAndTextTuples:
        return [("class:dim", "\n".join(lines(self._columns)))]

    def _fact_line(self) -> StyleAndTextTuples:
        return [("class:dim", self._facts(self._columns))]

    def _waiting_lines(self) -> StyleAndTextTuples:
        return [("class:dim", "\n".join(self.waiting()))]


def _shown(text: Callable[[], AnyFormattedText], is_shown: Callable[[], bool], most_rows: int) -> ConditionalContainer:
    return ConditionalContainer(_window(text, most_rows), Condition(is_shown))


def _window(text: Callable[[], AnyFormattedText], most_rows: int) -> Window:
    return Window(FormattedTextControl(text), wrap_lines=True, height=Dimension(max=most_rows), dont_extend_height=True)
