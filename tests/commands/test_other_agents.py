"""Slash commands by the names that other agents give them."""

from __future__ import annotations

import pytest

from wolo.commands.command import by_name, find
from wolo.commands.other_agents import SAME
from wolo.commands.table import load_commands
from wolo.errors import UsageError

OF_THE_TERMINAL = {"keys", "theme"}


def test_other_names_lead_to_our_commands() -> None:
    commands = load_commands()
    for name, ours in SAME.items():
        assert ours in OF_THE_TERMINAL or getattr(by_name(name, commands), "name", "") == ours, name


@pytest.mark.parametrize("name", ["vim", "Terminal-Setup", "share", "ide"])
def test_a_command_of_others_is_explained(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        find(name, load_commands())
    assert refused.value.message == f"/{name.casefold()} is no command here."
    assert refused.value.hint
