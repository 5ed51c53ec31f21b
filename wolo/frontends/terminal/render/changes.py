"""Lines that go and lines that come, and the words that differ between them; what would not show is spelled out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.text import Text

from wolo.messages.terminal_text import spelled_out
from wolo.workspace.diff import compare
from wolo.workspace.text import split_lines

GONE, COME, KEPT = "red", "green", "dim"
CHANGED = "reverse"
"""Added to the colour of its line."""
TAB = "→   "
"""A tab is seen: copied or not, nothing hides behind it."""
MOST_WORDS = 400
"""Of one line; longer ones are coloured as a whole."""
LIKE_ENOUGH = 0.4
"""Of two lines that have less in common than this, every word would be marked."""
AROUND = 3
"""Lines before and after a change that show where it is."""

_WORDS = re.compile(r"\w+|\s+|.", re.DOTALL)

Signed = tuple[str, str]
"""`-`, `+` or another first character, and the rest of the line."""


def replaced(old: str, new: str) -> list[Text]:
    """The lines of two texts, what they share once."""
    return signed_lines(_compared_lines(old.splitlines(), new.splitlines()))


def rewritten(old: str, new: str) -> list[Text]:
    """A whole text that takes the place of another: what differs, in full, and how much in between stays."""
    before, after = split_lines(old), split_lines(new)
    ends = {line[len(line.rstrip("\r\n")) :] for line in (*before, *after)} - {""}
    hidden = next(iter(ends)) if len(ends) == 1 else "\n"
    return signed_lines(_folded(list(_without_ends(_compared_lines(before, after), hidden))))


def _compared_lines(before: list[str], after: list[str]) -> list[Signed]:
    signed: list[Signed] = []
    position = 0
    for a, b, c, d in compare(before, after):
        signed += [(" ", line) for line in before[position:a]]
        signed += [("-", line) for line in before[a:b]] + [("+", line) for line in after[c:d]]
        position = b
    return [*signed, *((" ", line) for line in before[position:])]


def _folded(signed: Sequence[Signed]) -> Iterator[Signed]:
    """Lines that stay are shown near a change only."""
    at = 0
    for is_kept, run in groupby(signed, key=lambda each: each[0] == " "):
        lines = list(run)
        head = AROUND if at else 0
        tail = AROUND if at + len(lines) < len(signed) else 0
        at += len(lines)
        left = len(lines) - head - tail
        if is_kept and left > 1:
            lines = [*lines[:head], ("…", f"{left:,} lines stay as they are"), *lines[len(lines) - tail :]]
        yield from lines


def _without_ends(signed: Iterable[Signed], hidden: str) -> Iterator[Signed]:
    """An end that all lines have is not shown; one that a line has not is."""
    for sign, line in signed:
        yield sign, line.removesuffix(hidden)
        if sign != " " and not line.endswith(("\n", "\r")):
            yield "\\", "no newline at the end"


def signed_lines(lines: Iterable[Signed]) -> list[Text]:
    """Runs of lines that go, followed by lines that come in their place, are compared word by word."""
    drawn: list[Text] = []
    gone: list[str] = []
    come: list[str] = []
    for sign, line in lines:
        if gone and (sign not in "-+" or (sign == "-" and come)):
            drawn += _pair(gone, come)
            gone, come = [], []
        if sign == "-":
            gone.append(line)
        elif sign == "+" and gone:
            come.append(line)
        else:
            drawn.append(ink(f"{sign} {line}", {"+": COME, "@": "cyan"}.get(sign, KEPT)))
    return drawn + _pair(gone, come)


def ink(shown: str, style: str) -> Text:
    """One line, with nothing in it that does not show."""
    text = Text()
    for piece, is_escape in spelled_out(shown.replace("\t", TAB)):
        text.append(piece, f"{style} reverse".strip() if is_escape else style)
    return text


def _pair(gone: Sequence[str], come: Sequence[str]) -> list[Text]:
    before = [Text("- ", GONE) for _ in gone]
    after = [Text("+ ", COME) for _ in come]
    for at in range(max(len(gone), len(come))):
        if at < len(gone) and at < len(come):
            for text, pieces, style in zip((before[at], after[at]), compared(gone[at], come[at]), (GONE, COME), strict=True):
                for piece, is_changed in pieces:
                    text.append_text(ink(piece, f"{style} {CHANGED}" if is_changed else style))
        elif at < len(gone):
            before[at].append_text(ink(gone[at], GONE))
        else:
            after[at].append_text(ink(come[at], COME))
    return before + after


def compared(old: str, new: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both lines in pieces, and which of them the other one does not have."""
    from difflib import SequenceMatcher  # noqa: PLC0415  # 6 ms that a screen without changes need not pay

    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(before), len(after)) > MOST_WORDS:
        return [(old, False)], [(new, False)]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < LIKE_ENOUGH:
        return [(old, False)], [(new, False)]
    codes = matcher.get_opcodes()
    return (
        list(_pieces((before[a:b], tag != "equal") for tag, a, b, _, _ in codes)),
        list(_pieces((after[c:d], tag != "equal") for tag, _, _, c, d in codes)),
    )


def _pieces(words: Iterable[tuple[list[str], bool]]) -> Iterator[tuple[str, bool]]:
    return (("".join(each), is_changed) for each, is_changed in words if each)
