"""The colours of the foot, its panels and its menus, for the background there is."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol

from prompt_toolkit.styles import Attrs, Style, StyleTransformation
from rich.color import Color

from wolo.frontends.terminal.io.theme import BACKGROUNDS, Background, readable

STYLE = Style.from_dict(
    {
        "prompt": "bold",
        "asking": "bold ansiyellow",
        "dim": "ansibrightblack",
        "hint": "ansibrightblack",
        "completion-menu.completion.current": "bold reverse fg:#005f87 bg:#ffffff",
    }
)
_ANSI = {"white": "gray", "bright_white": "white"}
"""Where prompt_toolkit has another name for one of the sixteen colours than Rich."""
_RICH = {f"ansi{theirs}": ours for ours, theirs in _ANSI.items()}


def hexadecimal(colour: str) -> str:
    """As prompt_toolkit keeps it."""
    return Color.parse(colour).get_truecolor().hex.removeprefix("#")


_OF_CHANGES: Mapping[str | None, Background] = {hexadecimal(name): background for name, background in BACKGROUNDS.items()}
"""By what `panels/rows.py` writes for them."""


class OnBackground(Protocol):
    is_light: bool
    """The background is light; it may change at any time."""


class Shades(StyleTransformation):
    def __init__(self, shown: OnBackground) -> None:
        self._shown = shown

    def transform_attrs(self, attrs: Attrs) -> Attrs:
        if attrs.bgcolor in _OF_CHANGES:
            return self._on_change(attrs, _OF_CHANGES[attrs.bgcolor])
        if not (attrs.color or "").startswith("ansi") or attrs.bgcolor:
            return attrs
        return attrs._replace(color=shade(attrs.color or "", on_light=self._shown.is_light))

    def _on_change(self, attrs: Attrs, background: Background) -> Attrs:
        """In 256 colours: prompt_toolkit uses no more where nobody says so."""
        if self._shown.is_light:
            return attrs._replace(color="", bgcolor=hexadecimal(background.light))
        text = "" if background.dark_text == "default" else hexadecimal(background.dark_text)
        return attrs._replace(color=text, bgcolor=hexadecimal(background.dark))

    def invalidation_hash(self) -> Hashable:
        return self._shown.is_light


def shade(colour: str, *, on_light: bool) -> str:
    """From prompt_toolkit's name to prompt_toolkit's name, or to red, green and blue."""
    name = _RICH.get(colour) or colour.removeprefix("ansi").replace("bright", "bright_")
    other = readable(name, on_light=on_light)
    if other == "default":
        return ""
    if other.startswith("color("):
        return hexadecimal(other)
    return f"ansi{_ANSI.get(other, other.replace('_', ''))}"
