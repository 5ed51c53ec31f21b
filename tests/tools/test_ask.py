"""Questions to the person: what is asked, and what the model reads of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.tools.harness import ToolHarness
from wolo.errors import ToolError
from wolo.tools.questions.ask import DISMISSED, NOBODY, STOPPED
from wolo.tools.tool_values import AnswerOption, CallResult, Interrupted, Question, Replies, Reply

DATABASE = {
    "question": "Which database?",
    "options": [{"label": "Postgres", "description": "on the server"}, {"label": "SQLite"}],
}


class Person:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self, harness: ToolHarness, replies: Replies | None) -> None:
        self.asked: list[Question] = []
        self._replies = replies
        harness.services, harness.call_id = replace(harness.services, ask_user=self.answer), "call_1"

    async def answer(self, call_id: str, questions: Sequence[Question]) -> Replies | None:
        assert call_id == "call_1"
        self.asked += questions
        return self._replies


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)


async def test_the_model_reads_each_question_with_its_answer(harness: ToolHarness) -> None:
    person = Person(harness, (Reply(chosen=("Postgres",)), Reply(chosen=("a", "b"), text="and c"), Reply()))
    more = {"question": "Which parts?", "options": ["a", "b"], "multi_select": True}
    result = await harness.call("ask", questions=[DATABASE, more, {"question": "Why?"}])
    assert result == CallResult("Which database?\n→ Postgres\nWhich parts?\n→ a, b, and c\nWhy?\n→ (no answer)")
    assert person.asked == [
        Question(text="Which database?", options=(AnswerOption("Postgres", "on the server"), AnswerOption("SQLite"))),
        Question(text="Which parts?", options=(AnswerOption("a"), AnswerOption("b")), several=True),
        Question(text="Why?"),
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"question": "Which?", "header": "DB", "options": [{"label": "a"}, {"label": "b"}], "multiSelect": True},
        {"question": "Which?", "header": "DB", "options": [{"label": "a"}, {"label": "b"}], "multiple": True, "type": "choice"},
        {"text": "Which?", "title": "DB", "choices": ["a", "b"], "multi_select": True, "id": "db"},
    ],
)
async def test_other_agents_spellings_are_understood(harness: ToolHarness, given: dict[str, Any]) -> None:
    person = Person(harness, None)
    await harness.call("ask", questions=[given])
    assert person.asked == [Question(text="Which?", header="DB", options=(AnswerOption("a"), AnswerOption("b")), several=True)]


@pytest.mark.parametrize("replies", [None, (Reply(),)])
async def test_no_answer_is_a_result_and_no_failure(harness: ToolHarness, replies: Replies | None) -> None:
    Person(harness, replies)
    assert await harness.call("ask", questions=[DATABASE]) == CallResult(DISMISSED)


async def test_stopped_turn_reports_that_nobody_answered(harness: ToolHarness) -> None:
    async def think(call_id: str, questions: Sequence[Question]) -> Replies | None:
        await asyncio.sleep(60)
        return None

    harness.services = replace(harness.services, ask_user=think)
    task = asyncio.ensure_future(harness.call("ask", questions=[DATABASE]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(Interrupted) as stopped:
        await task
    assert stopped.value.result.text == STOPPED


async def test_unattended_model_is_told_to_continue(harness: ToolHarness) -> None:
    with pytest.raises(ToolError, match=NOBODY):
        await harness.call("ask", questions=[DATABASE])


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ([], "0 questions; there must be 1 to 4"),
        ([DATABASE] * 5, "5 questions"),
        ([{"question": " "}], "question 1 is empty"),
        ([DATABASE, {"question": "?", "options": ["a", "a"]}], "question 2 has options without a label, or two with the same"),
        ([{"question": "?", "options": ["a", " \n"]}], "without a label"),
        ([{"question": "?", "options": [str(n) for n in range(10)]}], "10 options; 9 is the most"),
        ([{"options": []}], r"questions\[0\].question` is missing"),
        ("what?", "questions"),
    ],
)
async def test_unanswerable_question_is_reported_in_a_sentence(harness: ToolHarness, questions: Any, said: str) -> None:
    Person(harness, None)
    with pytest.raises(ToolError, match=said):
        await harness.call("ask", questions=questions)


async def test_labels_are_one_line_and_nothing_is_endless(harness: ToolHarness) -> None:
    person = Person(harness, None)
    await harness.call("ask", questions=[{"question": "x" * 10_000, "options": ["a\n  b", "y" * 10_000]}])
    assert len(person.asked[0].text) == 1000
    assert person.asked[0].options[0].label == "a b"
    assert len(person.asked[0].options[1].label) == 200
