"""One live conversation: prompt it, answer it, interrupt it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wolo.agent.events import ApprovalAsked, ApprovalGiven, ErrorInfo, Event, Noticed, TurnEnded
from wolo.agent.loop import Agent
from wolo.conversation.recorder import Recorder
from wolo.errors import SessionError
from wolo.messages.message import Message, Usage

Scope = Literal["once", "session", "always"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a front end may show about a conversation; none of it changes while the conversation lives."""

    session_id: str
    name: str
    model: str
    """`provider/model`."""
    cwd: Path
    mode: str
    tool_names: tuple[str, ...]
    context_window: int | None
    notices: tuple[str, ...] = ()
    """Said once, before the first prompt."""


class Conversation:
    """Every event of a turn is on disk, as far as it must be, before a front end sees it."""

    def __init__(
        self,
        facts: Facts,
        agent: Agent,
        recorder: Recorder,
        history: tuple[Message, ...],
        *,
        on_close: Callable[[], Awaitable[None]],
        on_kill: Callable[[], None],
    ) -> None:
        self.facts = facts
        self.history = history
        self.usage = Usage()
        self._agent = agent
        self._recorder = recorder
        self._on_close = on_close
        self._on_kill = on_kill
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._waiting: dict[str, asyncio.Future[ApprovalGiven]] = {}
        self._turn: asyncio.Task[None] | None = None
        self._storage_failed: SessionError | None = None

    @property
    def session_id(self) -> str:
        return self.facts.session_id

    @property
    def model(self) -> str:
        return self.facts.model

    @property
    def cwd(self) -> Path:
        return self.facts.cwd

    @property
    def mode(self) -> str:
        return self.facts.mode

    @property
    def tool_names(self) -> tuple[str, ...]:
        return self.facts.tool_names

    async def prompt(self, message: Message) -> AsyncIterator[Event]:
        """One turn, from the notices that are due to its `TurnEnded`. Leaving the iteration early ends the turn."""
        for notice in self._due_notices():
            yield notice
        self._turn = asyncio.create_task(self._run(message))
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            self._turn.cancel()
            with suppress(asyncio.CancelledError):
                await self._turn
            self._turn = None

    def interrupt(self) -> None:
        """Stops the turn where it stands; its `TurnEnded` still comes. Does nothing between turns."""
        if self._turn is not None:
            self._turn.cancel()

    def answer(self, id: str, *, allowed: bool, scope: Scope = "once", reason: str = "") -> None:
        """A person's word on the `ApprovalAsked` of that id; a second word on the same one is ignored."""
        asked = self._waiting.pop(id, None)
        if asked is not None and not asked.done():
            asked.set_result(ApprovalGiven(id=id, allowed=allowed, scope=scope, reason=reason))

    def kill(self) -> None:
        """Ends every process this conversation started, at once; for a process that is about to exit."""
        self._on_kill()

    async def close(self) -> None:
        self.interrupt()
        await self._on_close()

    async def ask_person(self, asked: ApprovalAsked) -> ApprovalGiven:
        """What the agent awaits when a call needs a person."""
        future = asyncio.get_running_loop().create_future()
        self._waiting[asked.id] = future
        await self.emit(asked)
        try:
            return await future
        finally:
            self._waiting.pop(asked.id, None)

    async def emit(self, event: Event) -> None:
        """What the agent calls with every event: first to disk, then to the front end."""
        await self._recorder.record(event)
        self._events.put_nowait(event)

    async def _run(self, message: Message) -> None:
        try:
            outcome = await self._agent.run(self.history, message)
            self.history = outcome.messages
        except SessionError as error:
            self._events.put_nowait(_storage_ended(error))
        finally:
            self._events.put_nowait(None)

    def _due_notices(self) -> list[Noticed]:
        if not self.facts.notices:
            return []
        notices = [Noticed(text=text, level="warning") for text in self.facts.notices]
        self.facts = _without_notices(self.facts)
        return notices
