"""The installed command, run as a script would and as a person would."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.fakes import fork_server
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.fork_server import Forked
from tests.fakes.provider_server import ProviderServer
from tests.fakes.screen import pty_wolo


def test_a_run_has_its_output_and_exit_status() -> None:
    ended = run_wolo("--version")
    assert ended.exit_code == 0
    assert "0." in ended.stdout


def test_a_terminal_shows_what_a_person_would_see() -> None:
    with pty_wolo("--version", columns=60) as terminal:
        assert terminal.wait_for_exit() == 0
        terminal.wait_for("0.")
        assert terminal.raw.endswith(b"\r\n")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can fork a sibling")
def test_run_is_forked_unless_environment_needs_an_interpreter() -> None:
    with start_wolo("--version") as run:
        assert isinstance(run, Forked)
    with start_wolo("--version", env={"PYTHONUTF8": "0"}) as run:
        assert not isinstance(run, Forked)


@pytest.mark.parametrize("forked", [True, False])
def test_fork_has_surroundings_and_streams_of_a_start(tmp_path: Path, forked: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    given = {"WOLO_HOME": str(tmp_path / "another"), "WOLO_MODEL": "zai/glm-5.2"}
    shown = run_wolo("config", "path", env=given, cwd=tmp_path / "elsewhere", forked=forked)
    assert given["WOLO_HOME"] in shown.stdout
    assert run_wolo("-p", "--base-url", "nowhere", stdin="words", forked=forked).exit_code == 2
    read = run_wolo("sessions", "import", "-", stdin="no session", forked=forked)
    assert read.stderr
    assert read.exit_code


@pytest.mark.parametrize("forked", [True, False])
def test_a_terminal_controls_what_runs_in_it(provider: ProviderServer, forked: bool) -> None:
    with pty_wolo(*provider.flags, forked=forked) as terminal:
        terminal.wait_for_prompt()
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0


def test_interrupted_start_shifts_no_statuses(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as interrupted:
        interrupted.setattr(fork_server, "receive", Mock(side_effect=KeyboardInterrupt))  # as the time limit of a test is
        with pytest.raises(KeyboardInterrupt):
            start_wolo("--version")
    for option, status in (("--no-such-option", 2), ("--version", 0)):
        with start_wolo(option) as run:
            run.communicate(timeout=60)
        assert run.returncode == status
