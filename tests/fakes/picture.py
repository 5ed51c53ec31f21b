"""A picture of what a terminal shows, as SVG: the same for the same screen, whatever time it took."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from xml.sax.saxutils import escape

from pyte.screens import Char

from tests.fakes.screen import Terminal

CELL_WIDTH, ROW_HEIGHT, MARGIN = 8.4, 19, 16
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
ON_DARK = {
    "background": "#14161b",
    "default": "#d6d9e0",
    "black": "#14161b",
    "red": "#e06c75",
    "green": "#8bc34a",
    "brown": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#d6d9e0",
    "brightblack": "#7f848e",
    "brightred": "#ff7b86",
    "brightgreen": "#a5d86e",
    "brightbrown": "#f0d399",
    "brightyellow": "#f0d399",
    "brightblue": "#82c4ff",
    "brightmagenta": "#dd96f0",
    "brightcyan": "#7fd4df",
    "brightwhite": "#ffffff",
}
ON_LIGHT = {
    "background": "#ffffff",
    "default": "#24292f",
    "red": "#b3202c",
    "blue": "#0550ae",
    "magenta": "#8250df",
}
"""Wolo takes no other of the sixteen there."""
SECONDS = re.compile(r"\b\d+(\.\d)? s\b")
"""Seconds differ from run to run."""


def picture(terminal: Terminal, *, colours: Mapping[str, str] = ON_DARK) -> str:
    used = [at for at, row in enumerate(terminal.cells) if any(cell.data.strip() for cell in row)]
    rows = [list(row) for row in terminal.cells[used[0] : used[-1] + 1]]
    width, height = len(rows[0]) * CELL_WIDTH + 2 * MARGIN, len(rows) * ROW_HEIGHT + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="wolo at work">',
        f'<rect width="100%" height="100%" rx="8" fill="{colours["background"]}"/>',
        f'<g font-family="{FONT}" font-size="14" fill="{colours["default"]}">',
    ]
    for number, row in enumerate(rows):
        lines += run_by_run(row, MARGIN + (number + 0.75) * ROW_HEIGHT, colours)
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"


def run_by_run(row: list[Char], y: float, colours: Mapping[str, str]) -> Iterator[str]:
    """Each run of cells that look alike, at its own place: no font can shift what follows."""
    at = 0
    looks = groupby(row, key=lambda cell: (cell.fg, cell.bg, cell.bold, cell.italics, cell.reverse))
    for (fg, bg, is_bold, is_italic, is_reversed), cells in looks:
        text = "".join(cell.data for cell in cells)
        size = len(text)
        has_ground = is_reversed or bg != "default"
        text = text if has_ground else text.rstrip()
        if text:
            x, run = MARGIN + at * CELL_WIDTH, len(text) * CELL_WIDTH
            ink, weight = colours.get(fg, f"#{fg}"), ' font-weight="bold"' if is_bold else ""
            weight += ' font-style="italic"' if is_italic else ""
            ground = colours["background"] if bg == "default" else f"#{bg}"
            if is_reversed:
                ink, ground = ground, ink
            if has_ground:
                yield f'<rect x="{x:g}" y="{y - 14:g}" width="{run:g}" height="{ROW_HEIGHT}" fill="{ground}"/>'
            shown = escape(SECONDS.sub(lambda found: "0.3 s" if found[1] else "3 s", text))
            yield (f'<text x="{x:g}" y="{y:g}" textLength="{run:g}" fill="{ink}"{weight} xml:space="preserve">{shown}</text>')
        at += size
