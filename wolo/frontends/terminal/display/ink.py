"""Writes coloured text to the terminal: wrapped, with hyperlinks, in colours that can be read on its background."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain

from rich.console import Console
from rich.segment import Segment, Segments
from rich.text import Text

from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.frontends.terminal.io.theme import Depth, shaded
from wolo.frontends.terminal.render.links import link_addresses, takes_links
from wolo.frontends.terminal.render.table import Grid
from wolo.frontends.terminal.render.wrap import Wrapper
from wolo.messages.terminal_text import clean


class Ink:
    def __init__(self, stdout: Stdout, *, is_light: bool) -> None:
        self._stdout, self._is_light = stdout, is_light
        self._has_links = stdout.has_colours and takes_links(os.environ)
        self._wrapper = Wrapper()
        self._console = Console(
            file=stdout,  # type: ignore[arg-type]  # as much of a text file as Rich needs
            color_system="auto" if stdout.has_colours else None,
            highlight=False,
            markup=False,
            emoji=False,
        )
        self._depth: Depth = self._console.color_system or ""  # type: ignore[assignment]  # Rich has one more, for Windows

    def write(self, text: Text) -> None:
        """As segments, because Rich would turn tabs into blanks; the last gate for whatever nobody has cleaned before."""
        if self._stdout.can_move:
            text = self._wrapper.wrap(text, self._stdout.columns)
        if self._has_links:
            link_addresses(text)
        self._put(Segment(clean(each.text), each.style) for each in text.render(self._console))

    def table(self, grid: Grid) -> None:
        if self._has_links:
            for cell in chain.from_iterable(grid.rows):
                link_addresses(cell)
        self._put(self._console.render(grid))
        self._wrapper = Wrapper()

    def _put(self, segments: Iterable[Segment]) -> None:
        self._console.print(Segments(map(self._shaded, segments)), soft_wrap=True, end="")

    def _shaded(self, segment: Segment) -> Segment:
        style = segment.style and shaded(segment.style, on_light=self._is_light, depth=self._depth)
        return Segment(segment.text, style, segment.control)
