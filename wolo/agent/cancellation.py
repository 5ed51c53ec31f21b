"""Stops a turn at once and cleanly: only the long steps can be cancelled, never the book-keeping between them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from wolo.agent.events import StopCause

T = TypeVar("T")


class Stopped(Exception):
    """The brake was pulled: nothing new begins."""


class Brake:
    """An answer, a call, a question to a person: each runs as a step, and a pull cancels those that are running."""

    def __init__(self) -> None:
        self.cause: StopCause | None = None
        self._steps: dict[asyncio.Task[Any], None] = {}
        """In the order in which they began."""

    def pull(self, cause: StopCause) -> None:
        """Cancels the running steps, once; a second pull leaves their cleaning up alone."""
        if self.cause is None:
            self.cause = cause
            for step in tuple(self._steps):
                step.cancel()

    async def step(self, work: Coroutine[Any, Any, T]) -> T:
        """Raises Stopped when the brake has been pulled, or is pulled and the work lets itself be cancelled."""
        if self.cause is not None:
            work.close()
            raise Stopped
        step = asyncio.ensure_future(work)
        self._steps[step] = None
        try:
            return await step
        except asyncio.CancelledError:
            if self.cause is None:
                raise
            raise Stopped from None
        finally:
            self._steps.pop(step, None)


async def outlast(work: asyncio.Task[Any], brake: Brake) -> None:
    """Waits for the work; whoever cancels the waiting pulls the brake instead, and the work comes to a clean end."""
    task = asyncio.current_task()
    assert task is not None
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            task.uncancel()
            brake.pull("interrupted")
