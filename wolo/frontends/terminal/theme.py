"""Colours for dark and light backgrounds: wolo paints for a dark one, and what would not be seen on a light one is replaced."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rich.style import Style

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
}
_DARK_BACKGROUNDS = frozenset({"0", "1", "2", "3", "4", "5", "6", "8", "default"})


def is_light(theme: str, environment: Mapping[str, str]) -> bool:
    """`auto` believes COLORFGBG (`15;0`: the last is the background); the terminal is never asked, it could answer too late."""
    if theme != "auto":
        return theme == "light"
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return background.isdecimal() and background not in _DARK_BACKGROUNDS


@cache
def on_light(style: Style) -> Style:
    name = style.color.name if style.color is not None else ""
    return style + Style(color=_ON_LIGHT[name]) if name in _ON_LIGHT else style
