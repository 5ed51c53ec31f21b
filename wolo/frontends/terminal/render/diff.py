"""Draws the change of a file: numbered, in the colours of its language, on soft backgrounds, and foldable."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from wolo.frontends.terminal.io.theme import ADDED
from wolo.frontends.terminal.render.changes import CHANGED, STYLES, Gutter, Line, changed_words
from wolo.frontends.terminal.render.code import coloured
from wolo.messages.terminal_text import clean
from wolo.tools.tool_values import Diff

MARGIN = "  "
MAX_LINE_CHARS = 500
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
BETWEEN = "⋮"
"""Stands for the lines between two places of a file."""


def diff_lines(view: Diff, most_rows: int | None, columns: int = 80) -> tuple[list[Text], int]:
    """The first lines of it, as many as fit so many rows, and how many are left."""
    lines = list(_lines(view))
    gutter = Gutter(lines)
    shown = lines[: len(lines) if most_rows is None else max(most_rows, 1)]
    after = iter(coloured([each.text for each in shown if each.sign in ("+", " ")], view.path))
    drawn = [_drawn(each, gutter, next(after) if each.sign in ("+", " ") else None) for each in shown]
    for row, pieces in changed_words(shown):
        place = len(drawn[row]) - len(shown[row].text)
        for piece, is_changed in pieces:
            if is_changed:
                drawn[row].stylize(CHANGED[shown[row].sign], place, place + len(piece))
            place += len(piece)
    drawn = [_short(line) for line in drawn]
    if most_rows is not None:
        drawn = drawn[: _fitting(drawn, most_rows, columns)]
    return drawn, len(lines) - len(drawn)


def _lines(view: Diff) -> Iterator[Line]:
    """The text of a unified diff, whose places become numbers."""
    before = after = 1
    is_first = True
    for line in clean(view.text).split("\n"):
        sign, rest = line[:1], line[1:]
        if hunk := _HUNK.match(line):
            before, after = max(int(hunk[1]), 1), max(int(hunk[2]), 1)
            if not is_first:
                yield Line(BETWEEN, "")
        elif sign == "-":
            yield Line(sign, rest, before)
            before += 1
        elif sign in ("+", " "):
            yield Line(sign, rest, after)
            after += 1
            before += sign == " "
        else:
            yield Line(sign, rest)
        is_first = False


def _drawn(line: Line, gutter: Gutter, code: Text | None) -> Text:
    text = Text(MARGIN).append_text(gutter.begin(line, STYLES.get(line.sign, "dim")))
    match line.sign:
        case "+":
            text.append_text(code or Text(line.text)).stylize(f"on {ADDED}", len(MARGIN))
        case " ":
            text.append_text(code or Text(line.text)).stylize("dim")
        case _:
            text.append(line.text, STYLES.get(line.sign, "dim"))
    return text


def _fitting(lines: list[Text], rows: int, columns: int) -> int:
    """How many of the lines: at least one, or nothing would tell what has changed."""
    for count, line in enumerate(lines):
        rows -= max(-(-line.cell_len // columns), 1)
        if rows < 0:
            return max(count, 1)
    return len(lines)


def _short(line: Text) -> Text:
    return line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS].append("…", "dim")
