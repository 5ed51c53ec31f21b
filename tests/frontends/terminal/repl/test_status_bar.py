"""The line of facts: what has no room is left out by how little it matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.frontends.terminal.repl.status_bar import cache_share, fit, how_held, money, short_place, spread
from wolo.messages.message import Usage, UsageCost

FACTS = {
    "dir": "~/code/shop",
    "branch": "main",
    "model": "zai/glm-4.6:high",
    "mode": "edit",
    "context": "context 12%",
    "cost": "$0.31",
}


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (100, "~/code/shop · main · zai/glm-4.6:high · edit · context 12% · $0.31"),
        (60, "~/code/shop · main · zai/glm-4.6:high · edit · context 12%"),
        (55, "~/code/shop · zai/glm-4.6:high · edit · context 12%"),
        (40, "zai/glm-4.6:high · edit · context 12%"),
        (20, "edit · context 12%"),
        (5, "edit"),
        (3, "ed…"),
        (1, "…"),
    ],
)
def test_least_important_part_is_left_out_first(columns: int, line: str) -> None:
    assert fit(FACTS, columns) == line


def test_the_order_is_the_persons() -> None:
    assert fit({"cost": "$1.00", "mode": "ask"}, 80) == "$1.00 · ask"
    assert fit({"cost": "$1.00", "mode": "ask"}, 5) == "ask"
    assert fit({}, 80) == ""


def test_usage_is_on_the_right_given_room() -> None:
    assert spread(FACTS, 75) == "~/code/shop · main · zai/glm-4.6:high · edit            context 12% · $0.31"
    assert spread(FACTS, 66) == fit(FACTS, 66)
    assert spread(FACTS, 40) == "zai/glm-4.6:high · edit      context 12%"
    assert spread({"mode": "ask"}, 40) == "ask"


def test_wide_characters_take_two_cells() -> None:
    assert fit({"dir": "漢字漢字"}, 8) == "漢字漢字"
    assert fit({"dir": "漢字漢字"}, 6) == "漢字…"


def test_of_a_long_directory_the_end_is_shown() -> None:
    assert short_place(Path("/srv/shop")) == "/srv/shop"
    assert short_place(Path("/a" * 10 + "/very/long/name/of/a/directory/in/here")) == "…/very/long/name/of/a/directory/in/here"
    assert short_place(Path("/" + "x" * 60)) == "/" + "x" * 60


def test_usage_is_summed() -> None:
    used = Usage(input_tokens=200, cache_read_tokens=800, cost=UsageCost(total=0.126))
    assert (cache_share(used), money(used)) == ("cache 80%", "$0.13")
    assert (cache_share(Usage()), money(Usage())) == ("", "")


@pytest.mark.parametrize(
    ("sandbox", "said"),
    [
        ("", "auto"),
        ("bubblewrap", "auto · sandboxed"),
        ("namespaces", "auto · sandboxed"),
        ("landlock", "auto · sandboxed (partial)"),
    ],
)
def test_mode_names_the_command_sandbox_and_its_extent(sandbox: str, said: str) -> None:
    assert how_held("auto", sandbox) == said
