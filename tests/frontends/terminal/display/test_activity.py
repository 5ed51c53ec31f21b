"""Running work, in lines that never wrap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from wolo.frontends.terminal.display.activity import Activity, ActivityLine, fit_row
from wolo.frontends.terminal.repl.status_bar import TodoPanel
from wolo.tools.tool_values import TodoItem


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class NoSurface:
    tick_s = 60.0
    is_alive = True

    def on_change(self, activity: Activity) -> None: ...
    def tick(self, activity: Activity) -> None: ...
    def clear(self, activity: Activity) -> None: ...
    def rest(self) -> None: ...


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def running(clock: Clock) -> AsyncIterator[Activity]:
    activity = Activity(NoSurface(), clock)
    yield activity
    activity.stop()


def texts(activity: Activity, columns: int, **given: Any) -> list[str]:
    return [line.text for line in activity.lines(columns, **given)]


async def test_words_seconds_and_how_to_stop_it(running: Activity, clock: Clock) -> None:
    assert running.lines(80) == []
    running.start("waiting for the model")
    clock.now += 7
    assert texts(running, 80, alongside="1 job", hint=" · Esc stops") == ["waiting for the model · 1 job · 7 s · Esc stops"]
    assert texts(running, 30, hint=" · Esc stops") == ["waiting for… · 7 s · Esc stops"]


async def test_a_stream_without_data_is_reported(running: Activity, clock: Clock) -> None:
    running.start("writing")
    clock.now += 60
    assert "no data" not in texts(running, 80)[0]
    running.note_data()
    clock.now += 4
    assert "no data" not in texts(running, 80)[0]
    clock.now += 4
    assert texts(running, 80) == ["writing · no data for 8 s · 68 s"]
    running.note_data()
    assert "no data" not in texts(running, 80)[0]


async def test_single_call_shows_newest_output_lines(running: Activity) -> None:
    running.start_call("a", "shell make")
    running.add_output("a", "one\ntwo\n\nthree\n 10%\r 20%\r")
    assert running.lines(80, rows=5) == [
        ActivityLine("spinner", "shell make · 0 s"),
        ActivityLine("rail", "three"),
        ActivityLine("rail", "10%"),
        ActivityLine("rail", "20%"),
    ]
    assert texts(running, 80, rows=3) == ["shell make · 0 s", "10%", "20%"]
    assert texts(running, 80) == ["20% · 0 s"]
    running.end_call("a")
    assert running.is_over


async def test_calls_side_by_side_have_a_line_each(running: Activity, clock: Clock) -> None:
    for number in range(6):
        running.start_call(str(number), f"fetch page{number}")
    clock.now += 3
    running.add_output("1", "half of it\n")
    lines = texts(running, 80, rows=5, hint=" · Esc stops")
    assert lines[:2] == ["fetch page0 · 3 s · Esc stops", "fetch page1 · half of it · 3 s"]
    assert lines[-1] == "and 2 more"
    assert texts(running, 80, rows=3)[1:] == ["fetch page1 · half of it · 3 s", "and 4 more"]
    assert texts(running, 80) == ["6 calls · fetch page5 · 3 s"]
    running.add_output("gone", "of no call")


@given(words=st.text(), printed=st.text(), columns=st.integers(1, 120), rows=st.sampled_from([1, 2, 5]))
def test_no_line_is_wider_than_there_is_room(words: str, printed: str, columns: int, rows: int) -> None:
    def fits() -> bool:
        shown = texts(activity, columns, rows=rows, hint=" · Esc stops")
        return all(cell_len(line) <= columns and "\n" not in line for line in shown)

    async def run() -> None:
        activity.start(words)
        assert fits()
        activity.start_call("a", words)
        activity.add_output("a", printed)
        assert fits()
        activity.stop()

    activity = Activity(NoSurface(), Clock())
    asyncio.run(run())


async def test_narrow_window_keeps_seconds_with_silence_first(running: Activity, clock: Clock) -> None:
    running.start("writing · 2 tokens")
    assert texts(running, 19, hint=" · Esc stops") == ["writing · 2… · 0 s"]
    running.note_data()
    clock.now += 8
    assert texts(running, 19, hint=" · Esc stops") == ["no data for 8 s"]


async def test_work_is_announced_once_when_it_is_slow(running: Activity, clock: Clock) -> None:
    running.start("waiting")
    assert running.slow_words() == []
    clock.now += 1
    assert (running.slow_words(), running.slow_words()) == (["waiting"], [])
    running.start_call("a", "shell make")
    running.start_call("b", "shell test")
    clock.now += 1
    assert running.slow_words() == ["shell make", "shell test"]


def test_wide_characters_are_cut_by_cells() -> None:
    assert fit_row("漢字漢字", " · 1 s", 12) == "漢字… · 1 s"


def test_the_todo_list_shows_what_is_open() -> None:
    shown = TodoPanel()
    assert [text for [(_, text)] in shown.render(80)] == []
    shown.items = [TodoItem("a", "completed"), TodoItem("b", "pending"), TodoItem("c", "in_progress")]
    assert [text for [(_, text)] in shown.render(80)] == ["▶ c", "☐ b", "  1 of 3 done"]
    shown.items = [TodoItem("a", "completed"), *(TodoItem(str(number), "pending") for number in range(5))]
    assert [text for [(_, text)] in shown.render(80)] == ["☐ 0", "☐ 1", "☐ 2", "  2 more open · 1 of 6 done"]
    shown.items = [TodoItem("a", "completed"), TodoItem("b", "cancelled")]
    assert [text for [(_, text)] in shown.render(80)] == []
