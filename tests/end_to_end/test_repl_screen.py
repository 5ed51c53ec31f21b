"""Bytes and rows that a conversation writes to a terminal: nothing is redrawn without need."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.end_to_end.test_repl import leave, repl, wait_for_prompt
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Reply, call, delta, finish, sse, text, usage
from tests.fakes.screen import Terminal, pty_wolo
from tests.fakes.tmux import Tmux, tmux_wolo
from wolo.frontends.terminal.live.live_region import PLACEHOLDERS

FORBIDDEN = (b"\x1b[2J", b"\x1b[3J", b"\x1b[?1049h", b"\x1b[?47h", b"\x1b[?1047h", b"\x1bc")
LINES = [f"This is line {number} of an answer with many words." for number in range(500)]
ANSWER = "".join(f"{line}\n" for line in LINES)
SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


def held(before: str, after: str = "") -> tuple[Hold, Reply]:
    hold = Hold()
    return hold, sse(delta(before), hold, *([delta(after)] if after else []), finish("stop", usage()))


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "tmux"


def test_five_hundred_lines_stay_in_scrollback_cheaply(provider: ProviderServer) -> None:
    provider.script(text(ANSWER, size=50).slow(0.004))
    with repl(provider, columns=80) as terminal:
        before = len(terminal.raw)
        terminal.enter("go on")
        terminal.wait_for(LINES[-1], 30)
        wait_for_prompt(terminal)
        written = len(terminal.raw) - before
        leave(terminal)
    shown = terminal.text.split("\n")
    assert [line for line in shown if line.startswith("This is line")] == LINES
    assert written <= 3 * len(ANSWER)
    for forbidden in FORBIDDEN:
        assert forbidden not in terminal.raw


def test_tmux_keeps_all_of_a_long_answer(provider: ProviderServer, socket: Path) -> None:
    provider.script(text(ANSWER, size=50).slow(0.002))
    with tmux_wolo(*provider.flags, socket=socket) as tmux:
        tmux.wait_for("›")
        tmux.type("go on")
        tmux.press("Enter")
        tmux.wait_for(LINES[-1], 30)
        tmux.wait_until(lambda: [line.rstrip() for line in tmux.text.split("\n") if line.startswith("This is line")] == LINES)


PIECE = 80
"""Characters: what comes between two frames when 320 come in a second."""
DIM = "9e9e9e"
"""In 256 colours, on a dark background."""
HELD_BACK = 10
"""Characters that may still be the beginning of something else."""
PARAGRAPH = "WHAT IS SAID IS KEPT ON THE DISK BEFORE ANYBODY SEES IT, SO NOTHING IS LOST WHEN A MACHINE GOES DOWN. "


@pytest.mark.parametrize(
    ("answer", "most"),
    [
        pytest.param("".join(f"LINE {number} OF AN ANSWER IN MANY WORDS.\n" for number in range(35)), 2.4, id="lines"),
        pytest.param((PARAGRAPH * 3 + "\n\n") * 9, 2.9, id="paragraphs"),
    ],
)
def test_a_slow_stream_costs_little_too(provider: ProviderServer, answer: str, most: float) -> None:
    holds = [Hold() for _ in range(0, len(answer), PIECE)]
    pieces = [delta(answer[at : at + PIECE]) for at in range(0, len(answer), PIECE)]
    provider.script(sse(*(each for pair in zip(pieces, holds, strict=True) for each in pair), finish("stop", usage())))
    with repl(provider, columns=80) as terminal:
        before = len(terminal.raw)
        terminal.enter("go on")
        for number, hold in enumerate(holds, 1):
            terminal.wait_until(lambda sent=number * PIECE: letters(terminal.text) >= letters(answer[: sent - HELD_BACK]))
            hold.release()
        wait_for_prompt(terminal)
        frames = bytes(terminal.raw[before:]).split(b"\x1b[?25l")
        leave(terminal)
    written = sum(len(b"\x1b[?25l") + len(frame) for frame in frames if letters(SEQUENCE.sub(b"", frame).decode()))
    assert written <= most * len(answer)


def letters(shown: str) -> int:
    """Those of the answer: nothing else on the screen has such capitals."""
    for ours in ("Esc stops", "Enter sends, Alt-Enter", *PLACEHOLDERS):
        shown = shown.replace(ours, "")
    return sum("A" <= letter <= "Z" for letter in shown)


def test_shrinking_line_leaves_no_remains(provider: ProviderServer) -> None:
    hold, after = Hold(), Hold()
    provider.script(sse(delta("**aaa** " * 50), hold, delta("**aaa** "), after, finish("stop", usage())))
    with repl(provider, columns=80) as terminal:
        terminal.enter("go on")
        terminal.wait_until(lambda: terminal.times("**aaa**") == 50)
        hold.release()
        left = ["aaa"] * 50 + ["**aaa**"]
        terminal.wait_until(lambda: " ".join(line for line in terminal.lines if "aaa" in line).split() == left)
        after.release()
        wait_for_prompt(terminal)
        leave(terminal)


def test_end_of_a_huge_line_shows_at_once(provider: ProviderServer) -> None:
    holds = Hold(), Hold()
    parts = (delta("".join(map(str, range(40_000))) + " FIRST "), holds[0], delta("y" * 5_000 + " SECOND "), holds[1])
    provider.script(sse(*parts, finish("stop", usage())))
    with repl(provider, columns=80) as terminal:
        terminal.enter("go on")
        terminal.wait_for("FIRST")
        holds[0].release()
        terminal.wait_for("SECOND")
        terminal.type("meanwhile")
        terminal.wait_for("› meanwhile")


def test_long_lines_are_left_to_the_terminal(provider: ProviderServer) -> None:
    line = " ".join(f"word{number}" for number in range(60))
    provider.script(text(f"Here:\n\n```\n{line}\n```\n\n{line}"))
    with pty_wolo(*provider.flags, "-s", "long", columns=40) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("go on")
        terminal.wait_for(" out · ")
        leave(terminal)
    lines = terminal.text.split("\n")
    assert f"  {line}" in lines
    assert line in lines
    assert line in run_wolo("sessions", "show", "long").stdout.rpartition("```")[2]


def test_errors_are_broken_at_spaces(provider: ProviderServer) -> None:
    with pty_wolo("sessions", "show", "nothing-like-that", columns=24) as terminal:
        assert terminal.wait_for_exit() == 3
    rows = [row for row in terminal.lines if row]
    assert len(rows) > 2
    assert [row.strip() for row in rows] == [line.strip() for line in terminal.text.split("\n") if line]  # not by the terminal


def test_address_is_one_link_where_links_show(provider: ProviderServer) -> None:
    address = "https://example.org/" + "/".join(f"part-{number}" for number in range(12)) + "?q=1"
    provider.script(text(f"Read {address}, please: `{address}`.\n\n| a |\n|---|\n| {address} |\n"))
    with pty_wolo(*provider.flags, "go on", columns=40, env={"FORCE_HYPERLINK": "1"}) as terminal:
        assert terminal.wait_for_exit() == 0
    raw = bytes(terminal.raw).decode()
    links = re.findall(r"\x1b\]8;([^;]*);([^\x1b]*)\x1b\\(.*?)\x1b\]8;;\x1b\\", raw, re.DOTALL)
    assert {target for _, target, _ in links} == {address}
    shown = [SEQUENCE.sub(b"", words.encode()).decode() for _, _, words in links]
    assert shown.count(address) >= 2  # in sentences nothing is between its characters
    assert "".join(shown[2:]) == address  # a cell may be narrower: one link in pieces
    assert len({id for id, _, _ in links[2:]}) == 1


def test_resumed_conversation_begins_with_dimmed_last_screen(provider: ProviderServer) -> None:
    Path("a.txt").write_text("x")
    provider.script(
        text("\n\n".join(f"Old paragraph {number}." for number in range(30))),
        call("read", {"path": "a.txt"}),
        text("It says **x**.\n\n- that is all"),
    )
    for prompt in ("first", "second"):
        assert run_wolo("-p", *provider.flags, *(["-c"] if prompt == "second" else []), prompt).exit_code == 0
    with pty_wolo(*provider.flags, "-c", rows=16, columns=60) as terminal:
        terminal.wait_for_prompt()
        terminal.wait_until(lambda: "Old paragraph 29." in terminal.lines)
        shown = terminal.lines
        assert terminal.cells[shown.index("Old paragraph 29.")][0].fg == DIM
        leave(terminal)
    at = [
        next(row for row, line in enumerate(shown) if words in line)
        for words in ("› second", "● read a.txt", "It says x.", "• that")
    ]
    assert at == sorted(at)
    assert "Old paragraph 29." in "\n".join(shown)
    assert not terminal.shows("Old paragraph 20.")
    assert "…" in shown
    with pty_wolo(*provider.flags, "-c", rows=100, columns=60) as whole:
        whole.wait_for_prompt()
        first = whole.lines.index("› first")
        assert [bool(line.strip()) for line in whole.lines[first - 2 : first]] == [True, False]
        leave(whole)


def test_long_code_and_tables_are_printed_once(provider: ProviderServer) -> None:
    code = [f"    value_{number} = {number}" for number in range(2000)]
    table = [f"| row{number}x | {number} |" for number in range(40)]
    provider.script(text("\n".join(["```python", *code, "```", "", "| a | b |", "|---|---|", *table, "", "End."]), size=400))
    with repl(provider) as terminal:
        terminal.enter("go on")
        terminal.wait_for("End.", 60)
        wait_for_prompt(terminal)
        leave(terminal)
    shown = [line[2:] for line in terminal.text.split("\n") if line.startswith("      value_")]
    assert shown == code
    assert all(terminal.times(f"row{number}x") == 1 for number in range(40))


# Other sizes


def feet(rows: list[str]) -> int:
    """How often there is a place to write in."""
    return sum(row.startswith("› typed") for row in rows)


def resize_about(tmux: Tmux) -> None:
    for columns in (80, 20, 200, 33, 80):
        tmux.resize(24, columns)
        tmux.wait_until(lambda: "typed by hand" in "".join(tmux.rows), "what was typed was lost")
    tmux.wait_until(lambda: feet(tmux.rows) == 1, "there was not one foot")


def test_resize_leaves_one_foot_and_the_typed_text(provider: ProviderServer, socket: Path) -> None:
    hold, reply = held("Some words.\n", "More words.\n")
    provider.script(reply)
    with tmux_wolo(*provider.flags, socket=socket, columns=80) as tmux:
        tmux.wait_for("›")
        tmux.type("first")
        tmux.press("Enter")
        tmux.wait_for("Some words.")
        tmux.type("typed by hand")
        resize_about(tmux)
        hold.release()
        tmux.wait_for("More words.")
        resize_about(tmux)
        text = tmux.text
    assert text.count("typed by hand") == 1
    assert text.count("Some words.") == text.count("More words.") == 1
    assert "Traceback" not in text


def test_resize_during_approval_leaves_one_panel(provider: ProviderServer, socket: Path) -> None:
    provider.script(call("shell", {"command": "echo made > file"}))
    with tmux_wolo(*provider.flags, "--mode", "ask", socket=socket, columns=80) as tmux:
        tmux.wait_for("›")
        tmux.type("said before")
        tmux.press("Enter")
        tmux.wait_for("› 3 No")  # keys count: nothing else is drawn
        for columns in (20, 200, 33, 80):
            tmux.resize(24, columns)
        for shown in ("Run this command?", "$ echo made > file"):
            tmux.wait_until(lambda shown=shown: sum(shown in row for row in tmux.rows) == 1, "there was not one panel")
        tmux.wait_until(lambda: tmux.text.count("said before") == tmux.text.count("Run this command?") == 1, "there were copies")


def scrolled_away(tmux: Tmux) -> list[str]:
    size = int(tmux.run("display-message", "-p", "#{history_size}"))
    return tmux.run("capture-pane", "-p", "-S", "-").split("\n")[:size]


@pytest.mark.parametrize(("said", "columns"), [("", 40), ("delete it", 80)], ids=["composer", "approval"])
def test_narrowing_a_new_conversation_leaves_no_scrollback_pieces(
    provider: ProviderServer, socket: Path, said: str, columns: int
) -> None:
    """tmux pushes rows into the scrollback even if there are empty ones below; above the region there are few."""
    provider.script(call("shell", {"command": "rm file"}))
    with tmux_wolo(*provider.flags, "--mode", "ask", socket=socket, rows=40, columns=120) as tmux:
        tmux.wait_for("›")
        if said:
            tmux.type(said)
            tmux.press("Enter")
            tmux.wait_for("Esc stop the turn")
        tmux.resize(40, columns)
        tmux.wait_until(lambda: tmux.text.count(f"› {said}") == 1, "there were copies")
        assert not set("".join(scrolled_away(tmux))) & set("─╭│╰")


def test_row_cutting_terminal_loses_nothing_above_foot(provider: ProviderServer) -> None:
    provider.script(text("".join(f"l{number}\n" for number in range(10))))
    with repl(provider, columns=80) as terminal:
        terminal.enter("go on")
        terminal.wait_for("l9")
        wait_for_prompt(terminal)
        terminal.type("typed by hand")
        for columns in (40, 25, 80, 60):
            terminal.resize(24, columns)
            terminal.wait_until(lambda: "typed by hand" in "".join(terminal.lines))
        for number in range(10):
            assert f"l{number}" in terminal.text.split("\n")
        terminal.wait_until(lambda: terminal.times("typed by hand") == 1)


# Costs


def switches(pid: int) -> int:
    """How often its threads have gone to sleep and been woken."""
    lines = "\n".join(task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/status")).splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))


def test_nobody_typing_costs_nothing(provider: ProviderServer) -> None:
    with repl(provider) as terminal:
        terminal.wait_until(lambda: costs_nothing_for_a_while(terminal), 60)
        leave(terminal)


def costs_nothing_for_a_while(terminal: Terminal) -> bool:
    before, due = (len(terminal.raw), switches(terminal.child.pid)), time.monotonic() + 2.0
    terminal.wait_until(lambda: time.monotonic() > due)
    return before == (len(terminal.raw), switches(terminal.child.pid))


def test_a_terminal_that_reads_late_holds_nothing_up(provider: ProviderServer) -> None:
    """It reads nothing for a while: the answer goes on coming, a key is heard, and all of it is there in the end."""
    lines = [f"line {number} of very many of them" for number in range(6000)]
    provider.script(text("\n".join(lines), size=2000).slow(0.001), text("Heard."))
    with repl(provider, columns=80) as terminal:
        terminal.enter("talk")
        (asked,) = provider.wait_for_requests(1)
        assert asked.answered.wait(60), "the answer was held up by the terminal"
        terminal.enter("next")
        terminal.wait_for("Heard.", 30)
        leave(terminal)
    shown = [line for line in terminal.text.split("\n") if line.startswith("line ")]
    assert shown == lines


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("environment", [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"NO_COLOR": "1"}])
@pytest.mark.parametrize(("rows", "columns"), [(5, 20), (24, 80)])
def test_any_window_and_locale_will_do(provider: ProviderServer, rows: int, columns: int, environment: dict[str, str]) -> None:
    provider.script(text("One two.\nThree.\n"), text("Again.\n"))
    with pty_wolo(*provider.flags, rows=rows, columns=columns, env=environment) as terminal:
        terminal.wait_until(lambda: b"/help" in terminal.raw)
        terminal.enter("go on")
        terminal.wait_for("Three.")
        terminal.enter("again")
        terminal.wait_for("Again.")
        leave(terminal)
    assert not terminal.shows("Traceback")
    assert not terminal.shows("too small")
    if "NO_COLOR" in environment:
        assert not re.search(rb"\x1b\[[0-9;]*(?:3[0-7]|9[0-7]|38)[;m]", bytes(terminal.raw))
