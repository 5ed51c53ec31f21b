"""The eight colour roles of the terminal in each theme, for millions of colours, 256, 16 and none.

No other file names a colour. Text is styled with the name of a role ("dim", "bold accent", "added line"); the role becomes a
colour when the text is written, so a theme changed in a conversation holds from the next line on.
Custom themes are small TOML files in the folder `themes` beside the user's `config.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from rich.color import Color, ColorSystem, ColorType
from rich.style import Style
from rich.theme import Theme

from wolo.config.files import parse_toml, read_own
from wolo.errors import ConfigError, UsageError
from wolo.places import Notices

Depth = Literal["", "standard", "256", "truecolor"]
"""Colour depth of a terminal, in Rich's words."""


class Shade(NamedTuple):
    """The colour of a role on one background."""

    soft: str
    """For true colour."""
    indexed: str
    """For 256 colours."""
    basic: str
    """For 16 colours: a style, or empty."""


DARK: Mapping[str, Shade] = {
    "dim": Shade("#9aa0ac", "color(247)", "dim"),
    "accent": Shade("#9db8ff", "color(111)", "cyan"),
    "added": Shade("#86d09a", "color(114)", "green"),
    "removed": Shade("#f2929a", "color(210)", "bright_red"),
    "warning": Shade("#e3c07a", "color(179)", "yellow"),
    "error": Shade("#ff7f86", "color(210)", "bright_red"),
    "selection": Shade("#2b303c", "color(236)", "reverse"),
    "said-line": Shade("#252932", "color(235)", ""),
    "added-line": Shade("#0f2a1a", "color(22)", "green"),
    "added-word": Shade("#1d5733", "color(71)", "green reverse"),
    "removed-line": Shade("#35171d", "color(52)", "bright_red"),
    "removed-word": Shade("#7a2833", "color(167)", "bright_red reverse"),
}
LIGHT: Mapping[str, Shade] = {
    "dim": Shade("#5c636e", "color(240)", "dim"),
    "accent": Shade("#3557c9", "color(25)", "blue"),
    "added": Shade("#18692f", "color(22)", "green"),
    "removed": Shade("#a3202c", "color(124)", "red"),
    "warning": Shade("#7f5200", "color(94)", "magenta"),
    "error": Shade("#b3202c", "color(124)", "red"),
    "selection": Shade("#e3e8f4", "color(254)", "reverse"),
    "said-line": Shade("#f0f2f6", "color(255)", ""),
    "added-line": Shade("#eefbf1", "color(194)", "green"),
    "added-word": Shade("#b4efc3", "color(157)", "green reverse"),
    "removed-line": Shade("#ffeeee", "color(224)", "red"),
    "removed-word": Shade("#ffc4c6", "color(217)", "red reverse"),
}
_BLUE_AND_ORANGE = {
    "added": Shade("#7fb8ff", "color(111)", "bright_blue"),
    "removed": Shade("#ffb060", "color(215)", "yellow"),
    "error": Shade("#ffb060", "color(215)", "yellow"),
    "added-line": Shade("#10243f", "color(17)", "bright_blue"),
    "added-word": Shade("#1d4a86", "color(68)", "bright_blue reverse"),
    "removed-line": Shade("#38230c", "color(52)", "yellow"),
    "removed-word": Shade("#6e4310", "color(172)", "yellow reverse"),
}
_BLUE_AND_ORANGE_ON_LIGHT = {
    "added": Shade("#0b4fa8", "color(18)", "blue"),
    "removed": Shade("#8f4400", "color(88)", "magenta"),
    "error": Shade("#8f4400", "color(88)", "magenta"),
    "added-line": Shade("#ecf4ff", "color(189)", "blue"),
    "added-word": Shade("#bcdcff", "color(153)", "blue reverse"),
    "removed-line": Shade("#fff3e4", "color(230)", "magenta"),
    "removed-word": Shade("#ffd9a8", "color(223)", "magenta reverse"),
}
_STRONG = {
    "dim": Shade("#d0d0d0", "color(252)", ""),
    "accent": Shade("#8fd7ff", "color(117)", "bright_cyan"),
    "added": Shade("#7dff9b", "color(120)", "bright_green"),
    "removed": Shade("#ffa8a8", "color(217)", "bright_red"),
    "warning": Shade("#ffe066", "color(221)", "bright_yellow"),
    "error": Shade("#ffa8a8", "color(217)", "bright_red"),
}
ANSI = "ansi"
"""The theme of the terminal's own sixteen colours."""
PALETTES: dict[str, Mapping[str, Shade]] = {
    "dark": DARK,
    "light": LIGHT,
    "dark-colorblind": {**DARK, **_BLUE_AND_ORANGE},
    "light-colorblind": {**LIGHT, **_BLUE_AND_ORANGE_ON_LIGHT},
    "high-contrast": {**DARK, **_STRONG},
    ANSI: DARK,
}
BUILT_IN = tuple(PALETTES)
"""Custom themes join PALETTES when they are chosen."""
BLACK = "color(16)"
ROLES = ("dim", "accent", "added", "removed", "warning", "error")
"""Roles of text. The seventh, `text`, is the terminal's own colour; the eighth, `selection`, is a background."""
GROUNDS = tuple(name for name in DARK if name not in ROLES)
"""Backgrounds: the selection, what the user said, and the changes of files with their changed words."""

FULL_WIDTH = frozenset({"said-line", "added-line", "removed-line"})
"""Backgrounds that reach to the end of the row."""
_DARK_BACKGROUNDS = frozenset({"0", "1", "2", "3", "4", "5", "6", "8", "default"})


def _placeholder(name: str) -> Color:
    return Color(name, ColorType.STANDARD, number=7)


_TEXT = {name: Style(color=_placeholder(name)) for name in ROLES}
_GROUND = {name: Style(bgcolor=_placeholder(name)) for name in GROUNDS}
STYLES: Mapping[str, Style] = {
    **_TEXT,
    **{f"{how} {name}": Style.parse(how) + style for name, style in _TEXT.items() for how in ("bold", "italic")},
    "selection": _GROUND["selection"] + Style(bold=True),
    "said": _GROUND["said-line"],
    "added line": _TEXT["added"] + _GROUND["added-line"],
    "added word": _TEXT["added"] + _GROUND["added-word"],
    "removed line": _TEXT["removed"] + _GROUND["removed-line"],
    "removed word": _TEXT["removed"] + _GROUND["removed-word"],
    "added ground": _GROUND["added-line"],
    "code": _TEXT["accent"],
}
"""Each style that text may name, besides `bold`, `italic` and their kind."""
THEME = Theme(dict(STYLES))


def select_theme(theme: str, environment: Mapping[str, str]) -> str:
    """`auto` believes COLORFGBG (`15;0`: the last is the background); an answer of the terminal counts more."""
    if theme != "auto":
        return theme
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background.isdecimal() and background not in _DARK_BACKGROUNDS else "dark"


@cache
def paint(style: Style, *, theme: str, depth: Depth = "truecolor") -> Style:
    """The style with the colours of its roles."""
    ground = style.bgcolor.name if style.bgcolor is not None else ""
    written = style.color.name if style.color is not None else ""
    shades = PALETTES[theme]
    if ground not in shades and written not in shades:
        return style
    bare = style.without_color
    if depth in ("", "standard") or theme == ANSI:
        return bare + Style.parse(shades[ground if ground in shades else written].basic)
    at = "soft" if depth == "truecolor" else "indexed"
    # 256 colours have no soft grounds for changes: there the text is the terminal's own, and changed words are black
    if ground in ("", "selection", "said-line") or (at == "soft" and not ground.endswith("-word")):
        color = str(getattr(shades[written], at)) if written in shades else None
    else:
        color = BLACK if at == "indexed" and ground.endswith("-word") else "default"
    return bare + Style(color=color, bgcolor=getattr(shades[ground], at) if ground in shades else None)


def token_style(kind: tuple[str, ...]) -> str:
    """The style of a token of code, by its kind in Pygments: `("Name", "Function")`."""
    return next((_CODE[name] for name in reversed(kind) if name in _CODE), "")


_CODE = {
    "Keyword": "accent",
    "Decorator": "warning",
    "Builtin": "accent",
    "Class": "bold",
    "Function": "bold",
    "Tag": "accent",
    "Attribute": "warning",
    "String": "added",
    "Number": "warning",
    "Comment": "dim",
    "Doc": "dim",
    "Error": "error",
    "Heading": "bold",
    "Inserted": "added",
    "Deleted": "removed",
}


BASE = "base"
AUTO = "auto"


def theme_names(config: Path) -> tuple[str, ...]:
    """`auto`, the built-in ones, then the custom ones in the folder of settings."""
    try:
        own = sorted(path.stem for path in (config / "themes").glob("*.toml"))
    except OSError:
        own = []
    return (AUTO, *BUILT_IN, *(name for name in own if name not in BUILT_IN))


def load_theme(name: str, config: Path) -> None:
    """Makes the theme known. Raises UsageError for an unknown one, ConfigError for a file that is damaged."""
    if name in (AUTO, *BUILT_IN):
        return
    path = config / "themes" / f"{name}.toml"
    notices = Notices()
    data = read_own(path, notices) if "/" not in name else None
    if data is None:
        raise UsageError(
            f"There is no theme {name}.",
            hint=f"Themes are {', '.join(theme_names(config))}; a file in {path.parent} adds one. NO_COLOR=1 turns colours off.",
        )
    table = parse_toml(data, path)[1]
    base = table.get(BASE, "dark")
    bases = [each for each in BUILT_IN if each != ANSI]
    if base not in bases:
        raise ConfigError(f"{path}: {BASE} is one of {', '.join(bases)}, not {base}.")
    palette = dict(PALETTES[base])
    for role, colour in table.items():
        if role == BASE:
            continue
        if role not in DARK:
            raise ConfigError(f"{path}: there is no role {role}.", hint=f"Roles are {', '.join(DARK)}.")
        if not isinstance(colour, str) or not re.fullmatch("#[0-9a-fA-F]{6}", colour):
            raise ConfigError(
                f"{path}: {role} is not a colour: {colour}.", hint="Write red, green and blue in hexadecimal digits."
            )
        indexed = Color.parse(colour).downgrade(ColorSystem.EIGHT_BIT)
        palette[role] = Shade(colour, f"color({indexed.number})", palette[role].basic)
    PALETTES[name] = palette
    paint.cache_clear()
