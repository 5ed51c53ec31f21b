"""How lines get above the foot without a word about the foot: rows are inserted for them, and it moves down as it is painted.

before                 after "…end of the first line\\nsecond line\\n", and "thi" of a third one
┌ the beginning of a   the beginning of a line, end of the first line   ← its row is the terminal's from now on
│ writing · 3 s        second line                                      ← inserted
└ ›                  ┌ thi                                              ← inserted empty, for the foot to paint
                     │ writing · 3 s
                     └ ›
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

COLOURS = re.compile(r"\x1b\[[0-9;:]*m|\x1b\[K|\x1b\]8;[^\x1b\x07]*\x1b\\")
"""The sequences that are among the text of a row: colours, and both ends of a hyperlink."""
LINKS = re.compile(r"\x1b\]8;[^\x1b\x07]*\x1b\\")
_COLOURED_CHAR = re.compile(r"(?:\x1b\[[0-9;:]*m)*(?P<char>[^\x1b]?)")
_MOST_COLOURS = 8
"""Characters of a text for each that is seen, with its colours; where there are more, less is seen."""
_SIMPLE_UNTIL = "\u0590"
"""Latin, Greek and Cyrillic lie before it: a letter there takes one cell everywhere."""


class Shown(NamedTuple):
    """The foot as it stands in its window."""

    height: int
    row: int
    """The cursor's, from the first one of the foot."""
    tail: int
    """How many of its first rows belong to a line that is not finished."""
    begun: str
    """What stands in that row, where it is one row without colours."""

    def continues_in(self, text: str) -> bool:
        """The first line of it stands there already, as far as it goes."""
        return self.tail == 1 and bool(self.begun) and self.begun.isascii() and text.startswith(self.begun)


def print_above(text: str, taken: int, foot: Shown, tail: int) -> str:
    """Whole lines, which take so many rows, above the foot; its tail has so many rows then, all of them empty.

    The cursor is left at its first one.
    """
    if foot.continues_in(text):
        there = len(foot.begun) - 1  # its last character is written again: behind a full row there is no place to go to
        edited = f"{_move(taken - 1 + tail, 'L')}\x1b[A{_move(there, 'C')}{text[there:-1]}"
        return f"{_go(foot, 1, taken + tail - 1)}{edited}\n"
    more = taken + tail - foot.tail
    return f"{_go(foot, 0, more)}{_emptied(foot.tail, more)}{text}"


def move_down(text: str, taken: int, foot: Shown) -> str:
    """Whole lines above the foot, which stays as it is; the cursor is left at its first row."""
    return f"{_go(foot, 0, taken)}{_move(taken, 'L')}{text}"


def grow(foot: Shown, more: int) -> str:
    """Its tail has so many more rows at its end, or less; the cursor is left behind those that stay."""
    if more < 0:
        return f"{_go(foot, foot.tail + more, 0)}{_move(-more, 'M')}"
    return f"{_go(foot, foot.tail, more)}{_move(more, 'L')}"


def _emptied(rows: int, more: int) -> str:
    """So many rows from the cursor on are empty, and then they are so many more, or less, but at least one.

    The first one is never deleted: screen keeps a copy of what is deleted at the top of its window.
    """
    erased, last = "\x1b[B".join(["\x1b[K"] * rows), rows - 1
    if more < 0:
        left = rows + more
        return f"{erased}{_move(last - left, 'A')}{_move(-more, 'M')}{_move(left, 'A')}"
    return f"{erased}{_move(last, 'A')}{_move(more, 'L')}"


def _go(foot: Shown, row: int, more: int) -> str:
    """To the beginning of a row, once there are so many more below the foot."""
    if more <= 0:
        return f"{_move(foot.row - row, 'A')}{_move(row - foot.row, 'B')}\r"
    last = foot.height - 1
    newlines = "\n" * more
    return f"{_move(last - foot.row, 'B')}{newlines}{_move(last + more - row, 'A')}\r"


def rows_taken(text: str, columns: int) -> int | None:
    """How many rows whole lines take in a window of so many columns; None: terminals differ, or it is more than text."""
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
        if (of_line := _wrapped(least, columns)) != _wrapped(most, columns):
            return None
        rows += of_line
    return rows


def last_rows(line: str, columns: int, most: int) -> str:
    """The end of a line that has more rows than that: it begins where one of them does."""
    room = most * columns
    surplus = len(COLOURS.sub("", line)) - room
    if surplus <= 0:
        return line
    end = line[-room * _MOST_COLOURS :]
    starts = [found.start() for found in _COLOURED_CHAR.finditer(end) if found["char"]]
    left = room - -surplus % columns
    return end[starts[-left] if left <= len(starts) else 0 :]


def _cells(char: str) -> tuple[int, int]:
    """How many it takes at least and at most: terminals disagree about symbols, and about what belongs to a character."""
    width, kind = unicodedata.east_asian_width(char), unicodedata.category(char)
    if kind[0] == "M" or kind == "Sk":
        return 0, 2
    if width in ("W", "F"):
        return (2, 2) if kind[0] in "LNP" else (1, 2)
    return (1, 1) if char < _SIMPLE_UNTIL and width != "A" else (0, 2)


def _wrapped(widths: Iterable[int], columns: int) -> int:
    """A wide character never stands on two rows."""
    rows, column = 1, 0
    for width in widths:
        if column + width > columns:
            rows, column = rows + 1, 0
        column += width
    return rows


def _move(count: int, letter: str) -> str:
    if count <= 0:
        return ""
    return f"\x1b[{count if count > 1 else ''}{letter}"
