"""The roles of the theme: readable on each background, with millions of colours, 256 and 16."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from prompt_toolkit.styles import default_ui_style, merge_styles
from rich.color import ANSI_COLOR_NAMES, Color
from rich.style import Style
from rich.text import Text

import wolo
from wolo.config import schema
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.theme import (
    BUILT_IN,
    DARK,
    GROUNDS,
    PALETTES,
    ROLES,
    STYLES,
    Depth,
    load_theme,
    paint,
    select_theme,
)
from wolo.frontends.terminal.panels.region_styles import RegionColours, as_rows


@pytest.mark.parametrize(
    ("theme", "colorfgbg", "expected"),
    [
        ("auto", "", "dark"),
        ("auto", "15;0", "dark"),
        ("auto", "0;15", "light"),
        ("auto", "0;default;15", "light"),
        ("auto", "12;8", "dark"),
        ("auto", "0;7", "light"),
        ("auto", "nonsense;x", "dark"),
        ("dark", "0;15", "dark"),
        ("light", "15;0", "light"),
    ],
)
def test_background_is_recognised(theme: str, colorfgbg: str, expected: str) -> None:
    assert select_theme(theme, {"COLORFGBG": colorfgbg}) == expected


def test_eight_roles_exist_in_every_theme() -> None:
    assert {*ROLES, "text", "selection"} == {"text", "dim", "accent", "added", "removed", "warning", "error", "selection"}
    assert all(palette.keys() == DARK.keys() for palette in PALETTES.values())


def test_own_theme_replaces_roles_of_its_base(tmp_path: Path) -> None:
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes/mine.toml").write_text('base = "light"\naccent = "#123456"\nsaid-line = "#ffff00"\n')
    load_theme("mine", tmp_path)
    try:
        style = paint(STYLES["accent"], theme="mine")
        assert style.color is not None
        assert style.color.name == "#123456"
        assert PALETTES["mine"]["dim"] == PALETTES["light"]["dim"]
        assert PALETTES["mine"]["said-line"].indexed == "color(226)"
    finally:
        del PALETTES["mine"]
        paint.cache_clear()


NAMES = "|".join(name for name in ANSI_COLOR_NAMES if "_" not in name)
COLOUR = re.compile(rf"""["'](?:[a-z ]+ )?(?:{NAMES})["']|#[0-9a-f]{{6}}""")


def test_no_other_terminal_file_names_a_colour() -> None:
    room = Path(wolo.__file__).parent / "frontends/terminal"
    found = {
        f"{path.relative_to(room)}: {named[0]}"
        for path in room.rglob("*.py")
        if path.name != "theme.py"
        for named in COLOUR.finditer(path.read_text())
    }
    assert not found


ENOUGH = 4.4


def light_of(colour: str) -> float:
    parts = [each / 255 for each in Color.parse(colour).get_truecolor()]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((light_of(one), light_of(other)))
    return (lighter + 0.05) / (darker + 0.05)


THEMES = [name for name in PALETTES if name != "ansi"]


def own(theme: str) -> tuple[str, str]:
    """The terminal's own text and background."""
    return ("#000000", "#ffffff") if theme.startswith("light") else ("#e5e5e5", "#000000")


DEPTHS: tuple[Depth, ...] = ("256", "truecolor")


@pytest.mark.parametrize("theme", THEMES)
def test_every_role_is_readable_on_the_background(theme: str) -> None:
    for depth, role in product(DEPTHS, ROLES):
        shown = paint(STYLES[role], theme=theme, depth=depth)
        assert shown.color is not None, (depth, role)
        assert contrast(shown.color.name, own(theme)[1]) > ENOUGH, (depth, role)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("ground", GROUNDS)
def test_every_role_is_readable_on_theme_backgrounds(ground: str, theme: str) -> None:
    text, behind = own(theme)
    for depth, role in product(DEPTHS, ["text", *ROLES]):
        shown = paint(STYLES.get(role, Style()) + Style(bgcolor=ground_colour(ground)), theme=theme, depth=depth)
        assert shown.bgcolor is not None, (depth, role)
        written = shown.color.name if shown.color is not None and shown.color.name != "default" else text
        assert contrast(written, shown.bgcolor.name) > ENOUGH, (depth, role)
        assert contrast(shown.bgcolor.name, behind) < 3 or ground.endswith("-word"), (depth, role)  # it is soft


def ground_colour(name: str) -> Color:
    found = next(style.bgcolor for style in STYLES.values() if style.bgcolor is not None and style.bgcolor.name == name)
    assert found is not None
    return found


def test_sixteen_colours_keep_text_and_reverse_words() -> None:
    assert paint(STYLES["added line"], theme="dark", depth="standard") == Style(color="green")
    assert paint(STYLES["removed word"], theme="light", depth="standard") == Style(color="red", reverse=True)
    assert paint(STYLES["selection"], theme="light", depth="standard") == Style(bold=True, reverse=True)
    assert paint(STYLES["said"], theme="light", depth="standard") == Style()
    assert paint(STYLES["bold warning"], theme="dark", depth="standard") == Style.parse("bold yellow")


PARTS = [
    *ROLES,
    *GROUNDS,
    *("added class:added-line", "removed class:removed-line", "added class:added-word", "removed class:removed-word"),
    "border",
    "asking",
    "prompt",
    "hint",
    "completion-menu.completion",
    "completion-menu.completion.current",
    "completion-menu.meta.completion",
    "completion-menu.meta.completion.current",
]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("is_soft", [True, False])
def test_so_can_the_parts_of_the_live_region(is_soft: bool, theme: str) -> None:
    colours = RegionColours(TerminalState(theme=theme), is_soft=is_soft)
    region = merge_styles([default_ui_style(), colours.style()])
    text, background = own(theme)
    for part in PARTS:
        attrs = colours.transform_attrs(region.get_attrs_for_style_str(f"class:{part}"))
        written = f"#{attrs.color}" if attrs.color not in ("", "default", None) else text
        behind = f"#{attrs.bgcolor}" if attrs.bgcolor not in ("", "default", None) else background
        assert contrast(written, behind) > ENOUGH, part


def test_a_panel_paints_the_roles_of_the_theme() -> None:
    row = as_rows([Text.assemble(("x", "bold warning"), ("y", "added word"), ("z", "reverse"))], 10)[0]
    assert [piece[0] for piece in row] == ["class:warning bold", "class:added class:added-word", "reverse"]


def test_changed_theme_is_painted_at_once() -> None:
    state = TerminalState(theme="dark")
    colours = RegionColours(state, is_soft=True)
    before = colours.invalidation_hash()
    state.theme = "light"
    assert colours.invalidation_hash() != before


def test_colorblind_themes_mark_changes_without_green_and_red() -> None:
    for theme in ("dark-colorblind", "light-colorblind"):
        added, removed = (Color.parse(PALETTES[theme][role].soft).get_truecolor() for role in ("added", "removed"))
        assert added.blue > max(added.red, added.green)
        assert removed.red > removed.green > removed.blue


@pytest.mark.parametrize("role", ROLES)
def test_high_contrast_is_seven_to_one(role: str) -> None:
    shown = paint(STYLES[role], theme="high-contrast")
    assert shown.color is not None
    assert contrast(shown.color.name, "#000000") > 7


def test_ansi_theme_uses_the_sixteen_colours_only() -> None:
    assert paint(STYLES["added line"], theme="ansi", depth="truecolor") == Style(color="green")
    colours = RegionColours(TerminalState(theme="ansi"), is_soft=True)
    region = merge_styles([default_ui_style(), colours.style()])
    shown = {part: colours.transform_attrs(region.get_attrs_for_style_str(f"class:{part}")) for part in (*ROLES, *GROUNDS)}
    assert all(f"{attrs.color}".startswith(("ansi", "default")) and attrs.bgcolor == "default" for attrs in shown.values())
    assert shown["added"].color == "ansigreen"
    assert shown["selection"].reverse


def test_completion_offers_every_built_in_theme() -> None:
    assert ("auto", *BUILT_IN) == schema.THEMES
