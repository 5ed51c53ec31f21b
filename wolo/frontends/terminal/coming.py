"""The events of a turn, which go on coming while a person is asked something."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Self, TypeVar

from wolo.agent.events import ApprovalGiven, CallEnded, Event, QuestionsAnswered, TurnEnded

T = TypeVar("T")

ENDS_A_QUESTION = (ApprovalGiven, CallEnded, QuestionsAnswered, TurnEnded)
"""None of them comes while somebody waits for the person: the time was up, for example."""


class Coming:
    """Iterates over events. While a person is asked they are held back: nothing is drawn into what is being typed."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events
        self._held: deque[Event] = deque()
        self._next: asyncio.Task[Event] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._held:
            return self._held.popleft()
        upcoming, self._next = self._upcoming(), None
        return await upcoming

    async def while_asking(self, asking: asyncio.Task[T]) -> T | None:
        """The answer; None once nobody waits for it any more. Raises what the question raises."""
        try:
            while not asking.done():
                self._next = upcoming = self._upcoming()
                await asyncio.wait({asking, upcoming}, return_when=asyncio.FIRST_COMPLETED)
                if upcoming.done() and not asking.done() and self._is_over(upcoming):
                    return None
            return asking.result()
        finally:
            asking.cancel()
            await asyncio.wait({asking})

    def _is_over(self, upcoming: asyncio.Task[Event]) -> bool:
        """Takes what has come, and says whether it ends the question."""
        self._next = None
        self._held.append(upcoming.result())
        return isinstance(self._held[-1], ENDS_A_QUESTION)

    async def close(self) -> None:
        """Leaves the turn, wherever it is."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.wait({self._next})
        if isinstance(self._events, AsyncGenerator):
            await self._events.aclose()

    def _upcoming(self) -> asyncio.Task[Event]:
        return self._next or asyncio.ensure_future(anext(self._events))
