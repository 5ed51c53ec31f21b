"""Live output of a running call on its way to the front end: merged when it comes faster than it is taken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from wolo.agent.events import CallProgressed, Event
from wolo.messages.secret_values import Piecewise

KEPT_CHARS = 64_000
"""Of what waits to be told, only the newest part is kept."""


class Progress:
    def __init__(self, part_id: str, emit: Callable[[Event], Awaitable[None]], hiding: Piecewise) -> None:
        self._part_id = part_id
        self._emit = emit
        self._hiding = hiding
        self._waiting = ""
        self._loop = asyncio.get_running_loop()
        self._teller: asyncio.Task[None] | None = None
        self._closed = False

    def tell(self, text: str) -> None:
        """May be called from any thread, and never blocks."""
        self._loop.call_soon_threadsafe(self._take, text)

    async def close(self) -> None:
        """Returns when all that was told has been passed on."""
        await asyncio.sleep(0)  # lets a last word that was told from this thread arrive
        self._closed = True
        if self._teller is not None:
            await self._teller
            if held := self._hiding.close():
                await self._emit(CallProgressed(part_id=self._part_id, text=held))

    def _take(self, text: str) -> None:
        if self._closed:
            return
        self._waiting = (self._waiting + text)[-KEPT_CHARS:]
        if self._teller is None or self._teller.done():
            self._teller = self._loop.create_task(self._pass_on())

    async def _pass_on(self) -> None:
        while self._waiting:
            text, self._waiting = self._hiding.feed(self._waiting), ""
            if text:
                await self._emit(CallProgressed(part_id=self._part_id, text=text))
