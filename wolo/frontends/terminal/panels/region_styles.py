"""Styled text and the roles of the theme as prompt_toolkit takes them, for the live region, its panels and menus."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Sequence

from prompt_toolkit.formatted_text import OneStyleAndTextTuple, StyleAndTextTuples
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.styles import Attrs, StyleTransformation
from prompt_toolkit.styles import Style as RegionStyle
from prompt_toolkit.utils import get_cwidth
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.theme import ANSI, BLACK, DARK, GROUNDS, PALETTES, ROLES, THEME, Shade
from wolo.frontends.terminal.render.row_wrapping import wrap

Row = StyleAndTextTuples

_STYLES = Console(color_system=None, theme=THEME)


# Rows


def as_rows(lines: Iterable[Text], columns: int) -> list[Row]:
    """Wraps sentences at spaces; text with `no_wrap` is cut between characters."""
    columns = max(columns, 2)
    return [row for line in lines for row in _cut(wrap(line, columns), columns)]


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
            style = segment.style or Style()
            words = [word for word in ("bold", "italic", "underline", "reverse", "strike") if getattr(style, word)]
            roles = [colour.name for colour in (style.color, style.bgcolor) if colour is not None and colour.name in DARK]
            # roles become classes of the live region's style
            yield " ".join([*(f"class:{name}" for name in roles), *words]), segment.text


def as_fragments(rows: Sequence[Sequence[OneStyleAndTextTuple]]) -> StyleAndTextTuples:
    return [piece for at, row in enumerate(rows) for piece in ([("", "\n"), *row] if at else row)]


# Colours


def colour_depth() -> ColorDepth | None:
    """None: prompt_toolkit decides by the terminal, and takes 256 colours at most."""
    is_true = os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    return ColorDepth.from_env() or (ColorDepth.DEPTH_24_BIT if is_true else None)


class RegionColours(StyleTransformation):
    """Style sheet of the dark theme, whose colours it replaces by those of the theme."""

    def __init__(self, themed: TerminalState, *, is_soft: bool) -> None:
        """`is_soft`: there are millions of colours, not 256."""
        self._themed, self._is_soft = themed, is_soft
        self._dark = {name: self._colour(shade) for name, shade in DARK.items()}
        self._roles = {colour: name for name, colour in self._dark.items()}

    def style(self) -> RegionStyle:
        dark, plain = self._dark, "noinherit fg:default bg:default"
        return RegionStyle.from_dict(
            {
                **{name: f"fg:#{dark[name]}" for name in ROLES},
                **{name: f"{self._text_on(name)}bg:#{dark[name]}" for name in GROUNDS},
                "prompt": f"bold fg:#{dark['accent']}",
                "asking": f"bold fg:#{dark['accent']}",
                "border": f"fg:#{dark['dim']}",
                "hint": f"fg:#{dark['dim']}",
                "completion-menu": plain,
                "completion-menu.completion": plain,
                "completion-menu.completion.current": f"noinherit bold fg:default bg:#{dark['selection']}",
                "completion-menu.meta.completion": f"noinherit bg:default fg:#{dark['dim']}",
                "completion-menu.meta.completion.current": f"noinherit fg:#{dark['dim']} bg:#{dark['selection']}",
                "scrollbar.background": plain,
                "scrollbar.button": f"noinherit bg:#{dark['selection']}",
            }
        )

    def transform_attrs(self, attrs: Attrs) -> Attrs:
        shades = PALETTES[self._themed.palette]
        text, ground = self._roles.get(attrs.color or "", ""), self._roles.get(attrs.bgcolor or "", "")
        if self._themed.palette == ANSI:
            return self._in_ansi_colours(attrs, shades[ground or text].basic) if ground or text else attrs
        return attrs._replace(
            color=self._colour(shades[text]) if text else attrs.color,
            bgcolor=self._colour(shades[ground]) if ground else attrs.bgcolor,
        )

    def invalidation_hash(self) -> Hashable:
        return self._themed.palette

    def _in_ansi_colours(self, attrs: Attrs, basic: str) -> Attrs:
        style = Style.parse(basic)
        colour = f"ansi{style.color.name.replace('_', '')}" if style.color is not None else "default"
        return attrs._replace(color=colour, bgcolor="default", dim=bool(style.dim), reverse=bool(style.reverse))

    def _colour(self, shade: Shade) -> str:
        return _hexadecimal(shade.soft if self._is_soft else shade.indexed)

    def _text_on(self, ground: str) -> str:
        if ground.endswith("-word"):
            return "fg:default " if self._is_soft else f"fg:#{_hexadecimal(BLACK)} "
        return "fg:default " if ground in ("added-line", "removed-line") and not self._is_soft else ""


def _hexadecimal(colour: str) -> str:
    """As prompt_toolkit stores a colour."""
    return Color.parse(colour).get_truecolor().hex.removeprefix("#")
