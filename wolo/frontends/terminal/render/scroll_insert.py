"""Inserts lines above the live region without repainting it: inserted rows push it down.

before                 after "…end of the first line\\nsecond line\\n", and "thi" of a third one
┌ the beginning of a   the beginning of a line, end of the first line   ← now part of the scrollback
│ writing · 3 s        second line                                      ← inserted
└ ›                  ┌ thi                                              ← inserted empty, painted by the live region
                     │ writing · 3 s
                     └ ›
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

COLOURS = re.compile(r"\x1b\[[0-9;:]*m|\x1b\[K|\x1b\](?:8|133);[^\x1b\x07]*\x1b\\")
"""Escape sequences within a row: colours, both ends of a hyperlink, and marks of prompts."""
LINKS = re.compile(r"\x1b\](?:8|133);[^\x1b\x07]*\x1b\\")
_COLOURED_CHAR = re.compile(r"(?:\x1b\[[0-9;:]*m)*(?P<char>[^\x1b]?)")
_MOST_COLOURS = 8
"""Characters per visible character, colours included; a text with more is cut shorter."""
_SIMPLE_UNTIL = "\u0590"
"""Latin, Greek and Cyrillic letters, before this one, take one cell in every terminal."""


class Shown(NamedTuple):
    """State of the live region (the foot) on the screen."""

    height: int
    row: int
    """Row of the cursor, counted from the first row of the foot."""
    tail: int
    """Number of first rows that show an unfinished line."""
    begun: str
    """Text of that row, if it is a single row without colours."""

    def continues_in(self, text: str) -> bool:
        """True when the foot already shows the beginning of the text."""
        return self.tail == 1 and bool(self.begun) and self.begun.isascii() and text.startswith(self.begun)


def print_above(text: str, taken: int, foot: Shown, tail: int) -> str:
    """Prints whole lines that take `taken` rows above the foot, whose first `tail` rows are empty afterwards.

    The cursor stays at the first row of the tail.
    """
    if foot.continues_in(text):
        there = len(foot.begun) - 1  # rewrite the last character: the cursor cannot move behind a full row
        edited = f"{_move(taken - 1 + tail, 'L')}\x1b[A{_move(there, 'C')}{text[there:-1]}"
        return f"{_go(foot, 1, taken + tail - 1)}{edited}\n"
    # Rows of the tail are emptied, then rows are added or removed, and one remains. The first one is never deleted: GNU screen
    # keeps a copy of rows deleted at the top of its window.
    more, last = taken + tail - foot.tail, foot.tail - 1
    left = foot.tail + min(more, 0)
    resized = (
        f"{_move(last - left, 'A')}{_move(-more, 'M')}{_move(left, 'A')}" if more < 0 else f"{_move(last, 'A')}{_move(more, 'L')}"
    )
    erased = "\x1b[B".join(["\x1b[K"] * foot.tail)
    return f"{_go(foot, 0, more)}{erased}{resized}{text}"


def move_down(text: str, taken: int, foot: Shown) -> str:
    """Prints whole lines above the foot, which moves down unchanged; the cursor stays at its first row."""
    return f"{_go(foot, 0, taken)}{_move(taken, 'L')}{text}"


def grow(foot: Shown, more: int) -> str:
    """Adds rows at the end of the tail, or removes them if `more` is negative; the cursor stays below the tail."""
    if more < 0:
        return f"{_go(foot, foot.tail + more, 0)}{_move(-more, 'M')}"
    return f"{_go(foot, foot.tail, more)}{_move(more, 'L')}"


def _go(foot: Shown, row: int, more: int) -> str:
    """Moves to the beginning of a row, after adding `more` rows below the foot."""
    if more <= 0:
        return f"{_move(foot.row - row, 'A')}{_move(row - foot.row, 'B')}\r"
    last = foot.height - 1
    newlines = "\n" * more
    return f"{_move(last - foot.row, 'B')}{newlines}{_move(last + more - row, 'A')}\r"


def move(at: tuple[int, int], to: tuple[int, int]) -> str:
    """Moves between cells (column, row) of the foot; the cursor may stand behind a full row."""
    down = to[1] - at[1]
    across = f"\r{_move(to[0], 'C')}" if to[0] < at[0] else _move(to[0] - at[0], "C")
    return f"{_move(down, 'B')}{_move(-down, 'A')}{across}"


def rows_taken(text: str, columns: int) -> int | None:
    """Returns the number of rows of whole lines; None when terminals differ or the text has control characters."""
    if not text.endswith("\n"):
        return None if text else 0
    rows = 0
    for line in COLOURS.sub("", text[:-1]).split("\n"):
        if not line.isprintable():
            return None
        if line.isascii():
            rows += max(-(-len(line) // columns), 1)
            continue
        least, most = zip(*map(_cells, line), strict=True)
        if (of_line := _num_rows(least, columns)) != _num_rows(most, columns):
            return None
        rows += of_line
    return rows


def last_rows(line: str, columns: int, most: int) -> str:
    """Returns the end of a line, at most `most` rows, beginning at the start of a row."""
    room = most * columns
    surplus = len(COLOURS.sub("", line)) - room
    if surplus <= 0:
        return line
    end = line[-room * _MOST_COLOURS :]
    starts = [found.start() for found in _COLOURED_CHAR.finditer(end) if found["char"]]
    left = room - -surplus % columns
    return end[starts[-left] if left <= len(starts) else 0 :]


def _cells(char: str) -> tuple[int, int]:
    """Returns the least and most cells of a character: terminals disagree about symbols and combining characters."""
    width, kind = unicodedata.east_asian_width(char), unicodedata.category(char)
    if kind[0] == "M" or kind == "Sk":
        return 0, 2
    if width in ("W", "F"):
        return (2, 2) if kind[0] in "LNP" else (1, 2)
    return (1, 1) if char < _SIMPLE_UNTIL and width != "A" else (0, 2)


def _num_rows(widths: Iterable[int], columns: int) -> int:
    """Counts rows; a wide character is never split over two."""
    rows, column = 1, 0
    for width in widths:
        if column + width > columns:
            rows, column = rows + 1, 0
        column += width
    return rows


def _move(num_rows: int, letter: str) -> str:
    if num_rows <= 0:
        return ""
    return f"\x1b[{num_rows if num_rows > 1 else ''}{letter}"
