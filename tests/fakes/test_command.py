"""The installed command, run as a script would and as a person would."""

from __future__ import annotations

from tests.fakes.command import run_wolo
from tests.fakes.screen import pty_wolo


def test_a_run_has_its_output_and_exit_status() -> None:
    ended = run_wolo("--version")
    assert ended.exit_code == 0
    assert "0." in ended.stdout


def test_a_terminal_shows_what_a_person_would_see() -> None:
    with pty_wolo("--version", columns=60) as terminal:
        assert terminal.wait_for_exit() == 0
        assert terminal.shows("0.")
        assert terminal.raw.endswith(b"\r\n")
