"""Custom themes: small TOML files in the folder `themes` beside the user's `config.toml`."""

from __future__ import annotations

import re
from pathlib import Path

from rich.color import Color, ColorSystem

from wolo.config.files import parse_toml, read_own
from wolo.errors import ConfigError, UsageError
from wolo.frontends.terminal.io.theme import ANSI, BUILT_IN, DARK, PALETTES, Shade, paint
from wolo.places import Notices

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
