"""Calling a person who looks elsewhere, byte by byte."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.end_to_end.test_panels import READY, for_a_while, touch, visible
from tests.end_to_end.test_repl import leave, wait_for_prompt
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.screen import Terminal, pty_wolo
from wolo.frontends.terminal.dialogs.notifications import call
from wolo.places import find_places

IN, OUT = "\x1b[I", "\x1b[O"
WEZTERM = {"TERM_PROGRAM": "WezTerm"}
APPROVAL = b"\x1b]777;notify;wolo;your approval is needed\x07"
DONE = b"\x1b]777;notify;wolo;the turn is done\x07"


@contextmanager
def repl(provider: ProviderServer, *settings: str, **env: str) -> Iterator[Terminal]:
    path = find_places().config / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["[ui]", *settings]))
    with pty_wolo(*provider.flags, "--mode", "edit", columns=100, env={**WEZTERM, **env}) as terminal:
        wait_for_prompt(terminal)
        yield terminal


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMUX", "STY", "LC_TERMINAL", "KITTY_WINDOW_ID", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("environment", "written"),
    [
        ({"TERM": "xterm-256color"}, "\a"),
        ({"TERM_PROGRAM": "Apple_Terminal"}, "\a"),
        ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]9;wolo: hi\a"),
        ({"TERM": "xterm-kitty"}, "\x1b]9;wolo: hi\a"),
        ({"TERM_PROGRAM": "WezTerm"}, "\x1b]777;notify;wolo;hi\a"),
        ({"TERM": "foot"}, "\x1b]777;notify;wolo;hi\a"),
        ({"TERM": "tmux-256color", "TMUX": "x"}, "\a"),
        ({"TERM": "tmux-256color", "TMUX": "x", "WEZTERM_PANE": "0"}, "\x1bPtmux;\x1b\x1b]777;notify;wolo;hi\a\x1b\\\a"),
        ({"TERM": "screen", "STY": "x", "KITTY_WINDOW_ID": "1"}, "\a"),
    ],
)
def test_each_terminal_is_told_in_its_own_way(environment: dict[str, str], written: str) -> None:
    assert call("wolo: hi", environment) == written


def test_an_approval_calls_whoever_looks_elsewhere_once(provider: ProviderServer) -> None:
    provider.script(touch(), text("I see."))
    with repl(provider) as terminal:
        terminal.type(OUT)
        terminal.enter("go on")
        terminal.type(OUT)
        terminal.wait_until(lambda: READY in visible(terminal))
        terminal.wait_until(lambda: APPROVAL in terminal.raw)
        for_a_while(terminal, 0.2)
        assert terminal.raw.count(APPROVAL) == 1
        terminal.type(IN)
        terminal.type("n")
        terminal.wait_for("I see.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert DONE not in terminal.raw  # the turn was short


def test_approval_calls_when_the_person_leaves_meanwhile(provider: ProviderServer) -> None:
    provider.script(touch(), text("I see."))
    with repl(provider) as terminal:
        terminal.type(IN)
        terminal.enter("go on")
        terminal.wait_until(lambda: READY in visible(terminal))
        assert APPROVAL not in terminal.raw
        terminal.type(OUT)
        terminal.wait_until(lambda: APPROVAL in terminal.raw)
        assert READY in visible(terminal)
        terminal.type("n")
        terminal.wait_for("I see.")
        leave(terminal)


def test_a_long_turn_calls_only_whoever_looks_elsewhere(provider: ProviderServer) -> None:
    provider.script(text("One. " * 40).slow(0.05), text("Two. " * 40).slow(0.05))
    with repl(provider, "notify_after_s = 0.5") as terminal:
        terminal.type(IN)
        terminal.enter("first")
        terminal.wait_for("One.")
        wait_for_prompt(terminal)
        assert DONE not in terminal.raw
        terminal.enter("second")
        provider.wait_for_requests(2)
        terminal.type(OUT)
        terminal.wait_for("Two.")
        wait_for_prompt(terminal)
        terminal.wait_until(lambda: DONE in terminal.raw)
        leave(terminal)
    assert terminal.raw.count(DONE) == 1


def test_silent_terminal_gets_call_after_time_without_key(provider: ProviderServer) -> None:
    provider.script(touch(), text("I see."))
    with repl(provider, "notify_after_s = 1.5") as terminal:
        pressed = time.monotonic()
        terminal.enter("go on")
        terminal.wait_until(lambda: READY in visible(terminal))
        terminal.wait_until(lambda: APPROVAL in terminal.raw)
        assert time.monotonic() - pressed >= 1.4
        terminal.type("n")
        terminal.wait_for("I see.")
        leave(terminal)


def test_it_can_be_turned_off(provider: ProviderServer) -> None:
    provider.script(touch(), text("I see."))
    with repl(provider, "notify = false", "notify_after_s = 0") as terminal:
        terminal.type(OUT)
        terminal.enter("go on")
        terminal.wait_until(lambda: READY in visible(terminal))
        for_a_while(terminal, 0.3)
        terminal.type("n")
        terminal.wait_for("I see.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert b"\x1b]777" not in terminal.raw


def test_terminal_reports_are_never_typed(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    with repl(provider) as terminal:
        for letter in "he llo":
            terminal.type(f"{IN}{letter}{OUT}")
        terminal.wait_for("› he llo")
        terminal.press("enter")
        terminal.wait_for("Read.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert provider.requests[0].messages[-1]["content"] == "he llo"


@pytest.mark.parametrize("way", ["ctrl-d", "sigterm"])
def test_terminal_is_told_to_stop_reporting_at_end(provider: ProviderServer, way: str) -> None:
    with repl(provider) as terminal:
        terminal.wait_until(lambda: b"\x1b[?1004h" in terminal.raw)
        if way == "ctrl-d":
            leave(terminal)
        else:
            os.kill(terminal.child.pid, signal.SIGTERM)
            terminal.wait_for_exit()
    assert terminal.raw.rindex(b"\x1b[?1004l") > terminal.raw.rindex(b"\x1b[?1004h")


def test_own_program_replaces_the_call_without_shell(provider: ProviderServer) -> None:
    noted = Path("noted").absolute()
    script = f"import os, pathlib; pathlib.Path({str(noted)!r}).write_text(os.environ['WOLO_NOTIFICATION'])"
    find_places().config.mkdir(parents=True, exist_ok=True)
    (find_places().config / "note.py").write_text(script)
    Path("note.py").write_text("raise SystemExit('of the checkout')")
    provider.script(touch(), text("I see."))
    with repl(provider, f"notify_command = ['{sys.executable}', 'note.py']") as terminal:
        terminal.type(OUT)
        terminal.enter("go on")
        terminal.type(OUT)
        terminal.wait_until(lambda: noted.exists() and bool(noted.read_text()))
        terminal.wait_until(lambda: READY in visible(terminal))
        terminal.type("n")
        terminal.wait_for("I see.")
        leave(terminal)
    assert noted.read_text() == "wolo: your approval is needed"
    assert b"\x1b]777" not in terminal.raw


def test_a_program_that_is_missing_disturbs_nobody(provider: ProviderServer) -> None:
    provider.script(touch(), text("I see."))
    with repl(provider, "notify_command = ['/nowhere/at-all']") as terminal:
        terminal.type(OUT)
        terminal.enter("go on")
        terminal.type(OUT)
        terminal.wait_until(lambda: READY in visible(terminal))
        terminal.type("n")
        terminal.wait_for("I see.")
        assert leave(terminal) == 0


def test_a_project_cannot_name_a_program(provider: ProviderServer) -> None:
    Path(".wolo").mkdir()
    Path(".wolo/config.toml").write_text("[ui]\nnotify_command = ['touch', 'owned']\n")
    provider.script(touch(), text("I see."))
    with pty_wolo(*provider.flags, "--mode", "edit", "--trust", columns=100, env=WEZTERM) as terminal:
        wait_for_prompt(terminal)
        terminal.type(OUT)
        terminal.enter("go on")
        terminal.type(OUT)
        terminal.wait_until(lambda: READY in visible(terminal))
        terminal.wait_until(lambda: APPROVAL in terminal.raw)
        terminal.type("n")
        terminal.wait_for("I see.")
        leave(terminal)
    assert not Path("owned").exists()


def test_one_task_asks_the_terminal_nothing(provider: ProviderServer) -> None:
    provider.script(text("Done."))
    with pty_wolo(*provider.flags, "go on", env=WEZTERM) as terminal:
        assert terminal.wait_for_exit() == 0
    assert b"\x1b[?1004" not in terminal.raw
