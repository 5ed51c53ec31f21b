"""Every event of a conversation goes to disk first, then to the front end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from wolo.agent.events import Compacted, Event, Noticed
from wolo.conversation.recorder import Recorder
from wolo.messages.message import Usage


class EventStream:
    def __init__(self, recorder: Recorder, rescues: Callable[[], Sequence[str]], summed_up: tuple[Usage, ...] = ()) -> None:
        """`rescues` returns notices about damage to the store, once."""
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue()
        """None ends a turn."""
        self.summed_up = summed_up
        """Usage of all summaries so far."""
        self._recorder = recorder
        self._rescues = rescues

    async def emit(self, event: Event) -> None:
        """Returns once the event is on disk. Raises SessionError."""
        await self._recorder.record(event)
        for text in self._rescues():
            self.queue.put_nowait(Noticed(text=text, level="warning"))
        if isinstance(event, Compacted) and event.usage is not None:
            self.summed_up += (event.usage,)
        self.queue.put_nowait(event)

    async def show(self, event: Event) -> None:
        """Passes an event on that is not saved."""
        self.queue.put_nowait(event)
