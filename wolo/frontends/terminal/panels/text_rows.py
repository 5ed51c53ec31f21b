"""Text with its colours as rows of a width: nothing of it is left out, whatever the window is like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.styles import ANSI_COLOR_NAMES
from prompt_toolkit.utils import get_cwidth
from rich.console import Console
from rich.style import Style
from rich.text import Text

from wolo.frontends.terminal.io.palette import hexadecimal
from wolo.frontends.terminal.render.wrap import wrapped

Row = StyleAndTextTuples

_STYLES = Console(color_system=None)
"""Knows what the names of styles mean."""
_DIM = "ansibrightblack"


def as_rows(lines: Iterable[Text], columns: int) -> list[Row]:
    """Sentences are wrapped at spaces; what has `no_wrap` is cut between characters."""
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
    for segment in line.render(_STYLES):
        if segment.text:
            yield _style(segment.style), segment.text


def _style(style: Style | None) -> str:
    """As the foot writes it."""
    if style is None:
        return ""
    words = [word for word in ("bold", "italic", "underline", "reverse", "strike") if getattr(style, word)]
    if style.color is not None:
        words.append(_colour(style.color.name))
    elif style.dim:
        words.append(_DIM)
    if style.bgcolor is not None:
        words.append(f"bg:{_colour(style.bgcolor.name)}")
    return " ".join(words)


def _colour(name: str) -> str:
    if name.startswith(("#", "color(")):
        return f"#{hexadecimal(name)}"
    named = "ansi" + {"white": "gray", "bright_white": "white"}.get(name, name.replace("_", ""))
    return named if named in ANSI_COLOR_NAMES else ""
