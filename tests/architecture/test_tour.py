"""The tour of one turn shows the code that runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXCERPTS = re.findall(r"```python\n# (\S+)\n(.*?)```", (ROOT / "docs" / "tour.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(("path", "excerpt"), EXCERPTS)
def test_excerpt_of_the_tour_is_in_its_file(path: str, excerpt: str) -> None:
    source = [line.strip() for line in (ROOT / path).read_text(encoding="utf-8").splitlines()]
    for passage in excerpt.split("…\n"):
        lines = [line.strip() for line in passage.splitlines()]
        assert any(source[at : at + len(lines)] == lines for at in range(len(source))), f"{path} has no such lines:\n{passage}"


def test_a_tour_has_excerpts_of_three_rooms() -> None:
    assert len({path.split("/")[1] for path, _ in EXCERPTS}) >= 3
