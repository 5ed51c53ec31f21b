"""Details below the entries of a list."""

from __future__ import annotations

from wolo.frontends.terminal.dialogs.picker import Item, hinted_menu

ITEMS = [Item("zai", "Z.ai"), Item("other", "Other")]


def test_entry_without_a_hint_has_no_row_below() -> None:
    preview = hinted_menu("Which provider?", ITEMS, {"zai": "Keys: here. Two kinds."}).preview
    assert preview is not None
    assert list(preview("zai", False)) == ["Keys: here.", "Two kinds."]
    assert list(preview("other", False)) == []


def test_list_without_hints_has_no_preview() -> None:
    assert hinted_menu("Which provider?", ITEMS, {"zai": ""}).preview is None
