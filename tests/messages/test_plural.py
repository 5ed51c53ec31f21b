"""Counted nouns in singular and plural."""

from __future__ import annotations

from wolo.messages.terminal_text import quantity


def test_one_has_no_s() -> None:
    assert [quantity(count, "line") for count in (0, 1, 2, 1204)] == ["0 lines", "1 line", "2 lines", "1,204 lines"]
    assert (quantity(1, "entry", "entries"), quantity(3, "entry", "entries")) == ("1 entry", "3 entries")
