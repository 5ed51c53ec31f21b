"""How many turns lines of background jobs may start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from wolo.messages.message import UserPrompt
from wolo.tools.background.background_jobs import (
    GATHER_S,
    LAST_WAKE,
    MOST_WAKES_IN_A_ROW,
    MOST_WAKES_PER_MINUTE,
    BackgroundJobs,
    JobWakes,
)
from wolo.tools.background.job_output import LineWatch, read_pattern
from wolo.workspace.processes.process_runner import Processes


class Clock:
    """Runs what is due when the test moves it."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay_s: float, function: Callable[[], None]) -> asyncio.TimerHandle:
        handle = asyncio.get_running_loop().call_later(3600, lambda: None)
        self._due.append((self.now + delay_s, lambda: None if handle.cancelled() else function()))
        return handle

    def move(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [each for each in self._due if each[0] <= end]:
            first = min(due, key=lambda each: each[0])
            self._due.remove(first)
            self.now = first[0]
            first[1]()
        self.now = end


class Watched:
    """A job's lines, and the turns that they start."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        jobs = BackgroundJobs(Processes(folder / "commands"), folder)
        self.wakes = jobs.wakes = JobWakes(jobs, self.clock.call_later)
        self.turns: list[UserPrompt] = []
        self.is_busy = False
        self.wakes.listener = self.run
        self.watch = LineWatch(read_pattern("ERROR"), self.wakes.look)

        class Named:
            name = "job 1 (make)"
            ending = None

        jobs.watches[Named()] = self.watch  # type: ignore[index]  # no process is needed

    def run(self) -> None:
        if not self.is_busy and (prompt := self.wakes.take()) is not None:
            self.turns.append(prompt)

    def prints(self, text: str) -> None:
        self.watch.add(f"{text}\n".encode())


@pytest.fixture
async def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


async def test_lines_of_a_moment_start_one_turn(watched: Watched) -> None:
    watched.prints("fine")
    watched.clock.move(60)
    assert not watched.turns
    for number in range(1000):
        watched.prints(f"ERROR {number}")
    assert not watched.turns
    watched.clock.move(GATHER_S)
    (turn,) = watched.turns
    assert "ERROR 0" in turn.text
    assert "… and 980 more lines that match" in turn.text
    assert (turn.origin, turn.is_prompt, turn.is_from_user) == ("job", True, False)
    watched.clock.move(600)
    assert len(watched.turns) == 1


async def test_flood_starts_few_turns_a_minute(watched: Watched) -> None:
    for _ in range(59):
        watched.prints("ERROR")
        watched.clock.move(1)
    assert len(watched.turns) == MOST_WAKES_PER_MINUTE
    for _ in range(60):
        watched.prints("ERROR")
        watched.clock.move(1)
    assert len(watched.turns) == 2 * MOST_WAKES_PER_MINUTE


async def test_endless_flood_ends_until_next_prompt(watched: Watched) -> None:
    for _ in range(3600):
        watched.prints("ERROR")
        watched.clock.move(1)
    assert len(watched.turns) == MOST_WAKES_IN_A_ROW
    assert [LAST_WAKE in turn.text for turn in watched.turns] == [False] * (MOST_WAKES_IN_A_ROW - 1) + [True]
    watched.wakes.reset()
    watched.prints("ERROR")
    watched.clock.move(GATHER_S)
    assert len(watched.turns) == MOST_WAKES_IN_A_ROW + 1


async def test_busy_session_gets_lines_when_it_is_idle(watched: Watched) -> None:
    watched.is_busy = True
    watched.prints("ERROR")
    watched.clock.move(30)
    watched.is_busy = False
    watched.clock.move(30)
    assert not watched.turns
    watched.wakes.look()
    watched.clock.move(GATHER_S)
    assert len(watched.turns) == 1


async def test_pause_lasts_until_next_prompt(watched: Watched) -> None:
    watched.prints("ERROR")
    watched.wakes.pause()
    watched.prints("ERROR")
    watched.clock.move(600)
    assert not watched.turns
    watched.wakes.reset()
    watched.wakes.look()
    watched.clock.move(GATHER_S)
    assert len(watched.turns) == 1
