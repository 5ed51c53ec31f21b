"""Wraps lines at spaces: words, addresses and pieces of code stay whole where a row has room for them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

_LEAD = r"\s*(?:(?:[-*+•☐☑]|\d{1,9}[.)])\s+(?:[☐☑] )?|(?:> ?)+)?"
"""The beginning of a line by which its other rows are indented: blanks, the mark of an item or a quotation."""
_TOKEN = re.compile(r"( *)([^ ]+)| +\Z")
LEAST_WORDS = 8
"""Cells of text in a row; where a mark leaves less, the other rows begin at the margin."""
NARROW_LEAD = 4


class Break(NamedTuple):
    start: int
    end: int
    """End of the blanks that the break replaces."""
    lead: str
    """Begins the next row."""


def breaks(line: str, columns: int, *, column: int = 0, lead: str | None = None) -> tuple[list[Break], int]:
    """The places to break a line for rows of so many cells, and the column behind its end.

    `column`: cells taken in the first row. `lead`: the beginning of the other rows; by default it depends on the line.
    """
    lead = lead_of(line, columns) if lead is None else lead
    breaks: list[Break] = []
    begins = len(line) - len(line.lstrip(" "))
    for token in _TOKEN.finditer(line):
        if (word := token[2]) is None:
            if column + len(token[0]) > columns:
                breaks.append(Break(token.start(), token.end(), ""))
                column = 0
            else:
                column += len(token[0])
            continue
        gap, size = len(token[1]), cells(word)
        is_first = token.start(2) <= begins and column == 0
        fits = column + gap + size <= columns
        if not fits and not is_first and (size <= columns - cells(lead) or size == len(word)):
            mark = "" if columns - cells(lead) < size <= columns else lead  # it fits a row only without the lead
            breaks.append(Break(token.start(), token.start(2), mark))
            column, gap = cells(mark), 0
        column += gap + size
        if column > columns:
            column = (column - 1) % columns + 1
    return breaks, column


def lead_of(line: str, columns: int) -> str:
    found = re.match(_LEAD, line)
    mark = found[0] if found else ""
    mark = mark if ">" in mark else " " * cells(mark)
    return mark if cells(mark) + LEAST_WORDS <= columns else ""


def lead_of_column(line: str, columns: int) -> str:
    """Puts further rows under the last column of a table; where that leaves too little room, a little inside."""
    if (found := re.match(r".*\S {2,}(?=\S)", line)) is None:
        return lead_of(line, columns)
    width = cells(found[0])
    fits = width * 2 <= columns and all(cells(word) <= columns - width for word in line[found.end() :].split())
    return " " * (width if fits else NARROW_LEAD)


def wrap(text: str, columns: int, lead_of: Callable[[str, int], str] = lead_of) -> str:
    rows: list[str] = []
    for line in text.split("\n"):
        at, lead = 0, ""
        for each in breaks(line, columns, lead=lead_of(line, columns))[0]:
            rows.append(lead + line[at : each.start])
            at, lead = each.end, each.lead
        rows.append(lead + line[at:])
    return "\n".join(rows)


def cells(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata.combining(char) or char in "\u200b\u200c\u200d\ufe0e\ufe0f\u2060":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
