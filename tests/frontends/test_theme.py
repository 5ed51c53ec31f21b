"""Colours for a light background, which is known from the settings or the environment alone."""

from __future__ import annotations

import pytest
from rich.style import Style

from wolo.frontends.terminal.theme import is_light, on_light


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
    assert on_light(Style.parse("bold yellow")) == Style.parse("bold color(130)")
    assert on_light(Style.parse("red")) == Style.parse("red")
    assert on_light(Style.parse("dim")) == Style.parse("dim")
