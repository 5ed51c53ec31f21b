"""Saves events as session entries before anyone else gets them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from msgspec.structs import replace

from wolo.agent import events
from wolo.conversation.resources.file_tracking import FileTracking
from wolo.conversation.resources.persistence import SavedSession, SessionSink, UnsavedSession
from wolo.errors import SessionError, UsageError
from wolo.messages.parts import TASK, ToolKind, ToolPart, new_id
from wolo.sessions.entries import AnyEntry, CompactionEntry, LabelEntry, MessageEntry, PartialEntry, ResultsEntry, SettingEntry
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store
from wolo.workspace.processes.process_runner import Processes

P = ParamSpec("P")
T = TypeVar("T")
PARTIAL_EVERY_S = 1.0
PARTIAL_EVERY_CHARS = 8192
READING: frozenset[ToolKind] = frozenset({"read", "search"})
"""Kinds of tools without effects."""


class InlineExecutor(Executor):
    """Runs work at once, in place of a thread."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # the caller gets it
            done.set_exception(error)
        return done


_writers: dict[int, Executor] = {}
"""One thread for all sessions of a process: they wait for the same database. In a forked process it is another one."""


class Recorder:
    """Returns from each event once it is on disk.

    Streaming text is saved every second or every 8 KiB, so a crash loses at most that much; a stalled stream is saved too.
    An answer whose only call reads is saved with the result of the call, or after a second.
    """

    def __init__(
        self, sink: SessionSink, session_id: str, *, has_hooks: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`has_hooks`: calls that read may have effects, too, so every answer is saved at once."""
        self._sink, self._has_hooks = sink, has_hooks
        self._waiting: tuple[AnyEntry, ...] = ()
        """An answer that is saved with the next entry."""
        self._session_id, self._clock = session_id, clock
        if isinstance(sink, UnsavedSession):
            self._writer: Executor = InlineExecutor()
        else:
            self._writer = _writers.get(os.getpid()) or _writers.setdefault(os.getpid(), ThreadPoolExecutor(1, "wolo-store"))
        self.may_block = False
        """Saves without a thread once nothing is `ahead`."""
        self._last: Future[None] | None = None
        """What the writer does last for this session."""
        self._attempt_id = ""
        self._unsaved: list[str] = []
        self._unsaved_chars = 0
        self._saved_at = 0.0
        self._has_partial = False
        self._timer: asyncio.TimerHandle | None = None
        """Saves the streamed text, or a waiting answer, when nothing follows it."""
        self._background_save: Future[None] | None = None
        """A save that nothing awaits (yet), with the waiting answer."""
        self._first_call = ""
        self.ahead: list[Callable[[], object]] = []
        """What is done while the first prompt is saved, each when the loop is idle. Errors are those of the question."""
        self._running: dict[str, tuple[str, ToolPart]] = {}
        """Message id and part of each running call, by the id of the part."""

    async def record(self, event: events.Event) -> None:
        await self._join_background_save()
        match event:
            case events.TextStreamed(text=text):
                self._unsaved.append(text)
                self._unsaved_chars += len(text)
                if self._unsaved_chars >= PARTIAL_EVERY_CHARS or self._clock() - self._saved_at >= PARTIAL_EVERY_S:
                    await self.save(self._take_partial())
                elif self._timer is None:
                    self._start_timer()
            case events.TurnStarted(prompt=prompt):
                asyncio.get_running_loop().call_soon(self._prepare)
                try:
                    await self.save(MessageEntry(message=prompt))
                finally:
                    self.ahead = []  # the question follows, and does what is left
            case events.RequestStarted():
                await self._save_waiting()
                self._begin_attempt()
            case events.AttemptFailed() | events.ModelReplaced():
                await self._void_partials()
            case events.Compacted():
                await self._void_partials()
                saved = CompactionEntry(
                    summary=event.summary,
                    shortened=event.shortened,
                    left_out=event.left_out,
                    sent_from=event.sent_from,
                    reason=event.reason,
                    tokens_before=event.tokens_before,
                    tokens_after=event.tokens_after,
                    usage=event.usage,
                )
                await self.save(saved)
            case events.AnswerEnded(message=message):
                self._begin_attempt()
                calls = message.calls
                self._first_call = calls[0].id if calls else ""
                can_wait = not self._has_hooks and len(calls) == 1 and calls[0].kind in READING
                if can_wait and calls[0].status == "pending" and calls[0].was_allowed_at_once:
                    self._waiting = (MessageEntry(message=message),)
                    self._start_timer()
                else:
                    await self.save(MessageEntry(message=message))
            case events.TurnEnded():
                await self._save_waiting()
                await self._wait_for(self._sink.cleanup)
            case events.TaskStarted() if event.part_id in self._running:  # if it is killed now, it finds the subagent's work
                message_id, part = self._running[event.part_id]
                named = replace(part, metadata={**part.metadata, TASK: {"agent": event.agent, "session": event.session_id}})
                await self.save(ResultsEntry(message_id=message_id, parts=(named,)))
            case events.MessageAdded(message=message):
                await self.save(MessageEntry(message=message))
            case events.CallStarted(part=part, message_id=message_id):
                self._running[part.id] = (message_id, part)
                if part.id != self._first_call or not part.was_allowed_at_once:  # otherwise the answer implies it
                    await self.save(ResultsEntry(message_id=message_id, parts=(part,)))
            case events.CallEnded(part=part, message_id=message_id):
                self._running.pop(part.id, None)
                await self.save(ResultsEntry(message_id=message_id, parts=(part,)))

    def _prepare(self) -> None:
        if self.ahead:
            with suppress(Exception):
                self.ahead.pop(0)()
            asyncio.get_running_loop().call_soon(self._prepare)

    async def save(self, *entries: AnyEntry) -> None:
        """In one commit with a waiting answer."""
        await self._join_background_save()
        waiting, self._waiting = self._waiting, ()
        if waiting:
            self._stop_timer()
        try:
            await self._wait_for(self._sink.append, self._session_id, (*waiting, *entries))
        except (SessionError, asyncio.CancelledError):
            self._waiting = waiting
            raise

    def change(self, setting: SettingEntry) -> None:
        """Saved with the next entry."""
        self._submit(self._sink.change, setting)

    async def close(self) -> None:
        """Returns once all is on disk."""
        self._finish()
        if self._last is not None:
            with suppress(Exception):  # whoever saved it got the error
                await asyncio.shield(asyncio.wrap_future(self._last))

    def abandon(self, release: Callable[[], None]) -> None:
        """Closes without an event loop. `release` is called once all is on disk, now or by the writer.

        Waits for nothing: the collector of garbage may call it in the writer.
        """
        self._finish()
        if self._last is None:
            release()
        else:
            self._last.add_done_callback(lambda _: release())

    def _finish(self) -> None:
        self._stop_timer()
        if self._waiting:  # the turn ended by an error
            self._submit(self._save_left, self._background_save, self._waiting)

    def _save_left(self, before: Future[None] | None, entries: tuple[AnyEntry, ...]) -> None:
        if before is None or before.exception() is not None:
            self._sink.append(self._session_id, entries)

    def _submit(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> Future[None]:
        is_idle = self._last is None or self._last.done()
        writer = InlineExecutor() if self.may_block and is_idle and not self.ahead else self._writer
        try:
            self._last = writer.submit(work, *args, **kwargs)
        except RuntimeError:  # the interpreter ends, and has ended its threads
            self._last = InlineExecutor().submit(work, *args, **kwargs)
        return self._last

    async def _wait_for(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """A cancelled task does not cancel work that waits for that of other sessions; its error is that of the next save."""
        save = self._submit(work, *args, **kwargs)
        try:
            # Without a thread there is nothing to wait for, but others get their turn
            await (asyncio.sleep(0) if save.done() else asyncio.shield(asyncio.wrap_future(save)))
            save.result()
            if self._last is save:
                self._last = None
        except asyncio.CancelledError:
            self._background_save = save
            raise

    async def _save_waiting(self) -> None:
        if self._waiting:
            await self.save()

    def _begin_attempt(self) -> None:
        self._stop_timer()
        self._attempt_id = new_id("msg")
        self._unsaved.clear()
        self._unsaved_chars = 0
        self._saved_at = self._clock()
        self._has_partial = False

    async def _void_partials(self) -> None:
        """An empty partial voids those before it."""
        if self._has_partial:
            await self.save(PartialEntry(message_id=self._attempt_id, text=""))
        self._begin_attempt()

    def _take_partial(self) -> PartialEntry:
        self._stop_timer()
        partial = PartialEntry(message_id=self._attempt_id, text="".join(self._unsaved))
        self._unsaved.clear()
        self._unsaved_chars = 0
        self._saved_at = self._clock()
        self._has_partial = True
        return partial

    def _start_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(PARTIAL_EVERY_S, self._save_on_timer)

    def _save_on_timer(self) -> None:
        entries, self._timer = self._waiting or (self._take_partial(),), None
        self._background_save = self._submit(self._sink.append, self._session_id, entries)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _join_background_save(self) -> None:
        """Raises the error of a save that nothing awaited."""
        if (save := self._background_save) is not None:
            with suppress(Exception):
                await asyncio.shield(asyncio.wrap_future(save))
            self._background_save = None
            save.result()
            self._waiting = ()


class EventStream:
    """Passes events to the front end once they are on disk."""

    def __init__(self, recorder: Recorder, sink: SessionSink, tracking: FileTracking, processes: Processes) -> None:
        """`tracking` follows the turns of the main agent, whose commands are among the `processes`."""
        self.queue: asyncio.Queue[events.Event | None] = asyncio.Queue()
        """None ends a turn."""
        self.is_in_turn = False
        self.idle_listener: Callable[[events.Event], None] | None = None
        """Gets the events between turns; None: they wait in the queue for the next turn."""
        self.summary_usage = sink.summary_usage
        """Usage of all summaries so far."""
        self.watch: Callable[[events.Event], None] | None = None
        """Gets every event that is passed on, too."""
        self._recorder, self._sink, self._tracking, self._processes = recorder, sink, tracking, processes

    async def emit(self, event: events.Event) -> None:
        """Returns once the event is on disk. Raises SessionError."""
        await self._recorder.record(event)
        while self._sink.recovery_notices:
            self.queue.put_nowait(events.Noticed(text=self._sink.recovery_notices.pop(0), level="warning"))
        if isinstance(event, events.Compacted) and event.usage is not None:
            self.summary_usage += (event.usage,)
        self.pass_on(event)

    async def emit_tracked(self, event: events.Event) -> None:
        """Emits an event of the main agent; the tracker of files follows its turns."""
        if isinstance(event, events.TurnStarted | events.CallEnded | events.TurnEnded):
            for text in await self._tracking.follow(event, self._processes):
                await self.emit(events.Noticed(text=text, level="warning"))
        await self.emit(event)

    def pass_on(self, event: events.Event) -> None:
        if self.watch is not None:
            self.watch(event)
        if self.idle_listener is None or self.is_in_turn:
            self.queue.put_nowait(event)
        else:
            self.idle_listener(event)

    async def show(self, event: events.Event) -> None:
        """Passes on an event that is not saved."""
        self.queue.put_nowait(event)


class SessionAccess:
    """The stored session of a conversation, and the others of its directory."""

    def __init__(self, sink: SessionSink, recorder: Recorder, data: Path, cwd: Path) -> None:
        """`data` is the folder of the store."""
        self.stored, self._recorder, self._data, self._cwd = sink, recorder, data, cwd
        self.has_title = False
        """A title was set during this conversation."""

    def list_here(self) -> list[SessionInfo]:
        """Sessions of this directory, newest first."""
        with Store.open(self._data) as store:
            return store.list(self._cwd)

    def set_label(self, message_id: str, label: str) -> None:
        """An empty label removes it."""
        self.stored.append(self.stored.session_id, [LabelEntry(message_id=message_id, label=label)])

    def set_title(self, title: str) -> None:
        """Raises UsageError for a session that is not saved."""
        if not isinstance(self.stored, SavedSession):
            raise UsageError("This session is not saved, so it has no title.")
        self.has_title = True
        setting = SettingEntry(name="title", value=title)
        if self.stored.is_started:
            self.stored.append(self.stored.session_id, [setting])
        else:
            self._recorder.change(setting)
