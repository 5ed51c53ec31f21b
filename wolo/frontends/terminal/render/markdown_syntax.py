"""Markdown syntax: kinds of lines, and the emphasis, code and links within one.

Reading a line takes linear time, whatever is in it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from wolo.frontends.terminal.io.theme import STYLES
from wolo.frontends.terminal.render.code_blocks import PLAIN_CODE
from wolo.messages.terminal_text import clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})([^`]*)$")
RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
ITEM = re.compile(r"^([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+|$)")
QUOTE = re.compile(r"^ {0,3}(?:> ?)+")

_HEADING = re.compile(r"^ {0,3}(#{1,6})(?=[ \t]|$)")
_TASK = re.compile(r"^\[([ xX])\](?=[ \t])")
_DASHES = re.compile(r":?-+:?")
_BAR = re.compile(r"(?<!\\)\|")
_MARKUP = "*_`~[]()!<&\\"

_EMPHASIS = {"strong": Style(bold=True), "em": Style(italic=True), "s": Style(strike=True)}
_LINK = Style(underline=True)
_TARGET = STYLES["dim"]
_LONGEST_PARSED = 10_000
"""Characters; the parser is slow on hostile text."""
_UNFINISHED = ("**", "__", "~~", "`")

# Kinds of lines


def read_heading(line: str) -> tuple[int, str] | None:
    if (heading := _HEADING.match(line)) is None:
        return None
    text = line[heading.end() :].strip()
    bare = text.rstrip("#")
    return len(heading[1]), bare.rstrip() if not bare or bare[-1] in " \t" else text


def is_below_header(line: str, header: str) -> bool:
    """True for `|---|:-:|`, which turns the line above it into a table header."""
    cells = _BAR.split(line.strip().strip("|"))
    return len(cells) == len(_BAR.split(header.strip().strip("|"))) and all(_DASHES.fullmatch(cell.strip()) for cell in cells)


def bullet(item: re.Match[str]) -> str:
    return item[2] if item[2][0].isdigit() else "•"


def with_box(text: str) -> str:
    return _TASK.sub(lambda found: "☐" if found[1] == " " else "☑", text)


def unindent(line: str, columns: int) -> str:
    """Removes the indentation that a list item gives its code, which must be copied without it."""
    margin = len(line) - len(line.lstrip(" "))
    return line[min(margin, columns) :]


def last_gap(line: str, within: int) -> int:
    """The place to cut a long line: before a blank near its end, else before its last characters."""
    if (gap := line.rfind(" ", max(len(line) - within, 0), len(line) - 1)) >= 0:
        return len(line[:gap].rstrip(" "))
    return len(line[:-1].rstrip(_MARKUP))


# Within a line


@cache
def parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415  # 40 ms, spent while the model works

    return MarkdownIt("commonmark").enable(["strikethrough", "table"])


def inline(source: str) -> Text:
    return spans(tokens(source)) if len(source) <= _LONGEST_PARSED else Text(clean(source))


def tokens(source: str) -> list[Token]:
    return parser().parseInline(source)[0].children or []


def is_unfinished(source: str) -> bool:
    """True while an emphasis, code or link is open that later text may close."""
    if len(source) > _LONGEST_PARSED:
        return False
    if "[" in source and source.count("[") + source.count("(") > source.count("]") + source.count(")"):
        return True
    return any(token.type == "text" and any(mark in token.content for mark in _UNFINISHED) for token in tokens(source))


def spans(children: list[Token]) -> Text:
    text = Text()
    styles: list[Style] = []
    links: list[tuple[str, int]] = []
    for token in children:
        kind, _, side = token.type.rpartition("_")
        if token.type == "link_open":
            links.append((str(token.attrGet("href") or ""), len(text)))
            styles.append(_LINK)
        elif token.type == "link_close":
            styles.pop()
            _add_target(text, *links.pop())
        elif side == "open" and kind in _EMPHASIS:
            styles.append(_EMPHASIS[kind])
        elif side == "close" and kind in _EMPHASIS:
            styles.pop()
        elif token.type == "image":
            text.append(f"image: {clean(token.content)}", _combine(*styles))
            _add_target(text, str(token.attrGet("src") or ""), len(text))
        elif token.type in ("softbreak", "hardbreak"):
            text.append("\n")
        else:
            also = (PLAIN_CODE,) if token.type == "code_inline" else ()
            text.append(clean(token.content), _combine(*styles, *also))
    return text


def _combine(*styles: Style) -> Style:
    return sum(styles, Style())


def _add_target(text: Text, target: str, start: int) -> None:
    shown = clean(target)
    if shown and text.plain[start:] not in (shown, shown.removeprefix("mailto:")):
        text.append(f" ({shown})", _TARGET)
