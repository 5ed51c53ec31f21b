"""Each numbered promise is shown by a test that bears its number: here by what a program imports, or in `tests/promises`."""

from __future__ import annotations

import re
from pathlib import Path

PROMISES = {1: 21, 2: 17, 3: 17, 4: 10, 5: 10}
"""How many there are of each chapter."""
HERE = Path(__file__).parent


def test_every_number_is_borne_by_a_test() -> None:
    files = (*HERE.glob("test_c*.py"), *(HERE.parent / "promises").glob("test_c*.py"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    found = {(int(chapter), int(number)) for chapter, number in re.findall(r"def test_c(\d)_(\d\d)_", text)}
    assert found == {(chapter, number) for chapter, count in PROMISES.items() for number in range(1, count + 1)}


def test_seeds_import_only_public_names() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in HERE.glob("*.py")}
    assert [name for name, text in texts.items() if re.search(r"^ *(from|import) wolo\.", text, re.MULTILINE)] == []
