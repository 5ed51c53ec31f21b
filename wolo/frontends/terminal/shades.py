"""The colours of the foot, its panels and its menus, for the background there is."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from prompt_toolkit.styles import Attrs, Style, StyleTransformation
from rich.color import Color

from wolo.frontends.terminal.theme import readable

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


class Shades(StyleTransformation):
    def __init__(self, is_light: Callable[[], bool]) -> None:
        self._is_light = is_light

    def transform_attrs(self, attrs: Attrs) -> Attrs:
        if not (attrs.color or "").startswith("ansi") or attrs.bgcolor:
            return attrs
        return attrs._replace(color=shade(attrs.color or "", on_light=self._is_light()))

    def invalidation_hash(self) -> Hashable:
        return self._is_light()


def shade(colour: str, *, on_light: bool) -> str:
    """From prompt_toolkit's name to prompt_toolkit's name, or to red, green and blue."""
    name = _RICH.get(colour) or colour.removeprefix("ansi").replace("bright", "bright_")
    other = readable(name, on_light=on_light)
    if other == "default":
        return ""
    if other.startswith("color("):
        return Color.parse(other).get_truecolor().hex.removeprefix("#")
    return f"ansi{_ANSI.get(other, other.replace('_', ''))}"
