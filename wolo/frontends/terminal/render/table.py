"""Tables: the one block that is laid out, because its columns must stand below each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from wolo.frontends.terminal.render.inline import parser, spans

if TYPE_CHECKING:
    from rich.console import JustifyMethod

ROWS_TO_SEE = 12
"""How many rows are waited for before the columns get their widths for good."""
LONGEST_ROW = 5000
"""Characters; nothing longer is taken for a row."""


class GrowingTable:
    """Rows as they come; they are drawn once there are enough of them to know how wide the columns must be, then one by one."""

    def __init__(self, header: str, delimiters: str) -> None:
        self._head = f"{header}\n{delimiters}"
        self._rows: list[str] = []
        self._widths: list[int] | None = None

    def add(self, row: str) -> Table | None:
        self._rows.append(row)
        return self.draw() if self._widths or len(self._rows) >= ROWS_TO_SEE else None

    def draw(self) -> Table | None:
        """What has not been drawn yet; None when there is nothing."""
        begun = self._widths is not None
        if begun and not self._rows:
            return None
        aligned, cells = _parse("\n".join([self._head, *self._rows]))
        self._rows = []
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=not begun, header_style="bold")
        widths = [max(cell_len(row[column].plain) for row in cells) for column in range(len(aligned))]
        self._widths = self._widths or widths
        for column, justify in enumerate(aligned):
            table.add_column(cells[0][column], justify=justify, overflow="fold", min_width=min(self._widths[column], 40))
        for row in cells[1:]:
            table.add_row(*row)
        return table


def _parse(source: str) -> tuple[list[JustifyMethod], list[list[Text]]]:
    """How each column is aligned, and the cells of every row, the header's first."""
    aligned: list[JustifyMethod] = []
    rows: list[list[Text]] = []
    cell: JustifyMethod = "left"
    for token in parser().parse(source):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            cell = _alignment(str(token.attrGet("style") or ""))
        elif token.type == "inline" and rows:
            if len(rows) == 1:
                aligned.append(cell)
            rows[-1].append(spans(token.children or []))
    return aligned, rows


def _alignment(style: str) -> JustifyMethod:
    named: dict[str, JustifyMethod] = {"text-align:right": "right", "text-align:center": "center"}
    return named.get(style, "left")
