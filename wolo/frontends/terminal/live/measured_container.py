"""Measures the height of a container once a frame; a split asks for it two or three times."""

from __future__ import annotations

from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import FilterOrBool
from prompt_toolkit.layout import AnyContainer, ConditionalContainer, Dimension


class MeasuredContainer(ConditionalContainer):
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
