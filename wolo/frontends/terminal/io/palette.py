"""The roles of the theme as prompt_toolkit styles them, for the live region, its panels and menus."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from prompt_toolkit.styles import Attrs, Style, StyleTransformation
from rich.color import Color

from wolo.frontends.terminal.io.theme import BLACK, DARK, GROUNDS, LIGHT, ROLES


def _hexadecimal(colour: str) -> str:
    """As prompt_toolkit stores a colour: it paints no more than 256 where nothing else is configured."""
    return Color.parse(colour).get_truecolor().hex.removeprefix("#")


_DARK = {name: _hexadecimal(shade.indexed) for name, shade in DARK.items()}
_LIGHT = {_DARK[name]: _hexadecimal(shade.indexed) for name, shade in LIGHT.items()}
"""By the colour on a dark background."""
_PLAIN = "noinherit fg:default bg:default"


def _text_on(ground: str) -> str:
    if ground.endswith("-word"):
        return f"fg:#{_hexadecimal(BLACK)} "
    return "fg:default " if ground in ("added-line", "removed-line") else ""


STYLE = Style.from_dict(
    {
        **{name: f"fg:#{_DARK[name]}" for name in ROLES},
        **{name: f"{_text_on(name)}bg:#{_DARK[name]}" for name in GROUNDS},
        "prompt": f"bold fg:#{_DARK['accent']}",
        "asking": f"bold fg:#{_DARK['accent']}",
        "border": f"fg:#{_DARK['dim']}",
        "hint": f"fg:#{_DARK['dim']}",
        "completion-menu": _PLAIN,
        "completion-menu.completion": _PLAIN,
        "completion-menu.completion.current": f"noinherit bold fg:default bg:#{_DARK['selection']}",
        "completion-menu.meta.completion": f"noinherit bg:default fg:#{_DARK['dim']}",
        "completion-menu.meta.completion.current": f"noinherit fg:#{_DARK['dim']} bg:#{_DARK['selection']}",
        "scrollbar.background": _PLAIN,
        "scrollbar.button": f"noinherit bg:#{_DARK['selection']}",
    }
)


class OnBackground(Protocol):
    is_light: bool
    """The background is light; it may change at any time."""


class Shades(StyleTransformation):
    def __init__(self, shown: OnBackground) -> None:
        self._shown = shown

    def transform_attrs(self, attrs: Attrs) -> Attrs:
        if not self._shown.is_light:
            return attrs
        return attrs._replace(
            color=_LIGHT.get(attrs.color or "", attrs.color), bgcolor=_LIGHT.get(attrs.bgcolor or "", attrs.bgcolor)
        )

    def invalidation_hash(self) -> Hashable:
        return self._shown.is_light
