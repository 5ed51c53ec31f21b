"""The roles of the theme: readable on each background, with millions of colours, 256 and 16."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prompt_toolkit.styles import default_ui_style, merge_styles
from rich.color import ANSI_COLOR_NAMES, Color
from rich.style import Style
from rich.text import Text

import wolo
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.theme import DARK, GROUNDS, LIGHT, ROLES, STYLES, Depth, is_light, paint
from wolo.frontends.terminal.panels.region_styles import RegionColours, as_rows


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
def test_background_is_recognised(theme: str, colorfgbg: str, expected: bool) -> None:
    assert is_light(theme, {"COLORFGBG": colorfgbg}) is expected


def test_eight_roles_exist_on_both_backgrounds() -> None:
    assert {*ROLES, "text", "selection"} == {"text", "dim", "accent", "added", "removed", "warning", "error", "selection"}
    assert DARK.keys() == LIGHT.keys()


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


def own(on_light: bool) -> tuple[str, str]:
    """The terminal's own text and background."""
    return ("#000000", "#ffffff") if on_light else ("#e5e5e5", "#000000")


DEPTHS: tuple[Depth, ...] = ("256", "truecolor")


@pytest.mark.parametrize("on_light", [True, False])
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("role", ROLES)
def test_every_role_is_readable_on_the_background(role: str, depth: Depth, on_light: bool) -> None:
    shown = paint(STYLES[role], on_light=on_light, depth=depth)
    assert shown.color is not None
    assert contrast(shown.color.name, own(on_light)[1]) > ENOUGH


@pytest.mark.parametrize("on_light", [True, False])
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("role", ["text", *ROLES])
def test_every_role_is_readable_on_theme_backgrounds(role: str, ground: str, depth: Depth, on_light: bool) -> None:
    shown = paint(STYLES.get(role, Style()) + Style(bgcolor=ground_colour(ground)), on_light=on_light, depth=depth)
    assert shown.bgcolor is not None
    text, behind = own(on_light)
    written = shown.color.name if shown.color is not None and shown.color.name != "default" else text
    assert contrast(written, shown.bgcolor.name) > ENOUGH
    assert contrast(shown.bgcolor.name, behind) < 3 or ground.endswith("-word")  # it is soft


def ground_colour(name: str) -> Color:
    found = next(style.bgcolor for style in STYLES.values() if style.bgcolor is not None and style.bgcolor.name == name)
    assert found is not None
    return found


def test_sixteen_colours_keep_text_and_reverse_words() -> None:
    assert paint(STYLES["added line"], on_light=False, depth="standard") == Style(color="green")
    assert paint(STYLES["removed word"], on_light=True, depth="standard") == Style(color="red", reverse=True)
    assert paint(STYLES["selection"], on_light=True, depth="standard") == Style(bold=True, reverse=True)
    assert paint(STYLES["said"], on_light=True, depth="standard") == Style()
    assert paint(STYLES["bold warning"], on_light=False, depth="standard") == Style.parse("bold yellow")


@pytest.mark.parametrize("on_light", [True, False])
@pytest.mark.parametrize("is_soft", [True, False])
@pytest.mark.parametrize(
    "part",
    [
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
    ],
)
def test_so_can_the_parts_of_the_live_region(part: str, is_soft: bool, on_light: bool) -> None:
    colours = RegionColours(TerminalState(is_light=on_light), is_soft=is_soft)
    region = merge_styles([default_ui_style(), colours.style()])
    attrs = colours.transform_attrs(region.get_attrs_for_style_str(f"class:{part}"))
    text, behind = own(on_light)
    written = f"#{attrs.color}" if attrs.color not in ("", "default", None) else text
    behind = f"#{attrs.bgcolor}" if attrs.bgcolor not in ("", "default", None) else behind
    assert contrast(written, behind) > ENOUGH


def test_a_panel_paints_the_roles_of_the_theme() -> None:
    row = as_rows([Text.assemble(("x", "bold warning"), ("y", "added word"), ("z", "reverse"))], 10)[0]
    assert [piece[0] for piece in row] == ["class:warning bold", "class:added class:added-word", "reverse"]


def test_changed_theme_is_painted_at_once() -> None:
    state = TerminalState(is_light=False)
    colours = RegionColours(state, is_soft=True)
    before = colours.invalidation_hash()
    state.is_light = True
    assert colours.invalidation_hash() != before
