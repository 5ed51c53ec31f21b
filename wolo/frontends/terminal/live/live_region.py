"""The live region: the rows below the scrollback that are repainted while everything above them is printed once.

From top to bottom: the unfinished line, running work, the todo list, queued messages, the input, and the status bar. Printed
lines belong to the terminal from then on.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from prompt_toolkit import layout
from prompt_toolkit.application import in_terminal
from prompt_toolkit.application.current import get_app, set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, FilterOrBool, has_completions, is_done
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.key_binding import ConditionalKeyBindings, KeyBindingsBase
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.layout.processors import AfterInput, BeforeInput, Processor
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.widgets import SearchToolbar

from wolo.agent.events import Event
from wolo.frontends.terminal.display.line_prompt import Dismissed
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.display.terminal_state import Dialog
from wolo.frontends.terminal.io.input_parser import FocusTracker, TerminalInput
from wolo.frontends.terminal.io.prompt_toolkit_adapter import CompletionRows, Stack
from wolo.frontends.terminal.io.terminal_marks import TerminalMarks
from wolo.frontends.terminal.io.terminal_output import AsyncOutput
from wolo.frontends.terminal.live.component import Component, Row
from wolo.frontends.terminal.live.frame_renderer import FrameApplication, FrameOutput
from wolo.frontends.terminal.live.live_output import ActivityView, RegionOutput
from wolo.frontends.terminal.panels.line_panels import LinePanel
from wolo.frontends.terminal.panels.panel import FACTS_FROM_ROWS, NARROW_COLUMNS
from wolo.frontends.terminal.panels.region_styles import RegionColours, as_fragments, colour_depth
from wolo.frontends.terminal.render.row_wrapping import newest_rows
from wolo.frontends.terminal.render.scroll_insert import rows_taken

T = TypeVar("T")

LEAVE_ALTERNATE = "\x1b[?1049l"
TAIL_ROWS = 6
WRITING_ROWS = 10
PROMPT = "› "
PLACEHOLDERS = ("Describe a task · / commands · @ files", "Describe a task · / commands")
"""Shown in the empty composer: the first that fits."""
INDENT_COLUMNS = 20
"""From which on further rows of the composer are indented."""
_VI_MODES = {InputMode.NAVIGATION: "NORMAL", InputMode.REPLACE: "REPLACE", InputMode.REPLACE_SINGLE: "REPLACE"}
PAINT_S = 0.25
"""Printed text is collected for so long: each printing repaints the region."""
ESCAPE_S = 0.05
"""Time in which an escape may be the beginning of another key."""


class LiveRegion:
    echoes_input = False
    keys_in_short = "Enter sends, Alt-Enter makes a new line"

    def __init__(
        self,
        terminal: Terminal,
        writing: Buffer,
        keys: KeyBindingsBase,
        *,
        above: Sequence[Component] = (),
        below: Component | None = None,
        processors: Sequence[Processor] = (),
        uses_vi: bool = False,
        prompt: str = PROMPT,
    ) -> None:
        """Shows the components `above` the input and the one `below` it."""
        self._terminal, self._state = terminal, terminal.state
        self.writing = writing
        self.stdout = RegionOutput(self.write)
        self.activity = ActivityView(self.paint, lambda: self._output.get_size().rows, self._state)
        self._above, self._below = (self.activity, *above), below
        self._drawn: dict[Component, Sequence[Row]] = {}
        """Rows of each component since the last `paint`, for a window of `_drawn_for`."""
        self._drawn_for = Size(0, 0)
        self._prompt_text = prompt
        self._painted_around: object = None
        """What was painted around the tail."""
        self._begun = ""
        """The unfinished line as it was last painted."""
        self._unprinted: list[str] = []
        self._due: asyncio.TimerHandle | None = None
        self._painted_at = float("-inf")
        self._asking = Condition(lambda: self._state.is_asking)
        self._running: asyncio.Task[None] | None = None
        self._is_aside = self._is_alternate = False
        self._tail_window = _window(self._growing, TAIL_ROWS)
        self._below_window = _window(lambda: as_fragments(self._rows(below)) if below is not None else [], 1)
        self._outlet = AsyncOutput(sys.stdout.fileno(), self.flush)
        self._output = FrameOutput(self._outlet)
        self.presence = FocusTracker(self, self._state)
        self.marks: TerminalMarks | None = None
        """Of a conversation; a single task has none."""
        colours = RegionColours(self._state, is_soft=colour_depth() == ColorDepth.DEPTH_24_BIT)
        self.app = FrameApplication(
            self._outlet,
            self._output,
            self.flush,
            layout=self._layout(list(processors)),
            key_bindings=ConditionalKeyBindings(keys, ~self._asking),
            editing_mode=EditingMode.VI if uses_vi else EditingMode.EMACS,
            input=TerminalInput(self.presence),
            style=colours.style(),
            style_transformation=colours,
            erase_when_done=True,
            include_default_pygments_style=False,
        )
        self.app.after_render += self._note_painted
        self.app.ttimeoutlen = self.app.timeoutlen = ESCAPE_S
        self.app.before_render += lambda app: self._note_vi_mode()
        self._note_vi_mode()

    @property
    def uses_vi(self) -> bool:
        return self.app.editing_mode == EditingMode.VI

    def use_vi(self, enabled: bool) -> None:
        self.app.editing_mode = EditingMode.VI if enabled else EditingMode.EMACS
        self.app.vi_state.input_mode = InputMode.INSERT
        self._note_vi_mode()

    def _note_vi_mode(self) -> None:
        mode = _VI_MODES.get(self.app.vi_state.input_mode, "INSERT") if self.uses_vi else ""
        if mode != self._state.vi_mode:
            self._state.vi_mode = mode
            self._drawn.clear()

    # Its life

    def appear(self) -> None:
        """Shows the region below the printed text, and takes the keyboard."""
        self.flush()
        self._outlet.open()
        self._running = asyncio.ensure_future(self._live())

    async def _live(self) -> None:
        try:
            await self.app.run_async(handle_sigint=False, set_exception_handler=False)
        except EOFError:
            self._terminal.signals.hang_up()

    async def vanish(self) -> None:
        """Removes the region from the screen; printed text stays."""
        self._terminal.screen.draw_streamed()
        self._print_now()
        if self._running is not None:
            if self.app.is_running and not self.app.is_done:  # it is done when its input ended just before
                self.app.exit()
            with suppress(asyncio.CancelledError):
                await self._running
            self._running = None
        self._outlet.close()

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Gives the terminal to another program while the block runs; printed text waits."""
        self.flush()
        with set_app(self.app):
            async with in_terminal():
                self._is_aside = True
                try:
                    yield
                finally:
                    self._is_aside = False
                    self._output.write_raw("\r\x1b[K")  # the other program may have left the cursor anywhere
                    if self._state.dialogs:
                        self._state.dialogs[-1].open()  # before it is painted: its keys do not count at once
        self.paint()

    async def show_viewer(self, show: Callable[[AsyncOutput, FocusTracker], Awaitable[None]]) -> None:
        """Gives the window to the viewer until it is closed; printed text waits. Keys typed behind the closing one are kept.

        `show` draws on the alternate screen, and raises EOFError when the terminal is closed.
        """
        async with self.aside():
            self._is_alternate = True
            try:
                await show(self._outlet, self.presence)
            except EOFError:
                self._terminal.signals.hang_up()
            finally:
                self._is_alternate = False
        self.app.key_processor.feed_multiple(get_typeahead(self.app.input))
        self.app.key_processor.process_keys()

    def abandon(self) -> None:
        """Restores the terminal's modes; the process exits at once."""
        if self._is_alternate:
            self._output.write_raw(LEAVE_ALTERNATE)
        if self.marks is not None:
            self.marks.close()
        self.presence.report(False)
        self._output.disable_bracketed_paste()
        self._output.show_cursor()
        self._output.flush()

    def mark_state(self) -> None:
        """Called when work or a question begins or ends."""
        if self.marks is not None:
            self.marks.show("asking" if self._state.is_asking else "working" if self._state.is_working else "idle")

    def on_event(self, event: Event) -> None:
        for component in self._components:
            component.on_event(event)

    def paint(self) -> None:
        """Schedules a repaint. Typed text is painted at once, by the application itself."""
        self._drawn.clear()
        if self._due is None:
            wait_s = max(self._painted_at + PAINT_S - time.monotonic(), 0.0)
            self._due = asyncio.get_running_loop().call_later(wait_s, self.flush)

    def send(self, sequence: str) -> None:
        self._output.write_raw(sequence)
        self._output.flush()

    # Printing above the region

    def write(self, text: str) -> None:
        lines, newline, rest = text.rpartition("\n")
        if newline:
            self._unprinted.append(f"{self._state.tail}{lines}\n")
            self._state.tail = rest
        else:
            self._state.tail += rest
        self.paint()

    def flush(self) -> None:
        """Prints the collected text above the region, unless the terminal is behind."""
        if not self.app.must_wait:
            self._terminal.screen.draw_streamed()
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self.app.must_wait or self._is_aside:
            return
        self._painted_at = time.monotonic()
        self._drawn.clear()
        self._print_now()

    def _print_now(self) -> None:
        text = "".join(self._unprinted)
        self._unprinted.clear()
        if not self.app.is_running:
            self._output.write_raw(text)
            self._output.flush()
            return
        with self._output.frame():
            before, self._begun = self._begun, self._unfinished_line
            keeps = bool(before) and self._begun.startswith(before)
            is_inserted = self.app.renderer.insert(text, self._tail_window, self._tail_rows(), keeps=keeps)
            if is_inserted and (rows := self._simple_tail()) is not None and self._around_tail() == self._painted_around:
                self._output.write_raw("\x1b[0m" if "\x1b" in text else "")
                self.app.renderer.paint_tail(rows)
                return
            if not is_inserted and text:
                self.app.renderer.erase(leave_alternate_screen=False)
                self._output.write_raw(text)
            self.app.redraw()
            if self.app.renderer.leaves_rows(self._below_window):
                self.app.renderer.erase(leave_alternate_screen=False)
                self.app.redraw()

    # Dialogs

    async def ask(self, question: str, *, draft: str = "", may_pass: bool = False) -> str:
        """Asks for one line, which begins with the `draft`. Raises what a LinePanel raises."""
        return await self.show_dialog(LinePanel(question, draft=draft, may_pass=may_pass))

    async def show_dialog(self, panel: Dialog[T]) -> T:
        """Shows the panel in place of everything but the status bar until it is answered; the typed text stays as it was."""
        dialogs = self._state.dialogs
        if self._state.is_ending:
            raise Dismissed
        dialogs.append(panel)
        self._uncover()
        try:
            return await panel.answer
        finally:
            panel.close()
            dialogs.remove(panel)
            self._uncover()

    def _uncover(self) -> None:
        self.mark_state()
        if self._state.dialogs:
            with set_app(self.app):
                self._state.dialogs[-1].open()
        else:
            self.app.layout.focus(self.writing)
        self.flush()
        # the region may have become lower, so all of its rows are painted anew
        if self.app.is_running and not self._is_aside and not self.app.must_wait:
            with self._output.frame():
                self.app.renderer.erase(leave_alternate_screen=False)
                self.app.redraw()

    # Drawing

    def _layout(self, processors: list[Processor]) -> layout.Layout:
        search = SearchToolbar(
            ignore_case=True, backward_search_prompt=lambda: "search: " if _is_narrow() else "search history: "
        )
        control = layout.BufferControl(
            self.writing,
            input_processors=[*processors, BeforeInput(lambda: [("class:prompt", self._prompt_text)]), AfterInput(self._hint)],
            search_buffer_control=search.control,
            preview_search=True,
        )
        writing = layout.Window(
            control,
            wrap_lines=True,
            get_line_prefix=self._line_prefix,
            height=layout.Dimension(min=1, max=WRITING_ROWS),
            dont_extend_height=True,
        )
        unasked = Stack(
            [
                MeasuredContainer(self._tail_window, Condition(lambda: bool(self._unfinished_line))),
                *map(self._container, self._above),
                MeasuredContainer(writing),
                search,
                offered_menu(),
            ]
        )
        rows: list[layout.AnyContainer] = [
            MeasuredContainer(
                layout.DynamicContainer(lambda: self._state.dialogs[-1].container if self._state.dialogs else unasked)
            ),
            MeasuredContainer(
                self._below_window,
                Condition(lambda: not self._state.is_asking or self._output.get_size().rows >= FACTS_FROM_ROWS),
            ),
        ]
        return layout.Layout(Stack(rows), focused_element=writing)

    def _line_prefix(self, line: int, row: int) -> str:
        """Indents all rows of the text but the first below its beginning."""
        return " " * len(self._prompt_text) if (line or row) and self._output.get_size().columns >= INDENT_COLUMNS else ""

    def _container(self, component: Component) -> MeasuredContainer:
        window = _window(lambda: as_fragments(self._rows(component)), component.most_rows)
        return MeasuredContainer(window, Condition(lambda: bool(self._rows(component))))

    def _note_painted(self, app: object) -> None:
        self._painted_around = None if self._state.is_asking else self._around_tail()

    @property
    def _components(self) -> tuple[Component, ...]:
        return (*self._above, self._below) if self._below is not None else self._above

    def _rows(self, component: Component) -> Sequence[Row]:
        """Drawn once after each `paint`, however many keys are pressed until the next one."""
        if (size := self._output.get_size()) != self._drawn_for:
            self._drawn.clear()
            self._drawn_for = size
        if component not in self._drawn:
            width = max(size.columns - 1, 1)  # a full row would wrap
            self._drawn[component] = component.render(width) if size.rows >= component.least_window_rows else ()
        return self._drawn[component]

    def _hint(self) -> StyleAndTextTuples:
        """A hint, or what one can type, in the empty composer."""
        if get_app().current_buffer.text or not self._prompt_text:
            return []
        room = self._output.get_size().columns - len(PROMPT)
        placeholder = next((text for text in PLACEHOLDERS if len(text) < room), "")
        return [("class:hint", self._state.hint or placeholder)]

    @property
    def _unfinished_line(self) -> str:
        return f"{self._state.tail}{self._state.unfinished}"

    def _growing(self) -> StyleAndTextTuples:
        # characters of one style are joined: each piece costs in every frame, and prompt_toolkit makes one of each character
        coloured = self._newest_rows()
        if "\x1b" not in coloured:
            return [("", coloured)]
        characters = to_formatted_text(ANSI(coloured))
        return [(style, "".join(each[1] for each in of_style)) for style, of_style in groupby(characters, itemgetter(0))]

    def _newest_rows(self) -> str:
        return newest_rows(self._unfinished_line, self._output.get_size().columns, TAIL_ROWS)

    def _tail_rows(self) -> int:
        """An estimate: what is painted counts."""
        if self._state.is_asking or not self._unfinished_line:
            return 0
        taken = rows_taken(f"{self._newest_rows()}\n", self._output.get_size().columns)
        return min(taken or 1, TAIL_ROWS)

    def _simple_tail(self) -> Sequence[str] | None:
        """Rows of the tail; None if they need more than printing them."""
        if self._state.is_asking:
            return None
        lines, columns = self._newest_rows().split("\n") if self._unfinished_line else [], self._output.get_size().columns
        if not all(line.isascii() and line.isprintable() for line in lines):
            return None
        rows = [line[at : at + columns] for line in lines for at in range(0, max(len(line), 1), columns)]
        return rows if len(rows) == self._tail_rows() else None

    def _around_tail(self) -> object:
        """All that `paint` may have changed, except for the tail."""
        return self._output.get_size(), self._state.hint, self._state.palette, [*map(self._rows, self._components)]


def _window(text: Callable[[], AnyFormattedText], most_rows: int) -> layout.Window:
    return layout.Window(
        layout.FormattedTextControl(text), wrap_lines=True, height=layout.Dimension(max=most_rows), dont_extend_height=True
    )


MENU_ROWS = 8
LEAST_COLUMNS = 8


def offered_menu() -> layout.ConditionalContainer:
    window = layout.Window(
        CompletionRows(shows_help=lambda: not _is_narrow()),
        width=layout.Dimension(min=LEAST_COLUMNS),
        height=layout.Dimension(min=1, max=MENU_ROWS),
        scroll_offsets=layout.ScrollOffsets(top=1, bottom=1),
        right_margins=[layout.ScrollbarMargin()],
        dont_extend_width=True,
        style="class:completion-menu",
    )
    return layout.ConditionalContainer(window, filter=has_completions & ~is_done)


def _is_narrow() -> bool:
    return get_app().output.get_size().columns < NARROW_COLUMNS


class MeasuredContainer(layout.ConditionalContainer):
    """Measures its height once a frame; a split asks for it two or three times."""

    def __init__(self, content: layout.AnyContainer, filter: FilterOrBool = True) -> None:
        super().__init__(content, filter)
        self._measured_for = (-1, 0)
        """The frame and the width of the last measurement."""
        self._height = layout.Dimension()

    def preferred_height(self, width: int, max_available_height: int) -> layout.Dimension:
        measured_for = (get_app().render_counter, width)
        if measured_for != self._measured_for or self._height.preferred > max_available_height:
            self._height = super().preferred_height(width, max_available_height)
            self._measured_for = measured_for
        return self._height
