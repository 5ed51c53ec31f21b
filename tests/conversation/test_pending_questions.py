"""Questions that wait for a person: asked once, answered once, gone with the turn."""

from __future__ import annotations

import asyncio

import pytest

from wolo.agent.events import Event, QuestionsAnswered, QuestionsAsked
from wolo.conversation.pending_requests import PendingQuestions
from wolo.guard.secrets.redactor import Secrets
from wolo.tools.tool_values import Question, Replies, Reply

QUESTIONS = (Question(text="Which?"), Question(text="Why?"))
REPLIES = (Reply(chosen=("a",)), Reply(text="because"))


class Heard:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.open = PendingQuestions(self.hear, Secrets([]))

    async def hear(self, event: Event) -> None:
        self.events.append(event)

    async def asked(self) -> tuple[asyncio.Task[Replies | None], str]:
        """The question, and its id."""
        task = asyncio.ensure_future(self.open.ask("call_1", QUESTIONS))
        while not self.events:
            await asyncio.sleep(0)
        event = self.events[0]
        assert isinstance(event, QuestionsAsked)
        assert (event.call_id, event.questions) == ("call_1", QUESTIONS)
        return task, event.id


@pytest.mark.parametrize("replies", [REPLIES, None])
async def test_answer_reaches_the_tool_and_all_listeners(replies: Replies | None) -> None:
    heard = Heard()
    task, id = await heard.asked()
    heard.open.answer(id, replies)
    heard.open.answer(id, None)
    assert await task == replies
    assert heard.events[1:] == [QuestionsAnswered(id=id, replies=replies)]
    heard.open.answer(id, REPLIES)


async def test_one_reply_to_each_question_it_must_be() -> None:
    heard = Heard()
    task, id = await heard.asked()
    with pytest.raises(ValueError, match="1 replies to 2 questions"):
        heard.open.answer(id, REPLIES[:1])
    heard.open.answer(id, REPLIES)
    assert await task == REPLIES


async def test_stopped_turn_takes_its_questions_along() -> None:
    heard = Heard()
    task, id = await heard.asked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    heard.open.answer(id, REPLIES)
    assert len(heard.events) == 1
