"""Colours for dark and light backgrounds: what could not be read on the one there is gives way to what can."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

from rich.style import Style

Depth = Literal["", "standard", "256", "truecolor"]
"""How many colours a terminal has, as Rich calls it."""
ADDED, REMOVED, ADDED_WORD, REMOVED_WORD = "color(22)", "color(52)", "color(28)", "color(88)"
"""Backgrounds of changes. Whoever draws names these; `shaded` puts softer ones in their place."""

_ON_LIGHT = {
    "yellow": "color(130)",
    "bright_yellow": "color(130)",
    "cyan": "color(25)",
    "bright_cyan": "color(25)",
    "green": "color(28)",
    "bright_green": "color(28)",
    "bright_red": "red",
    "bright_blue": "blue",
    "bright_magenta": "magenta",
    "white": "default",
    "bright_white": "default",
    "bright_black": "color(241)",
}
_ON_DARK = {
    "red": "bright_red",
    "blue": "bright_blue",
    "magenta": "bright_magenta",
    "black": "color(245)",
    "bright_black": "color(245)",
}
_DARK_BACKGROUNDS = frozenset({"0", "1", "2", "3", "4", "5", "6", "8", "default"})


def is_light(theme: str, environment: Mapping[str, str]) -> bool:
    """`auto` believes COLORFGBG (`15;0`: the last is the background); the terminal is never asked, it could answer too late."""
    if theme != "auto":
        return theme == "light"
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return background.isdecimal() and background not in _DARK_BACKGROUNDS


def readable(colour: str, *, on_light: bool) -> str:
    """Another name for it, or the same."""
    return (_ON_LIGHT if on_light else _ON_DARK).get(colour, colour)


class Background(NamedTuple):
    dark: str
    """On a dark background, where there are 256 colours; `dark_soft`: where there are millions."""
    dark_soft: str
    light: str
    light_soft: str
    dark_text: str = "default"
    """What is read on it where there are 256 colours and the background is dark."""


BACKGROUNDS: Mapping[str, Background] = {
    ADDED: Background("color(22)", "#0b2415", "color(194)", "#eefbf1"),
    REMOVED: Background("color(52)", "#33141a", "color(224)", "#ffeeee"),
    ADDED_WORD: Background("color(71)", "#1d5733", "color(157)", "#b4efc3", dark_text="color(16)"),
    REMOVED_WORD: Background("color(167)", "#7a2833", "color(217)", "#ffc4c6", dark_text="color(16)"),
}
_ON_SOFT_DARK = {
    **dict.fromkeys(("blue", "bright_blue"), "color(117)"),
    **dict.fromkeys(("magenta", "bright_magenta"), "color(219)"),
    **dict.fromkeys(("red", "bright_red"), "color(217)"),
}
"""What is bright enough on black is not on the background of an added line."""


@cache
def shaded(style: Style, *, on_light: bool, depth: Depth = "truecolor") -> Style:
    if style.bgcolor is not None and style.bgcolor.name in BACKGROUNDS:
        return _on_change(style, style.bgcolor.name, on_light, depth)
    if style.color is None:
        return style
    colour = readable(style.color.name, on_light=on_light)
    is_pale = on_light and style.dim  # a dimmed colour
    return style + Style(color=colour, dim=False if is_pale else None)


def _on_change(style: Style, name: str, on_light: bool, depth: Depth) -> Style:
    """Where there are too few colours for a soft background, the text has one instead, and changed words are reversed."""
    if depth in ("", "standard"):
        colour = "green" if name in (ADDED, ADDED_WORD) else "red"
        is_word = name in (ADDED_WORD, REMOVED_WORD)
        return style.without_color + Style(color=readable(colour, on_light=on_light), reverse=is_word or None)
    background = BACKGROUNDS[name]
    if depth == "256":
        text, behind = ("default", background.light) if on_light else (background.dark_text, background.dark)
        return style + Style(color=text, bgcolor=behind, dim=False)
    written = style.color.name if style.color is not None and name == ADDED else "default"
    if written == "green":
        written = "default"
    text = readable(written, on_light=True) if on_light else _ON_SOFT_DARK.get(written) or readable(written, on_light=False)
    return style + Style(color=text, bgcolor=background.light_soft if on_light else background.dark_soft, dim=False)
