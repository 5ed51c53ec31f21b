"""The events of a turn, which go on coming while a person is asked something."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Self, TypeVar

from wolo.agent.events import (
    ApprovalAsked,
    ApprovalGiven,
    CallEnded,
    Event,
    QuestionsAnswered,
    QuestionsAsked,
    TaskEnded,
    TurnEnded,
)

T = TypeVar("T")

Asked = ApprovalAsked | QuestionsAsked


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

    async def while_asking(self, asked: Asked, asking: asyncio.Task[T]) -> T | None:
        """The answer; None once nobody waits for it any more. Raises what the question raises."""
        try:
            if any(ends(event, asked) for event in self._held):
                return None
            while not asking.done():
                self._next = upcoming = self._upcoming()
                await asyncio.wait({asking, upcoming}, return_when=asyncio.FIRST_COMPLETED)
                if upcoming.done() and not asking.done() and self._is_over(upcoming, asked):
                    return None
            return asking.result()
        finally:
            asking.cancel()
            await asyncio.wait({asking})

    def _is_over(self, upcoming: asyncio.Task[Event], asked: Asked) -> bool:
        """Takes what has come, and says whether it ends the question."""
        self._next = None
        self._held.append(upcoming.result())
        return ends(self._held[-1], asked)

    async def close(self) -> None:
        """Leaves the turn, wherever it is."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.wait({self._next})
        if isinstance(self._events, AsyncGenerator):
            await self._events.aclose()

    def _upcoming(self) -> asyncio.Task[Event]:
        return self._next or asyncio.ensure_future(anext(self._events))


def ends(event: Event, asked: Asked) -> bool:
    """Nobody waits for the answer any more: the time was up, for example. Other agents may go on beside the one that asks."""
    match event:
        case TurnEnded():
            return True
        case ApprovalGiven() | QuestionsAnswered():
            return event.id == asked.id
        case TaskEnded():
            return event.part_id == asked.task
        case CallEnded():
            return not asked.task
        case _:
            return False
