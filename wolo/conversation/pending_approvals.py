"""The calls of a conversation that wait for a person's yes or no."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from wolo.agent.events import ApprovalAsked, ApprovalGiven
from wolo.agent.tool_calls import Emit
from wolo.errors import UsageError
from wolo.guard.intents import Intent


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
