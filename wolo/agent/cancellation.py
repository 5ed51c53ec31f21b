"""The user's ways into a running turn: cancel it, or steer it with a message.

Only long steps are interrupted, never the bookkeeping between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from msgspec.structs import replace

from wolo.agent.events import StopCause
from wolo.messages.message import NUDGE, STEERED, Message

T = TypeVar("T")


class Cancelled(Exception):
    """The work was cancelled; no new step may start."""


class Cancellation:
    """Runs an answer, a call or a question to the user as a step, and cancels the running steps on request."""

    def __init__(self) -> None:
        self.cause: StopCause | None = None
        self._steps: dict[asyncio.Task[Any], None] = {}
        """In start order."""

    def cancel(self, cause: StopCause) -> None:
        """Cancels the running steps. A second call does nothing, so that their clean-up can finish."""
        if self.cause is None:
            self.cause = cause
            for step in tuple(self._steps):
                step.cancel()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Raises Cancelled when this was cancelled before, or when the work ends by being cancelled."""
        if self.cause is not None:
            work.close()
            raise Cancelled
        step = asyncio.ensure_future(work)
        self._steps[step] = None
        try:
            return await step
        except asyncio.CancelledError:
            if self.cause is None:
                raise
            raise Cancelled from None
        finally:
            self._steps.pop(step, None)


async def wait_for_clean_end(work: asyncio.Task[Any], cancellation: Cancellation) -> None:
    """Waits for the work. When the waiting task is cancelled, it cancels the steps of the work instead and waits on."""
    task = asyncio.current_task()
    assert task is not None
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            task.uncancel()
            cancellation.cancel("interrupted")


class SteeringQueue:
    """Messages the user sends during a turn; each waits until the running call has ended."""

    def __init__(self) -> None:
        self.waiting: tuple[Message, ...] = ()
        """Oldest first."""

    def add(self, message: Message) -> None:
        """The message joins the running turn instead of starting one."""
        self.waiting += (replace(message, metadata={**message.metadata, NUDGE: STEERED}),)

    def withdraw(self, message_id: str) -> bool:
        """False when the message has been delivered already."""
        before = self.waiting
        self.waiting = tuple(message for message in before if message.id != message_id)
        return len(self.waiting) < len(before)

    def take_all(self) -> tuple[Message, ...]:
        """Empties the queue; oldest first."""
        taken, self.waiting = self.waiting, ()
        return taken
