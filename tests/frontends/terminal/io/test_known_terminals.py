"""The bytes that known terminals send for the same keys, as their protocols say."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from prompt_toolkit.keys import Keys

from tests.frontends.terminal.io.test_input_parser import LATER_S, PASTE, Ground, asked_line, keyboard
from wolo.frontends.terminal.io.input_parser import FocusTracker
from wolo.frontends.terminal.io.prompt_toolkit_adapter import map_sequence

__all__ = ["keyboard"]


class Known(NamedTuple):
    environment: dict[str, str]
    background: str
    ground: str
    new_line: str
    """Shift-Enter."""
    model: str
    """Alt-P."""
    view: str
    """Ctrl-O."""
    escape: str
    stop: str
    """Ctrl-C."""


TOLD = "\x1b[13;2u", "\x1b[112;3u", "\x1b[111;5u", "\x1b[27u", "\x1b[99;5u"
OLD = "\x1bp", "\x0f", "\x1b", "\x03"
KNOWN = {
    "kitty": Known({"TERM": "xterm-kitty"}, "\x1b]11;rgb:1d1d/2020/2121\x1b\\", "dark", *TOLD),
    "ghostty": Known({"TERM": "xterm-ghostty"}, "\x1b]11;rgb:2828/2c2c/3434\x1b\\", "dark", *TOLD),
    "wezterm": Known({"TERM": "xterm-256color"}, "\x1b]11;rgb:fafa/fafa/fafa\x1b\\", "light", "\x1b[27;2;13~", *OLD),
    "iterm2": Known({"TERM_PROGRAM": "iTerm.app"}, "\x1b]11;rgb:ffff/ffff/ffff\x07", "light", *TOLD),
    "windows": Known(
        {"WT_SESSION": "1"}, "\x1b]11;rgb:0c0c/0c0c/0c0c\x1b\\", "dark", "\n", *OLD
    ),  # Ctrl-J: it has no Shift-Enter
}


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("together", [True, False])
def test_keys_of_known_terminals_mean_the_same(monkeypatch: pytest.MonkeyPatch, name: str, together: bool) -> None:
    map_sequence("\x1b[13;2u", Keys.F24)
    map_sequence("\x1b[27;2;13~", Keys.F24)
    known, ground = KNOWN[name], Ground()
    monkeypatch.setenv("TERM", "xterm-256color")
    for variable, value in known.environment.items():
        monkeypatch.setenv(variable, value)
    sent = [known.background, "\x1b[I", "a", known.new_line, "\x1b[200~two\nlines\x1b[201~", "\x1b[O", known.model, known.view]
    pieces = [(LATER_S, "".join(sent))] if together else [(LATER_S, piece) for piece in sent]
    line = asked_line(ground, *pieces, (LATER_S, known.stop), (LATER_S, known.escape))
    keys = [str(getattr(key, "value", key)) for key, _ in line.all_keys()]
    new_line = "c-j" if known.new_line == "\n" else "f24"
    assert keys == ["a", new_line, PASTE.value, "escape", "p", "c-o", "c-c", "escape"]
    assert ground.ground == known.ground


def test_gnu_screen_is_not_asked_for_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wire:
        text = ""

        def send(self, text: str) -> None:
            self.text += text

    monkeypatch.setenv("TERM", "screen-256color")
    monkeypatch.setenv("STY", "1.pts-0.host")
    wire = Wire()
    FocusTracker(wire, Ground()).report(True)
    assert wire.text == "\x1b[?1004h"
