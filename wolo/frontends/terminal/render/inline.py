"""One run of Markdown within a block: emphasis, code and links, with the target of every link in sight."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from wolo.frontends.terminal.render.code import PLAIN_CODE
from wolo.messages.terminal_text import clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_EMPHASIS = {"strong": Style(bold=True), "em": Style(italic=True), "s": Style(strike=True)}
_LINK = Style(underline=True)
_TARGET = Style(dim=True)
_LONGEST_PARSED = 10_000
"""Characters; the parser takes its time with hostile text, and nobody reads a longer run."""
_UNFINISHED = ("**", "__", "~~", "`")


@cache
def parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415  # 40 ms, spent while the model is already thinking

    return MarkdownIt("commonmark").enable(["strikethrough", "table"])


def inline(source: str) -> Text:
    """Line breaks stay where the model put them."""
    return spans(tokens(source)) if len(source) <= _LONGEST_PARSED else Text(clean(source))


def tokens(source: str) -> list[Token]:
    return parser().parseInline(source)[0].children or []


def is_unfinished(source: str) -> bool:
    """Something was opened that what follows may still close."""
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
            text.append(f"image: {clean(token.content)}", _combined(*styles))
            _add_target(text, str(token.attrGet("src") or ""), len(text))
        elif token.type in ("softbreak", "hardbreak"):
            text.append("\n")
        else:
            also = (PLAIN_CODE,) if token.type == "code_inline" else ()
            text.append(clean(token.content), _combined(*styles, *also))
    return text


def _combined(*styles: Style) -> Style:
    return sum(styles, Style())


def _add_target(text: Text, target: str, start: int) -> None:
    shown = clean(target)
    if shown and text.plain[start:] not in (shown, shown.removeprefix("mailto:")):
        text.append(f" ({shown})", _TARGET)
