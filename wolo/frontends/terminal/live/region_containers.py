"""Containers of the live region: the completion menu, the search line, and one that is measured once a frame."""

from __future__ import annotations

from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import FilterOrBool, has_completions, is_done
from prompt_toolkit.layout import AnyContainer, ConditionalContainer, Dimension, ScrollbarMargin, ScrollOffsets, Window
from prompt_toolkit.widgets import SearchToolbar

from wolo.frontends.terminal.io.prompt_toolkit_adapter import CompletionRows
from wolo.frontends.terminal.panels.panel import NARROW_COLUMNS

MENU_ROWS = 8
LEAST_COLUMNS = 8


def offered_menu() -> ConditionalContainer:
    window = Window(
        _Names(),
        width=Dimension(min=LEAST_COLUMNS),
        height=Dimension(min=1, max=MENU_ROWS),
        scroll_offsets=ScrollOffsets(top=1, bottom=1),
        right_margins=[ScrollbarMargin()],
        dont_extend_width=True,
        style="class:completion-menu",
    )
    return ConditionalContainer(window, filter=has_completions & ~is_done)


def search_line() -> SearchToolbar:
    return SearchToolbar(ignore_case=True, backward_search_prompt=lambda: "search: " if _is_narrow() else "search history: ")


def _is_narrow() -> bool:
    return get_app().output.get_size().columns < NARROW_COLUMNS


class _Names(CompletionRows):
    def shows_help(self) -> bool:
        return not _is_narrow()


class MeasuredContainer(ConditionalContainer):
    """Measures its height once a frame; a split asks for it two or three times."""

    def __init__(self, content: AnyContainer, filter: FilterOrBool = True) -> None:
        super().__init__(content, filter)
        self._measured_for = (-1, 0)
        """The frame and the width of the last measurement."""
        self._height = Dimension()

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        measured_for = (get_app().render_counter, width)
        if measured_for != self._measured_for or self._height.preferred > max_available_height:
            self._height = super().preferred_height(width, max_available_height)
            self._measured_for = measured_for
        return self._height
