"""Slash commands by the names that other agents give them."""

from __future__ import annotations

import pytest

from wolo.commands.command import by_name, find
from wolo.commands.other_agents import SAME
from wolo.commands.table import load_commands
from wolo.errors import UsageError

OF_THE_TERMINAL = {"keys", "theme", "vim", "copy", "editor", "loop"}
USED_ELSEWHERE = """
    about add-dir agent agents approvals auth bug chat clear compact compress config context continue copy cost details diff
    docs doctor editor effort exit experimental export extensions fast feedback footer fork help hooks ide init insights
    install-github-app keybindings keymap login logout loop mcp mcps memories memory mention model models new output-style
    permissions personality plan plugin policies pr-comments privacy ps quit realtime redo release-notes remote-control rename
    reset restore resume review rewind rollout sandbox schedule security-review sessions settings setup-github share shells
    shortcuts side skills stash stats status statusline stop summarize tasks terminal-setup theme themes thinking timeline title
    todos tools undo unshare update upgrade usage variants vim voice yolo
"""
"""Commands in the help of Claude Code, Codex, OpenCode and Gemini CLI."""


def test_other_names_lead_to_our_commands() -> None:
    commands = load_commands()
    for name, ours in SAME.items():
        assert ours in OF_THE_TERMINAL or getattr(by_name(name, commands), "name", "") == ours, name


@pytest.mark.parametrize("name", ["Voice", "Terminal-Setup", "share", "ide"])
def test_a_command_of_others_is_explained(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        find(name, load_commands())
    assert refused.value.message == f"/{name.casefold()} is no command here."
    assert refused.value.hint


def test_no_command_of_others_is_unknown() -> None:
    commands = load_commands()
    unknown = []
    for name in USED_ELSEWHERE.split():
        try:
            assert name in OF_THE_TERMINAL or SAME.get(name) in OF_THE_TERMINAL or find(name, commands)
        except UsageError as refused:
            unknown += [name] if refused.message.startswith("Unknown") else []
    assert unknown == []
