"""Draws diffs of files: removed and added lines, numbered, highlighted, with the words that differ marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from wolo.frontends.terminal.io.theme import STYLES
from wolo.frontends.terminal.render.code_blocks import highlight
from wolo.messages.terminal_text import clean, escaped_pieces
from wolo.tools.tool_values import Diff
from wolo.workspace.files.encodings import split_lines
from wolo.workspace.files.line_diff import compare

LINE_STYLES = {"-": "removed line", "+": "added line", " ": "dim", "@": "accent"}
WORD_STYLES = {"-": "removed word", "+": "added word"}
"""For the words that differ, by the sign of their line."""
TAB = "→   "
"""Makes a tab visible where a change has to be approved."""
MOST_WORDS = 400
"""Longer lines are not compared word by word."""
MOST_LINE_CHARS = 500
LIKE_ENOUGH = 0.5
"""Share of two lines that must be equal for their words to be compared. Blanks do not count."""
CONTEXT_LINES = 3
"""Unchanged lines shown before and after a change."""
HUNK_GAP = "⋮"

_WORDS = re.compile(r"\w+|\s+|.", re.DOTALL)
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")

Pieces = list[tuple[str, bool]]
"""A line in pieces; True marks those that the line it is compared with does not have."""


class DiffLine(NamedTuple):
    sign: str
    """`-`, `+` or another first character."""
    text: str
    number: int | None = None
    """In the old file for a removed line, in the new file for any other."""


# The result of a call: a unified diff


def diff_lines(view: Diff, most_rows: int | None, columns: int = 80) -> tuple[list[Text], int]:
    """The first lines of a diff that fit so many rows, and how many are left."""
    lines = list(_parse(view))
    gutter = Gutter(lines)
    shown = lines[: len(lines) if most_rows is None else max(most_rows, 1)]
    after = iter(highlight([each.text for each in shown if each.sign in ("+", " ")], view.path))
    drawn: list[Text] = []
    for each in shown:
        style = LINE_STYLES.get(each.sign, "dim")
        text = gutter.begin(each, style)
        if each.sign in ("+", " "):
            text.append_text(next(after)).stylize("added ground" if each.sign == "+" else "dim")
        else:
            text.append(each.text, style)
        drawn.append(text)
    for row, pieces in changed_words(shown):
        at = len(drawn[row]) - len(shown[row].text)
        for piece, is_changed in pieces:
            if is_changed:
                drawn[row].stylize(WORD_STYLES[shown[row].sign], at, at + len(piece))
            at += len(piece)
    drawn = [line if len(line) <= MOST_LINE_CHARS else line[:MOST_LINE_CHARS].append("…", "dim") for line in drawn]
    rows = 0
    for count, line in enumerate(drawn if most_rows is not None else ()):
        rows += max(-(-line.cell_len // max(columns, 1)), 1)
        if most_rows is not None and rows > most_rows:
            drawn = drawn[: max(count, 1)]
            break
    return drawn, len(lines) - len(drawn)


def _parse(view: Diff) -> Iterator[DiffLine]:
    """The lines of a unified diff; hunk headers become line numbers."""
    before = after = 1
    is_first = True
    for line in clean(view.text).split("\n"):
        sign, rest = line[:1], line[1:]
        if hunk := _HUNK.match(line):
            before, after = max(int(hunk[1]), 1), max(int(hunk[2]), 1)
            if not is_first:
                yield DiffLine(HUNK_GAP, "")
        elif sign == "-":
            yield DiffLine(sign, rest, before)
            before += 1
        elif sign in ("+", " "):
            yield DiffLine(sign, rest, after)
            after += 1
            before += sign == " "
        else:
            yield DiffLine(sign, rest)
        is_first = False


# A change that has to be approved: complete, with every hidden character visible


def replacement(old: str, new: str, *, first: int | None = None) -> list[Text]:
    """The change from one text to another; `first` is the number of its first line."""
    before, after = (text.split("\n") if text else [] for text in (old, new))
    if old.endswith("\n") and new.endswith("\n"):
        before, after = before[:-1], after[:-1]
    return signed_lines(_compared_lines(before, after, first))


def rewritten(old: str, new: str) -> list[Text]:
    """The change of a whole file: all changed lines, with unchanged lines between them folded."""
    before, after = split_lines(old), split_lines(new)
    ends = {line[len(line.rstrip("\r\n")) :] for line in (*before, *after)} - {""}
    hidden = next(iter(ends)) if before and len(ends) == 1 else "\n"
    lines: list[DiffLine] = []
    for each in _compared_lines(before, after, 1):
        # the line end that all lines share is hidden; any other, and a missing one, are shown
        lines.append(each._replace(text=each.text.removesuffix(hidden)))
        if each.sign != " " and not each.text.endswith(("\n", "\r")):
            lines.append(DiffLine("\\", "no newline at end of file"))
    return signed_lines(_fold(lines))


def _compared_lines(before: list[str], after: list[str], first: int | None) -> list[DiffLine]:
    def lines(sign: str, texts: list[str], at: int) -> list[DiffLine]:
        return [DiffLine(sign, text, None if first is None else first + at + step) for step, text in enumerate(texts)]

    diff: list[DiffLine] = []
    position = shift = 0
    for a, b, c, d in compare(before, after):
        diff += lines(" ", before[position:a], position + shift)
        diff += lines("-", before[a:b], a) + lines("+", after[c:d], c)
        position, shift = b, d - b
    return [*diff, *lines(" ", before[position:], position + shift)]


def _fold(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    at = 0
    for is_unchanged, run in groupby(lines, key=lambda each: each.sign == " "):
        shown = list(run)
        head = CONTEXT_LINES if at else 0
        tail = CONTEXT_LINES if at + len(shown) < len(lines) else 0
        at += len(shown)
        left = len(shown) - head - tail
        if is_unchanged and left > 1:
            shown = [*shown[:head], DiffLine("…", f"{left:,} unchanged lines"), *shown[len(shown) - tail :]]
        yield from shown


def signed_lines(lines: Iterable[DiffLine]) -> list[Text]:
    """Returns one text per line, not to be wrapped at spaces."""
    lines = list(lines)
    gutter = Gutter(lines)
    marked = dict(changed_words(lines))
    texts = []
    for row, line in enumerate(lines):
        style = LINE_STYLES.get(line.sign, "dim")
        text = gutter.begin(line, style)
        for piece, is_changed in marked.get(row) or [(line.text, False)]:
            text.append_text(spell(piece, WORD_STYLES[line.sign] if is_changed else style))
        texts.append(text)
    return texts


def spell(shown: str, style: str) -> Text:
    text = Text()
    for piece, is_escape in escaped_pieces(shown.replace("\t", TAB)):
        text.append(piece, STYLES.get(style, Style()) + Style(reverse=True) if is_escape else style)
    return text


class Gutter:
    """Draws the number of a line, as wide as the widest, and its sign."""

    def __init__(self, lines: Iterable[DiffLine]) -> None:
        self._width = len(str(max((each.number or 0 for each in lines), default=0)))
        self._has_numbers = any(each.number is not None for each in lines)

    def begin(self, line: DiffLine, style: str) -> Text:
        number = "" if line.number is None else str(line.number)
        shown = f"{number:>{self._width}} " if self._has_numbers else ""
        return Text(no_wrap=True).append(f"{shown}{line.sign} ", style)


# Words that differ


def changed_words(lines: Sequence[DiffLine]) -> Iterator[tuple[int, Pieces]]:
    """Rows of removed lines, and of the added lines in their place, in pieces, where the two are similar."""
    row = 0
    while row < len(lines):
        removed = _run_end(lines, row, "-")
        added = _run_end(lines, removed, "+")
        for before, after in zip(range(row, removed), range(removed, added), strict=False):
            if pieces := _compare(lines[before].text, lines[after].text):
                yield from zip((before, after), pieces, strict=True)
        row = max(added, row + 1)


def _run_end(lines: Sequence[DiffLine], start: int, sign: str) -> int:
    end = start
    while end < len(lines) and lines[end].sign == sign:
        end += 1
    return end


def _compare(old: str, new: str) -> tuple[Pieces, Pieces] | None:
    """Both lines in pieces; None where they are not similar."""
    from difflib import SequenceMatcher  # noqa: PLC0415  # 6 ms that a screen without changes need not pay

    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(before), len(after)) > MOST_WORDS:
        return None
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    shared = sum(_weight(before[a:b]) for tag, a, b, _, _ in codes if tag == "equal")
    if 2 * shared < LIKE_ENOUGH * (_weight(before) + _weight(after)):
        return None
    return (
        [("".join(before[a:b]), tag != "equal") for tag, a, b, _, _ in codes if a < b],
        [("".join(after[c:d]), tag != "equal") for tag, _, _, c, d in codes if c < d],
    )


def _weight(words: Iterable[str]) -> int:
    return sum(len(word) for word in words if not word.isspace())
