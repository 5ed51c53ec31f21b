"""Lines that are removed and lines that are added, numbered, with the words that differ; hidden characters are escapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rich.text import Text

from wolo.frontends.terminal.io.theme import ADDED, ADDED_WORD, REMOVED, REMOVED_WORD
from wolo.messages.terminal_text import spelled_out
from wolo.workspace.files.diff import compare
from wolo.workspace.files.encodings import split_lines

STYLES = {"-": f"red on {REMOVED}", "+": f"green on {ADDED}", " ": "dim", "@": "cyan"}
CHANGED = {"-": f"red on {REMOVED_WORD}", "+": f"green on {ADDED_WORD}"}
"""Of words, by the sign of their line."""
TAB = "→   "
"""A tab is seen: copied or not, nothing hides behind it."""
MOST_WORDS = 400
"""Of one line; longer ones are coloured as a whole."""
LIKE_ENOUGH = 0.5
"""Of two lines that have less in common than this, every word would be marked. Blanks do not count."""
AROUND = 3
"""Lines before and after a change that show where it is."""

_WORDS = re.compile(r"\w+|\s+|.", re.DOTALL)


class Line(NamedTuple):
    sign: str
    """`-`, `+` or another first character."""
    text: str
    number: int | None = None
    """Of a removed line where it was, of any other where it is."""


def replaced(old: str, new: str, *, first: int | None = None) -> list[Text]:
    """The lines of two texts, what they share once; `first`: the number of the first one."""
    return signed_lines(_compared_lines(old.splitlines(), new.splitlines(), first))


def rewritten(old: str, new: str) -> list[Text]:
    """A whole text that takes the place of another: what differs, in full, and how much in between stays."""
    before, after = split_lines(old), split_lines(new)
    ends = {line[len(line.rstrip("\r\n")) :] for line in (*before, *after)} - {""}
    hidden = next(iter(ends)) if len(ends) == 1 else "\n"
    return signed_lines(_folded(list(_without_ends(_compared_lines(before, after, 1), hidden))))


def _compared_lines(before: list[str], after: list[str], first: int | None) -> list[Line]:
    def lines(sign: str, texts: list[str], at: int) -> list[Line]:
        return [Line(sign, text, None if first is None else first + at + step) for step, text in enumerate(texts)]

    found: list[Line] = []
    position = shift = 0
    for a, b, c, d in compare(before, after):
        found += lines(" ", before[position:a], position + shift)
        found += lines("-", before[a:b], a) + lines("+", after[c:d], c)
        position, shift = b, d - b
    return [*found, *lines(" ", before[position:], position + shift)]


def _folded(lines: Sequence[Line]) -> Iterator[Line]:
    """Lines that stay are shown near a change only."""
    at = 0
    for is_kept, run in groupby(lines, key=lambda each: each.sign == " "):
        kept = list(run)
        head = AROUND if at else 0
        tail = AROUND if at + len(kept) < len(lines) else 0
        at += len(kept)
        left = len(kept) - head - tail
        if is_kept and left > 1:
            kept = [*kept[:head], Line("…", f"{left:,} lines stay as they are"), *kept[len(kept) - tail :]]
        yield from kept


def _without_ends(lines: Iterable[Line], hidden: str) -> Iterator[Line]:
    """An end that all lines have is not shown; one that a line has not is."""
    for each in lines:
        yield each._replace(text=each.text.removesuffix(hidden))
        if each.sign != " " and not each.text.endswith(("\n", "\r")):
            yield Line("\\", "no newline at the end")


def signed_lines(lines: Iterable[Line]) -> list[Text]:
    """One text a line, never to be wrapped."""
    lines = list(lines)
    gutter = Gutter(lines)
    marked = dict(changed_words(lines))
    return [_drawn(each, gutter, marked.get(row)) for row, each in enumerate(lines)]


def _drawn(line: Line, gutter: Gutter, pieces: Pieces | None) -> Text:
    style = STYLES.get(line.sign, "dim")
    text = gutter.begin(line, style)
    for piece, is_changed in pieces or [(line.text, False)]:
        text.append_text(ink(piece, CHANGED[line.sign] if is_changed else style))
    return text


class Gutter:
    """What stands before a line: its number, as wide as the widest, and its sign."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._width = len(str(max((each.number or 0 for each in lines), default=0)))
        self._has_numbers = any(each.number is not None for each in lines)

    def begin(self, line: Line, style: str) -> Text:
        number = "" if line.number is None else str(line.number)
        shown = f"{number:>{self._width}} " if self._has_numbers else ""
        return Text(no_wrap=True).append(f"{shown}{line.sign} ", style)


def ink(shown: str, style: str) -> Text:
    """One line, with nothing in it that does not show."""
    text = Text()
    for piece, is_escape in spelled_out(shown.replace("\t", TAB)):
        text.append(piece, f"{style} reverse".strip() if is_escape else style)
    return text


Pieces = list[tuple[str, bool]]
"""A line in pieces, and which of them the line that it is compared with does not have."""


def changed_words(lines: Sequence[Line]) -> Iterator[tuple[int, Pieces]]:
    """Rows of removed lines and of added ones in their place, in pieces, where they are like each other."""
    row = 0
    while row < len(lines):
        removed = _run(lines, row, "-")
        added = _run(lines, removed, "+")
        for before, after in zip(range(row, removed), range(removed, added), strict=False):
            if pieces := compared(lines[before].text, lines[after].text):
                yield from zip((before, after), pieces, strict=True)
        row = max(added, row + 1)


def _run(lines: Sequence[Line], start: int, sign: str) -> int:
    """Behind the last line of this sign."""
    end = start
    while end < len(lines) and lines[end].sign == sign:
        end += 1
    return end


def compared(old: str, new: str) -> tuple[Pieces, Pieces] | None:
    """Both lines in pieces; None where they are not like each other."""
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
