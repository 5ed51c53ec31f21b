"""Colours for a light background, which is known from the settings or the environment alone."""

from __future__ import annotations

import pytest
from prompt_toolkit.styles import default_ui_style, merge_styles
from rich.color import Color
from rich.style import Style
from rich.text import Text

from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.palette import STYLE, Shades
from wolo.frontends.terminal.io.theme import (
    ADDED,
    ADDED_WORD,
    BACKGROUNDS,
    REMOVED_WORD,
    Depth,
    is_light,
    readable,
    shaded,
)
from wolo.frontends.terminal.panels.text_rows import as_rows


@pytest.mark.parametrize(
    ("theme", "colorfgbg", "expected"),
    [
        ("auto", "", False),
        ("auto", "15;0", False),
        ("auto", "0;15", True),
        ("auto", "0;default;15", True),
        ("auto", "12;8", False),
        ("auto", "0;7", True),
        ("auto", "nonsense;x", False),
        ("dark", "0;15", False),
        ("light", "15;0", True),
    ],
)
def test_what_the_background_is(theme: str, colorfgbg: str, expected: bool) -> None:
    assert is_light(theme, {"COLORFGBG": colorfgbg}) is expected


def test_what_would_not_be_seen_on_white_is_replaced_and_nothing_else() -> None:
    assert shaded(Style.parse("bold yellow"), on_light=True) == Style.parse("bold color(130)")
    assert shaded(Style.parse("red"), on_light=True) == Style.parse("red")
    assert shaded(Style.parse("dim"), on_light=True) == Style.parse("dim")
    assert shaded(Style.parse("dim cyan"), on_light=True) == Style.parse("not dim color(25)")


FOOT = merge_styles([default_ui_style(), STYLE])
NAMED = {
    "black": "#000000",
    "red": "#cd0000",
    "green": "#00cd00",
    "yellow": "#cdcd00",
    "blue": "#0000ee",
    "magenta": "#cd00cd",
    "cyan": "#00cdcd",
    "white": "#e5e5e5",
    "bright_black": "#7f7f7f",
    "bright_red": "#ff0000",
    "bright_green": "#00ff00",
    "bright_yellow": "#ffff00",
    "bright_blue": "#5c5cff",
    "bright_magenta": "#ff00ff",
    "bright_cyan": "#00ffff",
    "bright_white": "#ffffff",
}
"""As xterm shows them, unless a person has said otherwise."""
ENOUGH = 4.4
"""4.5 would be, and xterm's own bright blue misses that by a hair."""


def light_of(colour: str) -> float:
    parts = [each / 255 for each in Color.parse(NAMED.get(colour, colour)).get_truecolor()]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((light_of(one), light_of(other)))
    return (lighter + 0.05) / (darker + 0.05)


def is_readable(colour: str, on_light: bool) -> bool:
    """`default` is what the person reads all day."""
    return colour == "default" or contrast(colour, "#ffffff" if on_light else "#000000") > ENOUGH


@pytest.mark.parametrize("on_light", [True, False])
@pytest.mark.parametrize("name", NAMED)
def test_every_colour_can_be_read_on_the_background_there_is(name: str, on_light: bool) -> None:
    assert is_readable(readable(name, on_light=on_light), on_light)
    shown = shaded(Style(color=name), on_light=on_light)
    assert shown.color is not None
    assert is_readable(shown.color.name, on_light)


@pytest.mark.parametrize("on_light", [True, False])
@pytest.mark.parametrize("name", NAMED)
def test_so_it_can_in_the_foot_and_its_panels(name: str, on_light: bool) -> None:
    row = as_rows([Text.assemble(("x", name))], 10)[0]
    painted = Shades(TerminalState(is_light=on_light)).transform_attrs(FOOT.get_attrs_for_style_str(row[0][0])).color or ""
    assert is_readable(as_rich(painted), on_light)


@pytest.mark.parametrize("on_light", [True, False])
@pytest.mark.parametrize(
    "part", ["asking", "dim", "hint", "completion-menu.completion", "completion-menu.completion.current", "completion-menu.meta"]
)
def test_so_can_what_the_foot_says_and_its_menus(part: str, on_light: bool) -> None:
    attrs = Shades(TerminalState(is_light=on_light)).transform_attrs(FOOT.get_attrs_for_style_str(f"class:{part}"))
    if attrs.bgcolor:
        assert contrast(as_rich(attrs.color or ""), as_rich(attrs.bgcolor)) > ENOUGH
    else:
        assert is_readable(as_rich(attrs.color or ""), on_light)


DEPTHS: tuple[Depth, ...] = ("256", "truecolor")


@pytest.mark.parametrize("on_light", [True, False])
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("name", ["default", *NAMED])
def test_changes_can_be_read_on_their_backgrounds(name: str, background: str, depth: Depth, on_light: bool) -> None:
    shown = shaded(Style(color=name, bgcolor=background), on_light=on_light, depth=depth)
    assert shown.color is not None
    assert shown.bgcolor is not None
    written = shown.color.name
    if written == "default":
        written = "#000000" if on_light else "#e5e5e5"
    assert contrast(written, shown.bgcolor.name) > ENOUGH
    own = "#ffffff" if on_light else "#000000"
    assert contrast(shown.bgcolor.name, own) < 3 or background in (ADDED_WORD, REMOVED_WORD)  # it is soft


def test_with_sixteen_colours_the_text_has_them_and_words_are_reversed() -> None:
    assert shaded(Style(bgcolor=ADDED), on_light=False, depth="standard") == Style(color="green")
    assert shaded(Style(bgcolor=REMOVED_WORD), on_light=True, depth="standard") == Style(color="red", reverse=True)


@pytest.mark.parametrize("on_light", [True, False])
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_so_they_can_in_a_panel(background: str, on_light: bool) -> None:
    row = as_rows([Text.assemble(("x", f"green on {background}"))], 10)[0]
    attrs = Shades(TerminalState(is_light=on_light)).transform_attrs(FOOT.get_attrs_for_style_str(row[0][0]))
    written = f"#{attrs.color}" if attrs.color else "#000000" if on_light else "#e5e5e5"
    assert contrast(written, f"#{attrs.bgcolor}") > ENOUGH


def as_rich(painted: str) -> str:
    if not painted:
        return "default"
    theirs = {"ansigray": "white", "ansiwhite": "bright_white"}
    return (
        theirs.get(painted, painted.removeprefix("ansi").replace("bright", "bright_"))
        if painted.startswith("ansi")
        else f"#{painted}"
    )


def test_a_theme_changed_in_the_middle_is_painted_at_once() -> None:
    state = TerminalState(is_light=False)
    before = Shades(state).invalidation_hash()
    state.is_light = True
    assert Shades(state).invalidation_hash() != before
