"""What is under way, in lines that never wrap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from wolo.frontends.terminal.display.activity import UnderWay, fitted
from wolo.frontends.terminal.repl.todo_panel import TodoPanel
from wolo.tools.tool_values import TodoItem


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_words_seconds_and_how_to_stop_it() -> None:
    clock = Clock()
    shown = UnderWay(clock)
    assert shown.lines(80) == []
    shown.begin("waiting for the model")
    clock.now += 7
    assert shown.lines(80, aside="1 job", hint=" · Esc stops") == ["waiting for the model · 1 job · 7 s · Esc stops"]
    assert shown.lines(30, hint=" · Esc stops") == ["waiting for… · 7 s · Esc stops"]


def test_a_stream_that_falls_silent_is_said_to_be() -> None:
    clock = Clock()
    shown = UnderWay(clock)
    shown.begin("writing")
    clock.now += 60
    assert "silent" not in shown.lines(80)[0]
    shown.heard()
    clock.now += 4
    assert "silent" not in shown.lines(80)[0]
    clock.now += 4
    assert shown.lines(80) == ["writing · silent for 8 s · 68 s"]
    shown.heard()
    assert "silent" not in shown.lines(80)[0]


def test_one_call_shows_the_newest_lines_of_what_it_prints() -> None:
    shown = UnderWay(Clock())
    shown.begin_call("a", "shell make")
    shown.hear_call("a", "one\ntwo\n\nthree\n 10%\r 20%\r")
    assert shown.lines(80, rows=5) == ["shell make · 0 s", "  three", "  10%", "  20%"]
    assert shown.lines(80, rows=3) == ["shell make · 0 s", "  10%", "  20%"]
    assert shown.lines(80) == ["20% · 0 s"]
    shown.end_call("a")
    assert shown.is_over


def test_calls_side_by_side_have_a_line_each() -> None:
    clock = Clock()
    shown = UnderWay(clock)
    for number in range(6):
        shown.begin_call(str(number), f"fetch page{number}")
    clock.now += 3
    shown.hear_call("1", "half of it\n")
    lines = shown.lines(80, rows=5, hint=" · Esc stops")
    assert lines[:2] == ["fetch page0 · 3 s · Esc stops", "fetch page1 · half of it · 3 s"]
    assert lines[-1] == "and 2 more"
    assert shown.lines(80, rows=3)[1:] == ["fetch page1 · half of it · 3 s", "and 4 more"]
    assert shown.lines(80) == ["6 calls · fetch page5 · 3 s"]
    shown.hear_call("gone", "nobody's")


@given(words=st.text(), printed=st.text(), columns=st.integers(1, 120), rows=st.sampled_from([1, 2, 5]))
def test_no_line_is_wider_than_there_is_room(words: str, printed: str, columns: int, rows: int) -> None:
    shown = UnderWay(Clock())
    shown.begin(words)
    assert all(cell_len(line) <= columns and "\n" not in line for line in shown.lines(columns, rows=rows, hint=" · Esc stops"))
    shown.begin_call("a", words)
    shown.hear_call("a", printed)
    assert all(cell_len(line) <= columns and "\n" not in line for line in shown.lines(columns, rows=rows, hint=" · Esc stops"))


def test_in_a_narrow_window_the_seconds_stay_and_silence_is_told_first() -> None:
    clock = Clock()
    shown = UnderWay(clock)
    shown.begin("writing · 2 tokens")
    assert shown.lines(19, hint=" · Esc stops") == ["writing · 2… · 0 s"]
    shown.heard()
    clock.now += 8
    assert shown.lines(19, hint=" · Esc stops") == ["silent for 8 s"]


def test_wide_characters_are_cut_by_cells() -> None:
    assert fitted("漢字漢字", " · 1 s", 12) == "漢字… · 1 s"


def test_the_todo_list_shows_what_is_open() -> None:
    shown = TodoPanel()
    assert shown.lines(80) == []
    shown.items = [TodoItem("a", "completed"), TodoItem("b", "pending"), TodoItem("c", "in_progress")]
    assert shown.lines(80) == ["▶ c", "☐ b", "  1 of 3 done"]
    shown.items = [TodoItem("a", "completed"), *(TodoItem(str(number), "pending") for number in range(5))]
    assert shown.lines(80) == ["☐ 0", "☐ 1", "☐ 2", "  2 more open · 1 of 6 done"]
    shown.items = [TodoItem("a", "completed"), TodoItem("b", "cancelled")]
    assert shown.lines(80) == []
