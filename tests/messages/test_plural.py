"""Counted nouns in singular and plural."""

from __future__ import annotations

from wolo.messages.terminal_text import counted


def test_one_has_no_s() -> None:
    assert [counted(count, "line") for count in (0, 1, 2, 1204)] == ["0 lines", "1 line", "2 lines", "1,204 lines"]
    assert (counted(1, "entry", "entries"), counted(3, "entry", "entries")) == ("1 entry", "3 entries")
