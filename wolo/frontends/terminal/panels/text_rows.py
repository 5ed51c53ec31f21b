"""Lays styled text out in rows of a width, as prompt_toolkit takes them; nothing is left out in any window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth
from rich.console import Console
from rich.style import Style
from rich.text import Text

from wolo.frontends.terminal.io.theme import DARK, THEME
from wolo.frontends.terminal.render.row_wrapping import wrapped

Row = StyleAndTextTuples

_STYLES = Console(color_system=None, theme=THEME)


def as_rows(lines: Iterable[Text], columns: int) -> list[Row]:
    """Wraps sentences at spaces; text with `no_wrap` is cut between characters."""
    columns = max(columns, 2)
    return [row for line in lines for row in _cut(wrapped(line, columns), columns)]


def _cut(line: Text, columns: int) -> Iterator[Row]:
    row: Row = []
    room = columns
    for style, text in _pieces(line):
        begin = at = 0
        while at < len(text):
            width = 0 if text[at] == "\n" else get_cwidth(text[at])
            if text[at] == "\n" or width > room:
                row.append((style, text[begin:at]))
                yield row
                row, room = [], columns
                begin = at + (text[at] == "\n")
            room -= width
            at += 1
        row.append((style, text[begin:]))
    yield row


def _pieces(line: Text) -> Iterator[tuple[str, str]]:
    if line.style:
        line.stylize_before(line.style)  # Rich leaves the style of a whole text to others
    for segment in line.render(_STYLES):
        if segment.text:
            yield _style(segment.style), segment.text


def _style(style: Style | None) -> str:
    """Roles become classes of the live region's style."""
    if style is None:
        return ""
    words = [word for word in ("bold", "italic", "underline", "reverse", "strike") if getattr(style, word)]
    roles = (colour.name for colour in (style.color, style.bgcolor) if colour is not None)
    return " ".join([*(f"class:{name}" for name in roles if name in DARK), *words])


def row_width(row: Row) -> int:
    return sum(get_cwidth(character) for piece in row for character in piece[1])
