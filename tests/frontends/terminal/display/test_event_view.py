"""The screen is the last gate: what nobody has cleaned before is cleaned there."""

from __future__ import annotations

import pytest
from rich.text import Text

from wolo.agent.events import Event, RequestStarted, TextStreamed, ThinkingStreamed
from wolo.frontends.terminal.display.activity import Activity, BottomLine
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.terminal_output import Stdout


def test_whatever_is_printed_steers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(Stdout(), TerminalState())
    screen.print(Text.assemble(("1  ", "cyan"), "model\x1b]52;c;ZXZpbA==\x1b\\\x9b2J\u202e of a server", "\ttab\n"))
    printed = capsys.readouterr().out
    assert printed.strip() == "1  model\\u{202e} of a server\ttab"


async def test_the_bottom_line_is_one_line_of_text() -> None:
    line = BottomLine(Stdout(), TerminalState())
    activity = Activity(line)
    activity.start("writing \x1b[2J\nit")
    assert line.line(activity).endswith(" writing \\x1b[2J⏎it · 0 s · Ctrl-C stops")
    activity.stop()


async def test_expanded_thinking_stands_apart_from_the_answer_being_written(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(Stdout(), TerminalState())
    begun: tuple[Event, ...] = (
        RequestStarted(model="m", attempt=1, context_tokens=1),
        ThinkingStreamed(text="Hm."),
        TextStreamed(text="# Title\n\nfirst\n\n"),
    )
    for event in begun:
        screen.show(event)
    assert screen.unfold()
    screen.show(TextStreamed(text="second\n- one\n"))
    screen.folded.add(lambda: Text("whole"))
    assert screen.unfold()
    screen.show(TextStreamed(text="- two\n"))
    screen.status.stop()
    printed = capsys.readouterr().out
    assert "first\n\nHm.\n\nsecond\n" in printed
    assert "one\n\nwhole\n\n" in printed
    assert "\n\n\n" not in printed
