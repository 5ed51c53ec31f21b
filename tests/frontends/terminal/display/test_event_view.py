"""The screen is the last gate: what nobody has cleaned before is cleaned there."""

from __future__ import annotations

import pytest
from rich.text import Text
from wolo.frontends.terminal.display.spinner import StatusLine

from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.terminal_output import Stdout


def test_whatever_is_printed_steers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(Stdout(), TerminalState())
    screen.print(Text.assemble(("1  ", "cyan"), "model\x1b]52;c;ZXZpbA==\x1b\\\x9b2J\u202e of a server", "\ttab\n"))
    printed = capsys.readouterr().out
    assert printed.strip() == "1  model\\u{202e} of a server\ttab"


def test_the_moving_line_is_one_line_of_text() -> None:
    status = StatusLine(Stdout(), TerminalState())
    status.say("writing \x1b[2J\nit")
    assert "\x1b" not in status._line("-")
    assert "\n" not in status._line("-")
