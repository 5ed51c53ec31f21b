"""Lays out Markdown tables in aligned columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.text import Text

from wolo.frontends.terminal.render.markdown_syntax import parser, spans

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.table import Table

BETWEEN = 3
"""Cells between two columns."""
NARROWEST = 5
"""Minimum cells of a wrapped column; if the window has less room, the table is printed as its source."""
ROWS_TO_SEE = 12
"""Rows to collect before the column widths become final."""
LONGEST_ROW = 5000
"""Characters; a longer line is not a row."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of a table, laid out for the current window; cells are wrapped, never cut."""

    aligned: Sequence[JustifyMethod]
    rows: Sequence[Sequence[Text]]
    """Begins with the header."""
    widths: Sequence[int]
    source: str
    has_header: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Segment]:
        if not (shares := share(self.widths, options.max_width - BETWEEN * (len(self.widths) - 1))):
            yield Segment(self.source)
            return
        from rich import box  # noqa: PLC0415  # slow to load, and few answers have a table
        from rich.table import Table  # noqa: PLC0415  # the same

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=self.has_header, header_style="bold")
        for header, justify, width in zip(self.rows[0], self.aligned, shares, strict=True):
            table.add_column(header, justify=justify, overflow="fold", width=width)
        for row in self.rows[1:]:
            table.add_row(*row)
        yield table


class GrowingTable:
    """Collects streamed rows until the column widths are known, then draws each row at once."""

    def __init__(self, header: str, delimiters: str) -> None:
        self._head = f"{header}\n{delimiters}"
        self._rows: list[str] = []
        self._widths: list[int] = []
        """Column widths of the first rows drawn; empty until then."""

    def add(self, row: str) -> Grid | None:
        self._rows.append(row)
        return self.draw() if self._widths or len(self._rows) >= ROWS_TO_SEE else None

    def draw(self) -> Grid | None:
        """Returns the rows not drawn yet; None when there are none."""
        if (begun := bool(self._widths)) and not self._rows:
            return None
        written = "\n".join([self._head, *self._rows])
        aligned, cells = _parse(written)
        source = "\n".join(self._rows) if begun else written
        self._rows = []
        widths = [max(1, *(cell_len(row[column].plain) for row in cells)) for column in range(len(aligned))]
        if begun:
            widths = [max(pair) for pair in zip(widths, self._widths, strict=True)]
        else:
            self._widths = widths
        return Grid(aligned, cells, widths, f"{source}\n", not begun)


def share(widths: Sequence[int], room: int) -> list[int]:
    """Returns column widths: narrow columns in full, an equal share for the others. Empty when one is too narrow."""
    shares = list(widths)
    for before, column in enumerate(sorted(range(len(widths)), key=widths.__getitem__)):
        shares[column] = min(widths[column], room // (len(widths) - before))
        if shares[column] < min(widths[column], NARROWEST):
            return []
        room -= shares[column]
    return shares


def _parse(source: str) -> tuple[list[JustifyMethod], list[list[Text]]]:
    """Returns the alignment of each column and the cells of each row, beginning with the header."""
    aligned: list[JustifyMethod] = []
    rows: list[list[Text]] = []
    cell: JustifyMethod = "left"
    for token in parser().parse(source):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            style = str(token.attrGet("style") or "")
            named: dict[str, JustifyMethod] = {"text-align:right": "right", "text-align:center": "center"}
            cell = named.get(style, "left")
        elif token.type == "inline" and rows:
            if len(rows) == 1:
                aligned.append(cell)
            rows[-1].append(spans(token.children or []))
    return aligned, rows
