"""Keys and the actions they are bound to."""

from __future__ import annotations

import pytest

from wolo.errors import ConfigError
from wolo.frontends.terminal.composer.keymap import ACTIONS, Keymap, parse


def test_the_usual_keys() -> None:
    keymap = Keymap({})
    assert keymap.key_presses("editor") == (("c-g",), ("c-x", "c-e"), ("c-x", "e"))
    assert keymap.key_presses("send_later") == (("escape", "c-m"),)
    assert all(action.name in keymap.table() for action in ACTIONS)


def test_keys_of_ones_own_and_none_at_all() -> None:
    keymap = Keymap({"editor": "ctrl-x ctrl-e", "mode": ("f2", "alt-m"), "suspend": ()})
    assert keymap.key_presses("editor") == (("c-x", "c-e"),)
    assert keymap.key_presses("mode") == (("f2",), ("escape", "m"))
    assert keymap.key_presses("suspend") == ()
    assert "(no key)" in keymap.table()


def test_key_is_taken_from_its_former_action() -> None:
    keymap = Keymap({"search": "ctrl-g"})
    assert keymap.key_presses("search") == (("c-g",),)
    assert ("c-g",) not in keymap.key_presses("editor")


def test_a_key_cannot_be_given_away_twice() -> None:
    with pytest.raises(ConfigError, match="both search and editor"):
        Keymap({"search": "ctrl-t", "editor": ("Ctrl-T",)})


@pytest.mark.parametrize("written", ["", " ", "ctrl-", "alt-", "ctrl-ü", "hyper-x", "x", "enter-", "shift-x", "alt-nosuch"])
def test_invalid_key_is_refused(written: str) -> None:
    with pytest.raises(ConfigError):
        parse(written)


@pytest.mark.parametrize("columns", [39, 79, 119])
def test_key_list_is_indented_where_wrapped(columns: int) -> None:
    *table, _, _ = Keymap({}).table(columns).split("\n")
    names = {action.name for action in ACTIONS}
    assert all(len(line) <= columns for line in table)
    assert all(line.startswith("    ") or line.split()[0] in names for line in table)
