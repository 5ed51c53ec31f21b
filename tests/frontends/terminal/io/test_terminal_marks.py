"""Marks that a terminal shows outside its text: title, progress, prompts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.end_to_end.test_repl import leave, wait_for_prompt
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.screen import pty_wolo
from wolo.config.schema import Ui
from wolo.frontends.terminal.io.terminal_marks import TerminalMarks, shows_progress

XTERM = {"TERM": "xterm-256color"}
WINDOWS = {**XTERM, "WT_SESSION": "1"}


class Sent(list[str]):
    def send(self, sequence: str) -> None:
        self.append(sequence)


def marked(ui: Ui, environment: Mapping[str, str] = WINDOWS) -> tuple[list[str], bool]:
    sent = Sent()
    marks = TerminalMarks(ui, sent, "a\x1b]b", environment)
    for state in ("idle", "working", "working", "asking"):
        marks.show(state)  # type: ignore[arg-type]  # mypy takes them for any text
    marks.close()
    return sent, marks.has_prompts


def test_title_and_progress_follow_the_state() -> None:
    sent, has_prompts = marked(Ui())
    assert sent[0].startswith("\x1b[22;2t\x1b]2;wolo · a")
    assert "\x1b]b" not in sent[0]
    assert "]2;● wolo" in sent[1]
    assert sent[1].endswith("\x1b]9;4;3;0\x1b\\")
    assert "]2;? wolo" in sent[2]
    assert sent[3] == "\x1b[23;2t\x1b]9;4;0;0\x1b\\"
    assert len(sent) == 4
    assert has_prompts


def test_each_mark_can_be_turned_off() -> None:
    assert not any("]2;" in each for each in marked(Ui(title=False))[0])
    assert not any("]9;" in each for each in marked(Ui(progress=False))[0])
    assert not marked(Ui(prompt_marks=False))[1]
    assert marked(Ui(title=False, progress=False))[0] == []


@pytest.mark.parametrize(
    ("environment", "shows"),
    [
        (WINDOWS, True),
        ({"ConEmuANSI": "ON"}, True),
        ({"TERM_PROGRAM": "ghostty", "TERM_PROGRAM_VERSION": "1.2.0"}, True),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.5.0"}, False),
        ({"TERM_PROGRAM": "WezTerm", "TERM_PROGRAM_VERSION": "20240203-110809-5046fc22"}, False),
        ({**WINDOWS, "TMUX": "x"}, False),
        ({"TERM": "xterm-kitty"}, False),
    ],
)
def test_progress_goes_to_terminals_that_show_it(environment: dict[str, str], shows: bool) -> None:
    assert shows_progress(environment) == shows


def test_console_without_titles_gets_no_mark() -> None:
    assert marked(Ui(), {"TERM": "linux"}) == ([], False)


def test_turn_is_marked_and_title_restored(provider: ProviderServer) -> None:
    provider.script(text("Here is the answer."))
    with pty_wolo(*provider.flags, env={"WT_SESSION": "1"}) as terminal:
        wait_for_prompt(terminal)
        terminal.enter("go")
        terminal.wait_for("Here is the answer.")
        wait_for_prompt(terminal)
        leave(terminal)
    raw = bytes(terminal.raw).decode()
    places = [raw.index(f"\x1b]133;{mark}\x1b\\") for mark in "ACD"]
    answer = raw.index("Here is")
    assert places[0] < places[1] < answer < places[2]
    assert raw.count("\x1b[22;2t") == raw.count("\x1b[23;2t") == 1
    assert raw.index("9;4;3;0") < raw.index("9;4;0;0")
    assert "]133" not in terminal.text
