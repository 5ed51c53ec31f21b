"""Splits terminal input into typed keys and pastes."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.keys import Keys

from wolo.frontends.terminal.io.input_parser import FocusTracker, TerminalInput
from wolo.frontends.terminal.io.prompt_toolkit_adapter import map_sequence

ENTER, PASTE, IN, OUT = Keys.ControlM, Keys.BracketedPaste, "\x1b[I", "\x1b[O"
AT_ONCE_S, SOON_S, LATER_S = 0.0, 0.01, 1.0


class Line(TerminalInput):
    """A keyboard at the other end of a line: each piece arrives so long after the one before."""

    def __init__(self, *pieces: tuple[float, str]) -> None:
        self.presence = FocusTracker(None)
        super().__init__(self.presence)
        self.coming = list(pieces)

    def read_text(self, most_bytes: int) -> str:
        return self.coming.pop(0)[1]

    def _more(self, patience_s: float) -> str:
        return self.read_text(1) if self.coming and self.coming[0][0] <= patience_s else ""

    def all_keys(self) -> list[tuple[str, str]]:
        keys = []
        while self.coming:
            keys += self.read_keys()
        return [(key.key, key.data) for key in [*keys, *self.flush_keys()]]


@pytest.fixture(autouse=True)
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    main, side = pty.openpty()
    with Path(os.ttyname(side)).open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield
    os.close(main)
    os.close(side)


def typed(text: str) -> list[tuple[str, str]]:
    return [(ENTER, "\r") if key == "\r" else (key, key) for key in text]


def pasted(text: str) -> tuple[str, str]:
    return PASTE, text


@pytest.mark.parametrize("report", [IN, OUT])
@pytest.mark.parametrize("after_s", [AT_ONCE_S, SOON_S])
@pytest.mark.parametrize("text", ["\r", "y\r", "a line\r"])
def test_a_report_behind_enter_is_no_text(text: str, after_s: float, report: str) -> None:
    assert Line((LATER_S, text), (after_s, report)).all_keys() == typed(text)
    assert Line((LATER_S, text + report)).all_keys() == typed(text)
    assert Line((LATER_S, text), (after_s, report[:2]), (SOON_S, report[2:])).all_keys() == typed(text)


@pytest.mark.parametrize("together", [True, False])
def test_a_report_counts_until_a_key_is_pressed(together: bool) -> None:
    pieces = [(LATER_S, "go on\r"), (SOON_S, OUT)]
    gone = Line(*([(LATER_S, "go on\r" + OUT)] if together else pieces))
    assert gone.all_keys() == typed("go on\r")
    assert gone.presence.is_away(after_s=60)
    back = Line(*([(LATER_S, OUT + "x")] if together else [(LATER_S, OUT), (SOON_S, "x")]))
    assert back.all_keys() == typed("x")
    assert not back.presence.is_away(after_s=0)


def test_a_key_behind_enter_is_no_text_either() -> None:
    keys = Line((LATER_S, "a line\r"), (SOON_S, "\x1b[A"), (SOON_S, "\x03")).all_keys()
    assert keys == [*typed("a line\r"), (Keys.Up, "\x1b[A"), (Keys.ControlC, "\x03")]


def test_a_marked_paste_behind_enter_is_one() -> None:
    coming = (LATER_S, "a line\r"), (SOON_S, "\x1b[200~one\rtwo\x1b[201~"), (LATER_S, "\r")
    assert Line(*coming).all_keys() == [*typed("a line\r"), pasted("one\rtwo"), *typed("\r")]


@pytest.mark.parametrize("proof", [IN, "\x1b[200~x\x1b[201~"])
def test_marked_pastes_make_no_line_wait(proof: str) -> None:
    line = Line((LATER_S, proof), (LATER_S, "a line\r"), (SOON_S, "another\r"))
    before = [pasted("x")] if "x" in proof else []
    assert line.all_keys() == [*before, *typed("a line\r"), *typed("another\r")]


def test_unmarked_consecutive_lines_are_a_paste() -> None:
    coming = (LATER_S, "a line\r"), (SOON_S, "another\r"), (SOON_S, "a third"), (LATER_S, "\r")
    assert Line(*coming).all_keys() == [pasted("a line\ranother\ra third"), *typed("\r")]


@pytest.mark.parametrize("proof", ["", IN])
def test_several_lines_in_one_piece_are_always_one(proof: str) -> None:
    assert Line((LATER_S, proof), (LATER_S, "one\rtwo\rthree")).all_keys() == [pasted("one\rtwo\rthree")]
    assert Line((LATER_S, proof), (LATER_S, "one\rtw"), (SOON_S, "o\r")).all_keys() == [pasted("one\rtwo"), *typed("\r")]


def test_report_midway_through_a_paste_is_left_out() -> None:
    assert Line((LATER_S, f"one\r{IN}two\rthree")).all_keys() == [pasted("one\rtwo\rthree")]


def test_split_paste_end_precedes_the_following_input() -> None:
    coming = (LATER_S, "one\rtwo\x1b[20"), (SOON_S, "0~three\x1b[201~"), (SOON_S, "\r")
    keys = Line(*coming).all_keys()
    assert keys[-2:] == [pasted("three"), *typed("\r")]
    assert keys[:-2] == typed("one\rtwo") or keys[:-2] == [pasted("one\rtwo")]


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ("\x1b[13;2u", ["f24"]),
        ("\x1b[27;2;13~", ["f24"]),
        ("\x1b[13;130u", ["f24"]),  # with Num Lock
        ("\x1b[99;5u", ["c-c"]),
        ("\x1b[27;5;99~", ["c-c"]),
        ("\x1b[27u", ["escape"]),
        ("\x1b[112;3u", ["escape", "p"]),
        ("\x1b[106;5:1u", ["c-j"]),
        ("\x1b[9;2u", ["s-tab"]),
        ("\x1b[13u", ["c-m"]),
        ("\x1b[127u", ["c-h"]),
        ("\x1b[1;129A", ["up"]),
        ("\x1b[1;5D", ["c-left"]),
        ("\x1b[57400u", ["1"]),
        ("\x1b[57441;2u", []),  # Shift itself
        ("\x1b[47;5u", ["c-_"]),
        ("a\x1b[13;2ub", ["a", "f24", "b"]),
    ],
)
@pytest.mark.parametrize("cut", [0, 4])
def test_keys_of_full_protocols_become_plain(written: str, keys: list[str], cut: int) -> None:
    map_sequence("\x1b[13;2u", Keys.F24)
    map_sequence("\x1b[27;2;13~", Keys.F24)
    pieces = [(LATER_S, piece) for piece in (written[:cut], written[cut:]) if piece]
    assert [str(getattr(key, "value", key)) for key, _ in Line(*pieces).all_keys()] == keys


class Ground:
    theme = "auto"
    ground = "dark"


class Wire:
    def __init__(self) -> None:
        self.text = ""

    def send(self, text: str) -> None:
        self.text += text


WHITE = "\x1b]11;rgb:ffff/ffff/f0f0"


def asked_line(ground: Ground, *pieces: tuple[float, str]) -> Line:
    line, wire = Line(*pieces), Wire()
    line.presence = line._focus = FocusTracker(wire, ground)
    line.presence.report(True)
    assert wire.text.endswith("\x1b]11;?\x1b\\")
    line.presence.report(True)
    assert wire.text.count("]11;") == 1
    return line


@pytest.mark.parametrize("end", ["\x07", "\x1b\\"])
@pytest.mark.parametrize("cut", [0, 2, 3, 9, 20])
def test_background_is_taken_from_between_keys(monkeypatch: pytest.MonkeyPatch, end: str, cut: int) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    ground, answer = Ground(), f"{WHITE}{end}"
    pieces = [(AT_ONCE_S, f"a{answer[:cut]}"), (LATER_S, f"{answer[cut:]}b")] if cut else [(AT_ONCE_S, f"a{answer}b")]
    assert asked_line(ground, *pieces).all_keys() == typed("ab")
    assert ground.ground == "light"


def test_late_background_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("wolo.frontends.terminal.io.input_parser.GROUND_S", 0.0)
    ground = Ground()
    assert asked_line(ground, (AT_ONCE_S, f"a{WHITE}\x07b")).all_keys() == typed("ab")
    assert ground.ground == "dark"


def test_chosen_theme_asks_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    ground, wire = Ground(), Wire()
    ground.theme = "light"
    FocusTracker(wire, ground).report(True)
    assert "]11" not in wire.text
