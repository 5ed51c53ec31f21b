"""Events become entries: what must be on disk is there before anyone else hears of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from msgspec.structs import replace

from wolo.agent.events import (
    AnswerEnded,
    AttemptFailed,
    CallEnded,
    CallStarted,
    Compacted,
    Event,
    MessageAdded,
    ModelReplaced,
    Noticed,
    RequestStarted,
    TaskStarted,
    TextStreamed,
    TurnEnded,
    TurnStarted,
)
from wolo.messages.message import Usage
from wolo.messages.parts import TASK, ToolPart, new_id
from wolo.sessions.entries import AnyEntry, CompactionEntry, MessageEntry, PartialEntry, ResultsEntry, SettingEntry
from wolo.sessions.replay_entries import was_allowed_at_once

PARTIAL_EVERY_S = 1.0
PARTIAL_EVERY_CHARS = 8192


class EntrySink(Protocol):
    """Where entries go; one call is one durable commit. Raises SessionError."""

    def append(self, session_id: str, entries: Sequence[AnyEntry]) -> None: ...

    def change(self, setting: SettingEntry) -> None:
        """What is different from the next entry on. Must not raise."""
        ...

    def tidy(self) -> None:
        """Housekeeping between turns. Must not raise: nothing is lost without it."""
        ...


class Recorder:
    """Called with every event before it is passed on; returns once what it says is on disk.

    A text that is still streaming is kept every second or every 8 KiB, so that a crash loses at most that much of it;
    a stream that pauses, too.
    """

    def __init__(self, keeper: EntrySink, session_id: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._keeper = keeper
        self._session_id = session_id
        self._clock = clock
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="wolo-store")
        self._attempt_id = ""
        self._unkept: list[str] = []
        self._unkept_chars = 0
        self._kept_at = 0.0
        self._kept_piece = False
        self._pause: asyncio.TimerHandle | None = None
        """Keeps what has come when nothing follows it."""
        self._late: Future[None] | None = None
        """A piece that is being kept while nobody waits for it."""
        self._first_call = ""
        self._running: dict[str, tuple[str, ToolPart]] = {}
        """Calls that have begun and not ended, and the ids of their messages, by their own."""

    async def record(self, event: Event) -> None:
        await self._settle()
        self._keep_track(event)
        if isinstance(event, TextStreamed):
            await self._stream(event.text)
        elif isinstance(event, TurnStarted):
            await self.keep(MessageEntry(message=event.prompt))
        elif isinstance(event, RequestStarted):
            self._begin_attempt()
        elif isinstance(event, AttemptFailed | ModelReplaced):
            await self._take_back()
        elif isinstance(event, Compacted):
            await self._take_back()
            await self.keep(_compaction(event))
        elif isinstance(event, AnswerEnded):
            self._begin_attempt()
            self._first_call = event.message.calls[0].id if event.message.calls else ""
            await self.keep(MessageEntry(message=event.message))
        elif isinstance(event, TurnEnded):
            await self._tidy()
        elif isinstance(event, TaskStarted):
            await self._name_session(event)
        elif isinstance(event, MessageAdded):
            await self.keep(MessageEntry(message=event.message))
        elif isinstance(event, CallEnded) or (isinstance(event, CallStarted) and not self._is_told_by_its_answer(event.part)):
            await self.keep(ResultsEntry(message_id=event.message_id, parts=(event.part,)))

    def _keep_track(self, event: Event) -> None:
        if isinstance(event, CallStarted):
            self._running[event.part.id] = (event.message_id, event.part)
        elif isinstance(event, CallEnded):
            self._running.pop(event.part.id, None)

    async def _name_session(self, event: TaskStarted) -> None:
        """Should this process be killed now, it is known where the other agent's work lies."""
        if event.part_id in self._running:
            message_id, part = self._running[event.part_id]
            named = replace(part, metadata={**part.metadata, TASK: {"agent": event.agent, "session": event.session_id}})
            await self.keep(ResultsEntry(message_id=message_id, parts=(named,)))

    async def _tidy(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writer, self._keeper.tidy)

    async def keep(self, *entries: AnyEntry) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writer, self._keeper.append, self._session_id, entries)

    def change(self, setting: SettingEntry) -> None:
        """Kept with the next entry, whatever that is."""
        self._writer.submit(self._keeper.change, setting)

    def _is_told_by_its_answer(self, part: ToolPart) -> bool:
        """The entry of an answer says already that its first call may begin, when it is allowed at once."""
        return part.id == self._first_call and was_allowed_at_once(part)

    def close(self) -> None:
        self._stop_waiting()
        self._writer.shutdown(wait=True)

    def _begin_attempt(self) -> None:
        self._stop_waiting()
        self._attempt_id = new_id("msg")
        self._unkept.clear()
        self._unkept_chars = 0
        self._kept_at = self._clock()
        self._kept_piece = False

    async def _take_back(self) -> None:
        """An empty piece says that those before it are void."""
        if self._kept_piece:
            await self.keep(PartialEntry(message_id=self._attempt_id, text=""))
        self._begin_attempt()

    async def _stream(self, text: str) -> None:
        self._unkept.append(text)
        self._unkept_chars += len(text)
        if self._unkept_chars >= PARTIAL_EVERY_CHARS or self._clock() - self._kept_at >= PARTIAL_EVERY_S:
            await self.keep(self._piece())
        elif self._pause is None:
            self._pause = asyncio.get_running_loop().call_later(PARTIAL_EVERY_S, self._keep_in_pause)

    def _piece(self) -> PartialEntry:
        self._stop_waiting()
        piece = PartialEntry(message_id=self._attempt_id, text="".join(self._unkept))
        self._unkept.clear()
        self._unkept_chars = 0
        self._kept_at = self._clock()
        self._kept_piece = True
        return piece

    def _keep_in_pause(self) -> None:
        self._late = self._writer.submit(self._keeper.append, self._session_id, (self._piece(),))

    def _stop_waiting(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None

    async def _settle(self) -> None:
        """Raises what went wrong with the piece that nobody waited for."""
        if self._late is not None:
            late, self._late = self._late, None
            await asyncio.wrap_future(late)


def _compaction(event: Compacted) -> CompactionEntry:
    return CompactionEntry(
        summary=event.summary,
        shortened=event.shortened,
        left_out=event.left_out,
        reason=event.reason,
        tokens_before=event.tokens_before,
        tokens_after=event.tokens_after,
        usage=event.usage,
    )


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
