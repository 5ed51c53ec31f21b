"""One live conversation: prompt it, answer it, interrupt it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.calls import AskPerson, Emit
from wolo.agent.events import ApprovalAsked, ApprovalGiven, Event, Noticed
from wolo.agent.loop import Agent
from wolo.conversation.recorder import Recorder
from wolo.messages.message import Message

Scope = Literal["once", "session", "always"]

MakeAgent = Callable[[Emit, AskPerson | None], Agent]


class Facts(Struct, frozen=True, kw_only=True):
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
        make_agent: MakeAgent,
        recorder: Recorder,
        history: tuple[Message, ...],
        *,
        attended: bool,
        on_decision: Callable[[ApprovalAsked, ApprovalGiven], None],
        on_close: Callable[[], Awaitable[None]],
        on_kill: Callable[[], None],
    ) -> None:
        """`attended`: a person can be asked. `on_decision` hears every answer; `on_close` and `on_kill` free what was opened."""
        self.facts = facts
        self.history = history
        self._agent = make_agent(self.emit, self.ask_person if attended else None)
        self._recorder = recorder
        self._on_decision = on_decision
        self._on_close = on_close
        self._on_kill = on_kill
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._waiting: dict[str, asyncio.Future[ApprovalGiven]] = {}
        self._turn: asyncio.Task[None] | None = None

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
        """One turn, from the notices that are due to its `TurnEnded`. Leaving the iteration early interrupts the turn."""
        for text in self.facts.notices:
            yield Noticed(text=text, level="warning")
        self.facts = replace(self.facts, notices=())
        self._turn = asyncio.create_task(self._run(message))
        try:
            while (event := await self._events.get()) is not None:
                yield event
            await self._turn
        finally:
            self._agent.interrupt()
            with suppress(asyncio.CancelledError):
                await self._turn
            self._turn = None

    def interrupt(self) -> None:
        """Stops the turn where it stands; its `TurnEnded` still comes. Does nothing between turns."""
        self._agent.interrupt()

    def answer(self, id: str, *, allowed: bool, scope: Scope = "once", reason: str = "") -> None:
        """A person's word on the `ApprovalAsked` of that id; a second word on the same one is ignored."""
        asked = self._waiting.get(id)
        if asked is not None and not asked.done():
            asked.set_result(ApprovalGiven(id=id, allowed=allowed, scope=scope, reason=reason))

    def kill(self) -> None:
        """Ends every process this conversation started, at once; for a process that is about to exit."""
        self._on_kill()

    async def close(self) -> None:
        self.interrupt()
        if self._turn is not None:
            await asyncio.wait({self._turn})
        await self._on_close()

    async def ask_person(self, asked: ApprovalAsked) -> ApprovalGiven:
        """What the agent awaits when a call needs a person."""
        future: asyncio.Future[ApprovalGiven] = asyncio.get_running_loop().create_future()
        self._waiting[asked.id] = future
        await self.emit(asked)
        try:
            given = await future
        finally:
            del self._waiting[asked.id]
        self._on_decision(asked, given)
        return given

    async def emit(self, event: Event) -> None:
        """What the agent calls with every event: first to disk, then to the front end."""
        await self._recorder.record(event)
        self._events.put_nowait(event)

    async def _run(self, message: Message) -> None:
        try:
            self.history = (await self._agent.run(self.history, message)).messages
        finally:
            self._events.put_nowait(None)
