"""The calls of a conversation that wait for a person's yes or no."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from wolo.agent.events import ApprovalAsked, ApprovalGiven, QuestionsAnswered, QuestionsAsked
from wolo.agent.tool_execution import Emit
from wolo.errors import UsageError
from wolo.guard.intents import Intent
from wolo.messages.parts import new_id
from wolo.tools.tool_values import Question, Replies


class PendingApprovals:
    def __init__(
        self,
        emit: Emit,
        decided: Callable[[ApprovalAsked, ApprovalGiven], None],
        complaint: Callable[[str, Sequence[Intent]], str],
    ) -> None:
        """`decided` hears every answer; `complaint` is what is wrong with a rule for a call."""
        self._emit = emit
        self._decided = decided
        self._complaint = complaint
        self._waiting: dict[str, tuple[ApprovalAsked, asyncio.Future[ApprovalGiven]]] = {}

    async def ask(self, asked: ApprovalAsked) -> ApprovalGiven:
        """What the agent awaits when a call needs a person."""
        future: asyncio.Future[ApprovalGiven] = asyncio.get_running_loop().create_future()
        self._waiting[asked.id] = (asked, future)
        await self._emit(asked)
        try:
            given = await future
        finally:
            del self._waiting[asked.id]
        self._decided(asked, given)
        return given

    def answer(self, given: ApprovalGiven) -> None:
        """A second word on the same call is ignored. Raises UsageError when there is a `complaint` about its rule."""
        asked, future = self._waiting.get(given.id, (None, None))
        if asked is None or future is None or future.done():
            return
        if given.rule and (wrong := self.complaint(asked, given.rule)):
            raise UsageError(wrong)
        future.set_result(given)

    def complaint(self, asked: ApprovalAsked, rule: str) -> str:
        """What is wrong with a rule that a person wrote instead of the one shown; empty when it may be kept."""
        return self._complaint(rule, asked.intents)


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
