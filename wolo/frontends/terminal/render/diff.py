"""The change of a file as lines: in the colours of its language, with the words that differ, and foldable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from wolo.frontends.terminal.render.changes import CHANGED, COME, GONE, compared
from wolo.frontends.terminal.render.code import coloured
from wolo.messages.terminal_text import clean
from wolo.tools.tool import Diff

Signed = tuple[str, str]
MARGIN = "  "
MAX_LINE_CHARS = 500


def diff_lines(view: Diff, most: int | None) -> tuple[list[Text], int]:
    """The first lines of it, and how many are left."""
    signed = [(line[:1], line[1:]) for line in clean(view.text).split("\n") if not (view.created and line.startswith("@"))]
    shown = signed if most is None else signed[:most]
    after = iter(coloured([line for sign, line in shown if sign in ("+", " ")], view.path))
    drawn = [_line(sign, line, next(after) if sign in ("+", " ") else None) for sign, line in shown]
    for row, start, end in _changed_words(shown):
        drawn[row].stylize(CHANGED, len(MARGIN) + 1 + start, len(MARGIN) + 1 + end)
    return [_short(line) for line in drawn], len(signed) - len(shown)


def _line(sign: str, line: str, code: Text | None) -> Text:
    match sign:
        case "+":
            return Text.assemble(MARGIN, ("+", COME), code or line)
        case " ":
            text = Text.assemble(f"{MARGIN} ", code or line)
            text.stylize("dim")
            return text
        case "-":
            return Text.assemble(MARGIN, (f"-{line}", GONE))
        case _:
            return Text.assemble(MARGIN, (sign + line, "cyan" if sign == "@" else "dim"))


def _changed_words(signed: Sequence[Signed]) -> Iterator[tuple[int, int, int]]:
    """Rows and places of what differs between lines that go and the lines that come in their place."""
    row = 0
    while row < len(signed):
        gone = _run(signed, row, "-")
        come = _run(signed, gone, "+")
        for before, after in zip(range(row, gone), range(gone, come), strict=False):
            for at, pieces in zip((before, after), compared(signed[before][1], signed[after][1]), strict=True):
                place = 0
                for piece, is_changed in pieces:
                    if is_changed:
                        yield at, place, place + len(piece)
                    place += len(piece)
        row = max(come, row + 1)


def _run(signed: Sequence[Signed], start: int, sign: str) -> int:
    """Behind the last line of this sign."""
    end = start
    while end < len(signed) and signed[end][0] == sign:
        end += 1
    return end


def _short(line: Text) -> Text:
    return line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS].append("…", "dim")
