"""Modes by name, and what becomes of auto without a sandbox."""

from __future__ import annotations

import pytest

from wolo.errors import UsageError
from wolo.guard.modes import MODES, NO_SANDBOX, effective, find_mode


def test_auto_without_sandbox_becomes_edit_with_notice() -> None:
    assert effective("auto") == (MODES["edit"], NO_SANDBOX)
    assert effective("auto", sandbox_available=True) == (MODES["auto"], "")


@pytest.mark.parametrize("name", ["plan", "ask", "edit", "yolo"])
def test_every_other_mode_is_what_it_says(name: str) -> None:
    assert effective(name) == (MODES[name], "")


@pytest.mark.parametrize(
    ("theirs", "ours"), [("default", "ask"), ("acceptEdits", "edit"), ("accept-edits", "edit"), ("bypassPermissions", "yolo")]
)
def test_other_agents_names_are_understood(theirs: str, ours: str) -> None:
    assert find_mode(theirs).name == ours


def test_an_unknown_mode_names_them_all() -> None:
    with pytest.raises(UsageError) as caught:
        find_mode("edti")
    assert "plan, ask, edit, auto, yolo" in caught.value.hint
