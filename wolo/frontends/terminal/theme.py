"""Colours for dark and light backgrounds: what could not be read on the one there is gives way to what can."""

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


@cache
def shaded(style: Style, *, on_light: bool) -> Style:
    if style.color is None:
        return style
    colour = readable(style.color.name, on_light=on_light)
    is_pale = on_light and style.dim  # a dimmed colour
    return style + Style(color=colour, dim=False if is_pale else None)
