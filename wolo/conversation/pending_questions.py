"""The questions of a conversation that wait for a person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from wolo.agent.events import QuestionsAnswered, QuestionsAsked
from wolo.agent.tool_calls import Emit
from wolo.messages.parts import new_id
from wolo.tools.question_types import Question, Replies


class PendingQuestions:
    def __init__(self, emit: Emit, hide: Callable[[QuestionsAsked], QuestionsAsked]) -> None:
        """`hide` takes out what must not be seen."""
        self._emit = emit
        self._hide = hide
        self._waiting: dict[str, tuple[QuestionsAsked, asyncio.Future[Replies | None]]] = {}

    async def ask(self, call_id: str, questions: Sequence[Question], task: str = "") -> Replies | None:
        """What the tool awaits. None: the person answers none of them. `task`: the call that another agent asks for."""
        asked = self._hide(QuestionsAsked(id=new_id("ask"), call_id=call_id, questions=tuple(questions), task=task))
        future: asyncio.Future[Replies | None] = asyncio.get_running_loop().create_future()
        self._waiting[asked.id] = (asked, future)
        await self._emit(asked)
        try:
            replies = await future
        finally:
            del self._waiting[asked.id]
        await self._emit(QuestionsAnswered(id=asked.id, replies=replies))
        return replies

    def answer(self, id: str, replies: Replies | None) -> None:
        """A second word on the same questions is ignored. Raises ValueError when it is not one reply to each."""
        asked, future = self._waiting.get(id, (None, None))
        if asked is None or future is None or future.done():
            return
        if replies is not None and len(replies) != len(asked.questions):
            raise ValueError(f"{len(replies)} replies to {len(asked.questions)} questions")
        future.set_result(replies)
