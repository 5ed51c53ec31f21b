"""The user's own status row and colours."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.end_to_end.test_repl import leave, repl, wait_for_prompt
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.screen import Terminal
from wolo.frontends.terminal.repl import status_bar
from wolo.places import find_places

SEEN = "import json, pathlib, sys; facts = json.load(sys.stdin); pathlib.Path('seen.json').write_text(json.dumps(facts)); "


def settings(line: str) -> Path:
    folder = find_places().config
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(f"[ui]\n{line}\n")
    return folder


def status_of(program: str) -> Path:
    folder = settings(f"status_command = ['{sys.executable}', 'status.py']")
    (folder / "status.py").write_text(program)
    return folder


def last_row(terminal: Terminal) -> str:
    return next(line for line in reversed(terminal.lines) if line.strip())


def test_own_command_prints_the_status_row(provider: ProviderServer) -> None:
    folder = status_of(f"{SEEN}print('\\033[32mmine · ' + facts['model']['display_name'] + '\\033[0m\\x1b]0;t\\x07')")
    provider.script(text("Hello."))
    with repl(provider, rows=24, columns=80) as terminal:
        terminal.wait_until(lambda: last_row(terminal).startswith("mine · test-model"))
        terminal.enter("hi")
        terminal.wait_for("Hello.")
        terminal.wait_until(lambda: json.loads((folder / "seen.json").read_text())["context_window"]["used_tokens"] > 0)
        leave(terminal)
    assert b"\x1b]0;t" not in terminal.raw
    assert json.loads((folder / "seen.json").read_text())["cwd"] == str(Path.cwd())


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("raise SystemExit(3)", "ui.status_command failed with exit code 3."),
        ("import time; time.sleep(60)", "ui.status_command took longer than"),
    ],
)
def test_failed_command_is_named_once(
    provider: ProviderServer, monkeypatch: pytest.MonkeyPatch, program: str, error: str
) -> None:
    monkeypatch.setattr(status_bar, "COMMAND_S", 0.5)
    status_of(program)
    provider.script(text("Hello."), text("Again."))
    with repl(provider, rows=24, columns=100) as terminal:
        terminal.wait_for(error)
        terminal.say("hi", "Hello.")
        terminal.say("again", "Again.")
        assert "custom/test-model" in last_row(terminal)
        leave(terminal)
    assert terminal.times(error) == 1


def test_project_names_no_status_command(provider: ProviderServer) -> None:
    Path(".git").mkdir()
    Path(".wolo").mkdir()
    Path(".wolo/config.toml").write_text("[ui]\nstatus_command = ['touch', 'made-by-the-project']\n")
    with repl(provider, "--trust", rows=24, columns=80) as terminal:
        wait_for_prompt(terminal)
        leave(terminal)
    assert not list(Path.cwd().rglob("made-by-the-project"))
    assert not (find_places().config / "made-by-the-project").exists()


def test_own_theme_colours_the_screen(provider: ProviderServer) -> None:
    folder = settings('theme = "mine"') / "themes"
    folder.mkdir()
    (folder / "mine.toml").write_text('base = "light"\naccent = "#123456"\n')
    with repl(provider, rows=24, columns=80) as terminal:
        terminal.enter("/theme dark")
        terminal.wait_for("Theme set to dark")
        terminal.enter("/theme mine")
        terminal.wait_for("Theme set to mine")
        terminal.enter("/theme other")
        terminal.wait_for("There is no theme other.")
        terminal.enter("/theme")
        terminal.wait_for("mine  yours")
        terminal.press("escape")
        wait_for_prompt(terminal)
        leave(terminal)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('accent = "red"', "accent is not a colour: red."),
        ('accnt = "#123456"', "there is no role accnt."),
        ('base = "mine"', "base is one of dark, light,"),
        ("accent =", "line 1: invalid value."),
        ("accent = 3", "accent is not a colour: 3."),
    ],
)
def test_damaged_theme_is_a_warning(provider: ProviderServer, content: str, sentence: str) -> None:
    folder = settings('theme = "mine"') / "themes"
    folder.mkdir()
    (folder / "mine.toml").write_text(content)
    with repl(provider, rows=24, columns=160) as terminal:
        terminal.wait_for(sentence)
        assert terminal.shows("themes/mine.toml")
        leave(terminal)


def test_missing_theme_is_a_notice_everywhere(provider: ProviderServer) -> None:
    settings('theme = "mine"')
    sentence = "There is no theme mine, which ui.theme of"
    provider.script(text("Hello."), text("Hello."))
    done = run_wolo(*provider.flags, "-p", "hi")
    assert (done.exit_code, done.stderr.count(sentence)) == (0, 1)
    with repl(provider, rows=24, columns=160) as terminal:
        terminal.say("hi", "Hello.")
        assert terminal.times(sentence) == 1
        leave(terminal)
