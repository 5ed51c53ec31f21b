"""The panel of the model's questions, drawn and answered by keys in this process."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.frontends.terminal.drawn_terminal import DrawnTerminal, drawn_terminal
from wolo.agent.events import QuestionsAsked
from wolo.frontends.terminal.dialogs.turn_dialogs import ask_questions
from wolo.tools.tool_values import AnswerOption, Question, Replies, Reply

DATABASE = Question(
    text="Which database?",
    header="Storage",
    options=(AnswerOption(label="Postgres", description="on the server"), AnswerOption(label="SQLite")),
)
PARTS = Question(
    text="Which parts?", options=tuple(AnswerOption(label=each) for each in ("auth", "billing", "mail")), several=True
)
FREE = Question(text="Anything else?")


@asynccontextmanager
async def asked(
    monkeypatch: pytest.MonkeyPatch, *questions: Question, rows: int = 24, columns: int = 100
) -> AsyncIterator[tuple[DrawnTerminal, asyncio.Task[Replies | None]]]:
    async with drawn_terminal(monkeypatch, rows=rows, columns=columns) as drawn:
        answer = asyncio.ensure_future(ask_questions(QuestionsAsked(id="1", call_id="1", questions=questions), drawn.terminal))
        await drawn.wait_until(lambda: "Enter next" in drawn.visible)
        yield drawn, answer
        await asyncio.wait_for(answer, 30)


def is_last_page(drawn: DrawnTerminal) -> bool:
    return bool(re.search(r"^Enter send( · |$)", drawn.visible, re.MULTILINE))


async def test_a_number_picks_and_enter_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, DATABASE) as (drawn, answer):
        assert "Which database?" in drawn.visible
        drawn.type("2")
        await drawn.wait_for("› 2 ● SQLite")
        drawn.press("enter")
        assert await answer == (Reply(chosen=("SQLite",)),)
        await drawn.wait_until(lambda: drawn.text.count("? Storage → SQLite") == 1)


async def test_spaces_in_a_burst_are_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, PARTS) as (drawn, answer):
        drawn.type("\x1b[B \x1b[B ")
        await drawn.wait_for("› 2 [x] billing")
        drawn.press("enter")
        assert await answer == (Reply(chosen=("auth", "billing")),)


async def test_arrows_and_enter_pick_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, DATABASE) as (drawn, answer):
        drawn.press("down", "down")
        await drawn.wait_for("› 2 ○ SQLite")
        drawn.press("enter")
        assert await answer == (Reply(chosen=("SQLite",)),)


async def test_enter_passes_a_question_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, DATABASE, PARTS) as (drawn, answer):
        drawn.press("enter")
        await drawn.wait_for("Which parts?")
        drawn.type("7")
        await drawn.wait_for("answer › 7")
        drawn.press("enter")
        await drawn.wait_until(lambda: is_last_page(drawn))
        drawn.press("enter")
        assert await answer == (Reply(), Reply(text="7"))


@pytest.mark.parametrize("key", ["escape", "ctrl-d"])
async def test_escape_answers_none(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    async with asked(monkeypatch, DATABASE, PARTS) as (drawn, answer):
        drawn.press(key)
        assert await answer is None
        await drawn.wait_for("you skipped the questions")


async def test_keys_that_mean_nothing_here_write_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, DATABASE) as (drawn, answer):
        for key in ("\x1bOP", "\x1b[15~", "\x12", "\x1b[I", "\x7f"):
            drawn.type(key)
            await asyncio.wait({answer}, timeout=0.1)
        assert "answer ›" not in drawn.visible
        drawn.type("1")
        await drawn.wait_for("1 ● Postgres")
        drawn.press("enter")
        assert await answer == (Reply(chosen=("Postgres",)),)


async def test_paste_is_an_unsent_worded_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, FREE) as (drawn, answer):
        drawn.type("\x1b[200~two words\x1b[201~")
        await drawn.wait_for("answer › two words")
        await asyncio.wait({answer}, timeout=0.2)
        assert not answer.done()
        drawn.press("enter")
        assert await answer == (Reply(text="two words"),)


async def test_smallest_window_shows_one_question_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    many = Question(
        text="Which one of these?", options=tuple(AnswerOption(label=f"choice number {number}") for number in range(1, 9))
    )
    async with asked(monkeypatch, many, DATABASE, rows=5, columns=20) as (drawn, answer):
        assert "? Question 1/2\nWhich one of these?" in drawn.visible
        for number in range(1, 9):
            drawn.press("down")
            await drawn.wait_until(lambda number=number: f"› {number} ○" in drawn.visible)  # type: ignore[misc]
            assert f"choice number {number}"[:12] in drawn.visible.replace("\n", "")
        drawn.press("enter")
        await drawn.wait_until(lambda: "Whichdatab" in "".join(drawn.visible.split()))
        drawn.press("enter")
        await drawn.wait_until(lambda: is_last_page(drawn))
        drawn.press("enter")
        assert await answer == (Reply(chosen=("choice number 8",)), Reply())


async def test_a_question_steers_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = Question(
        text="a\x1b[2J\x1b]0;t\x07b\nwolo: all is well", options=(AnswerOption(label="c\x9b5n\u202ed"), AnswerOption(label="e"))
    )
    async with asked(monkeypatch, hostile) as (drawn, _):
        assert "ab\nwolo: all is well\n" in drawn.visible
        drawn.type("2")
        await drawn.wait_for("› 2 ●")
        drawn.press("enter")
    assert b"\x1b]0;" not in drawn.raw
    assert b"\x1b[2J" not in drawn.raw
