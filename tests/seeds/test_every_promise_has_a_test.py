"""Each numbered promise is shown by a test that bears its number."""

from __future__ import annotations

import re
from pathlib import Path

PROMISES = {1: 21, 2: 17, 3: 17, 4: 10, 5: 10}
"""How many there are of each chapter."""


def test_every_number_is_borne_by_a_test() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_c*.py"))
    found = {(int(chapter), int(number)) for chapter, number in re.findall(r"def test_c(\d)_(\d\d)_", text)}
    assert found == {(chapter, number) for chapter, count in PROMISES.items() for number in range(1, count + 1)}
