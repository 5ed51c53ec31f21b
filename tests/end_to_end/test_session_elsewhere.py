"""A session of another directory, resumed at the keyboard."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.screen import pty_wolo


@pytest.fixture
def other(provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory beside this one, with a session."""
    folder = tmp_path / "other"
    folder.mkdir()
    provider.script(text("Hello."))
    assert run_wolo("-p", "hi", "-s", "there", *provider.flags, cwd=folder).exit_code == 0
    provider.forget_prefix()
    return folder


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize(("answer", "is_there"), [("y", True), ("n", False), ("", False)])
def test_it_is_asked_whether_to_go_there(provider: ProviderServer, other: Path, answer: str, is_there: bool) -> None:
    provider.script(text("Here I am."))
    with pty_wolo("-s", "there", "where are you?", *provider.flags) as terminal:
        terminal.wait_for("Continue there? [y/N]")
        terminal.enter(answer)
        terminal.wait_for("Here I am.")
        assert terminal.wait_for_exit() == 0
    system = provider.requests[-1].messages[0]["content"]
    assert (str(other) in system) == is_there


def test_missing_or_named_directory_asks_nobody(provider: ProviderServer, other: Path) -> None:
    provider.script(text("One."), text("Two."))
    with pty_wolo("-s", "there", "-C", ".", "one", *provider.flags) as terminal:
        terminal.wait_for("One.")
        assert terminal.wait_for_exit() == 0
    provider.forget_prefix()
    shutil.rmtree(other)
    with pty_wolo("-s", "there", "two", *provider.flags) as terminal:
        terminal.wait_for("Two.")
        assert terminal.wait_for_exit() == 0
    assert "which is gone" in terminal.text.replace("\n", " ")
