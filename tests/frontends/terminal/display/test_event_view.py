"""The screen is the last gate: what nobody has cleaned before is cleaned there."""

from __future__ import annotations

import pytest
from rich.text import Text

from wolo.agent.events import (
    AnswerEnded,
    AttemptFailed,
    CallStreamed,
    ErrorInfo,
    RequestStarted,
    TextStreamed,
    ThinkingStreamed,
    TurnEnded,
)
from wolo.conversation.phrasing import duration
from wolo.frontends.terminal.display.activity import Activity, BottomLine
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.messages.message import Message, Usage


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


class Narrow(Stdout):
    """A terminal of 20 columns."""

    @property
    def columns(self) -> int:
        return 20

    @property
    def can_move(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("usage", "shown"),
    [
        pytest.param(Usage(input_tokens=1200, output_tokens=34), "1,200 tokens in, 34 out, 0.4 s", id="an answer"),
        pytest.param(Usage(), "", id="interrupted before any answer"),
    ],
)
async def test_the_last_line_states_tokens_and_time(capsys: pytest.CaptureFixture[str], usage: Usage, shown: str) -> None:
    ended = TurnEnded(
        cause="completed", answer="", finish_reason="stop", usage=usage, num_answers=1, duration_s=0.4, provider_s=0.3
    )
    Screen(Stdout(), TerminalState()).show(ended)
    assert capsys.readouterr().out.strip() == shown


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.6, "1 min 0 s"), (185, "3 min 5 s")]
)
def test_duration_is_as_precise_as_it_matters(seconds: float, words: str) -> None:
    assert duration(seconds) == words


async def test_last_line_states_the_last_request(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(Stdout(), TerminalState())
    for tokens in (1000, 1500):
        usage = Usage(input_tokens=tokens, output_tokens=10)
        screen.show(AnswerEnded(message=Message(role="assistant", usage=usage)))
    total = Usage(input_tokens=2500, output_tokens=20)
    screen.show(
        TurnEnded(cause="completed", answer="", finish_reason="stop", usage=total, num_answers=2, duration_s=0.4, provider_s=0.3)
    )
    assert capsys.readouterr().out.strip() == "1,500 tokens in, 10 out, in 2 requests, 0.4 s"


async def test_written_file_is_named_while_it_streams() -> None:
    screen = Screen(Narrow(), TerminalState())
    screen.show(RequestStarted(model="m", attempt=1, context_tokens=1))
    shown = []
    for size, fragment in ((10, '{"path": "big'), (20, '.py", "content": "a'), (3000, "b" * 2980)):
        screen.show(CallStreamed(id="1", slot=0, tool="write", kind="edit", fragment=fragment, size_bytes=size))
        shown.append(screen.status.lines(60)[0].text.rpartition(" · ")[0])
    screen.status.stop()
    assert shown == ["writing the call of write · 0.0 kB", "Writing big.py · 0.0 kB", "Writing big.py · 3.0 kB"]


async def test_retries_leave_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(Narrow(), TerminalState())
    for attempt in (1, 2):
        screen.show(RequestStarted(model="m", attempt=attempt, context_tokens=1))
        failed = ErrorInfo(kind="Unavailable", message="Busy.")
        screen.show(AttemptFailed(error=failed, attempt=attempt, tries=4, delay_s=5))
    assert screen.status.lines(80)[0].text.startswith("Retrying in 5 s · attempt 3 of 4 · Busy")
    assert not capsys.readouterr().out.strip()
    screen.show(TextStreamed(text="Here.\n"))
    screen.status.stop()
    assert capsys.readouterr().out.split() == ["Busy.", "Attempt", "3", "was", "answered.", "Here."]


async def test_thinking_line_begins_with_a_word() -> None:
    screen = Screen(Narrow(), TerminalState())
    screen.show(RequestStarted(model="m", attempt=1, context_tokens=1))
    screen.show(ThinkingStreamed(text="considering " * 100))
    words = screen.status.lines(200)[0].text.split(" · ")[2]
    screen.status.stop()
    assert set(words.lstrip("…").split()) == {"considering"}
