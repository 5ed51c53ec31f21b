"""Runs one turn in the terminal: shows its events, asks its questions, and stops it on a signal."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from msgspec.structs import replace
from rich.text import Text

from wolo.agent import events
from wolo.conversation.conversation import Conversation
from wolo.frontends.terminal.dialogs.notifications import Notifier
from wolo.frontends.terminal.dialogs.turn_dialogs import ask_approval, ask_questions
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.line_prompt import Dismissed
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.panels.approval_preview import is_edit, proposal
from wolo.guard.intents import WriteIntent
from wolo.messages.message import UserPrompt
from wolo.messages.parts import ToolPart
from wolo.messages.terminal_text import escaped_line
from wolo.tools.background.background_jobs import BackgroundJobs, Job

T = TypeVar("T")

Asked = events.ApprovalAsked | events.QuestionsAsked | events.AttemptFailed


async def run_turn(conversation: Conversation, message: UserPrompt, terminal: Terminal) -> events.TurnEnded:
    """The returned `exit_code` also accounts for signals and for denied calls."""
    turn = _Turn(conversation, terminal)
    try:
        with terminal.signals.during(turn.stop):
            return await turn.run(message)
    finally:
        terminal.screen.status.stop()


async def ask_for_tasks(conversation: Conversation, terminal: Terminal) -> None:
    """Asks the user what background tasks wait for, between turns. Stopping it denies everything."""
    turn = _Turn(conversation, terminal)

    def stop() -> None:
        turn.stop()
        conversation.dismiss_requests()

    try:
        with terminal.signals.during(stop):
            await turn.follow(conversation.ask_again())
    finally:
        terminal.screen.status.stop()


async def run_work(conversation: Conversation, stream: AsyncIterator[events.Event], terminal: Terminal) -> None:
    """Shows the events of a command that takes a while; its notices are results, so repeated ones are shown again."""
    screen, is_stopping = terminal.screen, False

    def stop() -> None:
        nonlocal is_stopping
        is_stopping = True
        conversation.interrupt()

    try:
        with terminal.signals.during(stop):
            async for event in stream:
                if is_stopping:
                    conversation.interrupt()  # the first one came before there was anything to interrupt
                if isinstance(event, events.Noticed):
                    screen.show_text(event.text)
                else:
                    screen.show(event)
    finally:
        screen.status.stop()


def print_jobs_left(jobs: BackgroundJobs, running: Iterable[Job], screen: Screen) -> None:
    """Reports jobs that ended with their conversation, and detached ones that continue."""
    for job in running:
        screen.show_text(f"Ended with the conversation: {escaped_line(job.name)}.", "dim")
    for job in jobs.detached:
        screen.show_text(f"Still running: {escaped_line(job.name)}, pid {job.program.pid}; output: {job.spool.path}", "dim")


class EventBuffer:
    """Iterates over events, and holds them back while the user is asked: nothing is drawn into the typed answer."""

    def __init__(self, stream: AsyncIterator[events.Event]) -> None:
        self._events = stream
        self._held: deque[events.Event] = deque()
        self._next: asyncio.Task[events.Event] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> events.Event:
        if self._held:
            return self._held.popleft()
        if self._next is None:
            return await anext(self._events)
        upcoming, self._next = self._next, None
        return await upcoming

    async def while_asking(self, asked: Asked, asking: asyncio.Task[T]) -> T | None:
        """The answer; None if the question has expired. Raises what the question raises."""
        try:
            if any(_expires(event, asked) for event in self._held):
                return None
            while not asking.done():
                self._next = upcoming = self._next or asyncio.ensure_future(anext(self._events))
                await asyncio.wait({asking, upcoming}, return_when=asyncio.FIRST_COMPLETED)
                if upcoming.done() and not asking.done():
                    self._next = None
                    self._held.append(upcoming.result())
                    if _expires(self._held[-1], asked):
                        return None
            return asking.result()
        finally:
            asking.cancel()
            await asyncio.wait({asking})

    async def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
            await asyncio.wait({self._next})
        if isinstance(self._events, AsyncGenerator):
            await self._events.aclose()


def _expires(event: events.Event, asked: Asked) -> bool:
    """The event ends the question, for example because of a time limit. Other agents continue alongside."""
    if isinstance(asked, events.AttemptFailed):
        return not isinstance(event, events.Noticed)  # the wait is over
    match event:
        case events.TurnEnded():
            return True
        case events.ApprovalGiven() | events.QuestionsAnswered():
            return event.id == asked.id
        case events.TaskEnded():
            return event.part_id == asked.task
        case events.CallEnded():
            return not asked.task
        case _:
            return False


class _Turn:
    def __init__(self, conversation: Conversation, terminal: Terminal) -> None:
        self._conversation, self._terminal = conversation, terminal
        self._question: asyncio.Task[Any] | None = None
        self._is_stopping = False
        self._is_denied = False
        self._notifier = Notifier(conversation.info.ui, terminal.screen.dialog_host)
        self._calls: tuple[ToolPart, ...] = ()
        """Calls of the newest answer."""

    def stop(self) -> None:
        self._is_stopping = True
        self._conversation.interrupt()
        self._terminal.screen.status.describe("stopping, once more quits at once")
        if self._question is not None:
            self._question.cancel()

    async def run(self, message: UserPrompt) -> events.TurnEnded:
        ended = await self.follow(self._conversation.prompt(message))
        assert ended is not None  # the conversation promises a TurnEnded at the end of every turn
        if not self._is_stopping:
            words = "the turn is done" if ended.cause == "done" else f"the turn has ended: {ended.cause.replace('_', ' ')}"
            self._notifier.turn_ended(ended.duration_s, words)
        exit_code = self._terminal.signals.exit_status or ended.exit_code or (4 if self._is_denied else 0)
        return replace(ended, exit_code=exit_code)

    async def follow(self, stream: AsyncIterator[events.Event]) -> events.TurnEnded | None:
        """Shows the events, and asks the user where they say so."""
        ended: events.TurnEnded | None = None
        buffer = EventBuffer(stream)
        try:
            async for event in buffer:
                self._terminal.screen.show(event)
                if self._is_stopping:
                    self._conversation.interrupt()  # the first one came before there was anything to interrupt
                match event:
                    case events.AttemptFailed(is_limit=True):
                        await self._wait_for_limit(event, buffer)
                    case events.ApprovalAsked() | events.QuestionsAsked():
                        await self._answer(event, buffer)
                    case events.AnswerEnded():
                        self._calls = event.message.calls
                    case events.CallDenied():
                        self._is_denied = self._is_denied or event.part.outcome == "denied_by_rule"
                    case events.TurnEnded():
                        ended = event
        finally:
            await buffer.close()
        return ended

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Leaving the question ends the turn; a turn that stops ends the question."""
        try:
            yield
        except Dismissed:
            self._question = None
            self._terminal.stop()
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
        finally:
            self._question = None

    async def _wait_for_limit(self, limit: events.AttemptFailed, buffer: EventBuffer) -> None:
        """Until the limit ends, or the user has chosen something else."""
        from wolo.frontends.terminal.dialogs.limit_dialog import ask_at_limit  # noqa: PLC0415  # few turns meet a limit

        if self._is_stopping:
            return
        with self._asking():
            self._question = asking = asyncio.ensure_future(ask_at_limit(limit, self._terminal, self._conversation))
            if await buffer.while_asking(limit, asking) == "stop":
                self.stop()

    async def _answer(self, asked: events.ApprovalAsked | events.QuestionsAsked, buffer: EventBuffer) -> None:
        if self._is_stopping:
            return  # the question ends with the turn
        with self._asking():
            if isinstance(asked, events.ApprovalAsked):
                async with self._notifier.while_asking("your approval is needed"):
                    lines = await asyncio.to_thread(self._proposal, asked)
                    may_accept_edits = self._conversation.info.mode == "ask" and is_edit(asked) and not asked.only_once
                    self._question = asking = asyncio.ensure_future(
                        ask_approval(asked, lines, self._terminal, self._conversation, may_accept_edits=may_accept_edits)
                    )
                    if answer := await buffer.while_asking(asked, asking):
                        given = answer.approval
                        if answer.accepts_edits and (notice := self._conversation.set_mode("edit")):
                            self._terminal.screen.show_text(notice, "warning")
                        self._conversation.answer(
                            given.id, allowed=given.allowed, scope=given.scope, reason=given.reason, rule=given.rule
                        )
                    elif not asked.task:
                        self._terminal.screen.show_text(f"✗ no answer in time: {escaped_line(asked.part.tool)}", "dim")
            else:
                async with self._notifier.while_asking("the model asks a question"):
                    self._question = replying = asyncio.ensure_future(ask_questions(asked, self._terminal))
                    self._conversation.questions.answer(asked.id, await buffer.while_asking(asked, replying))

    def _proposal(self, asked: events.ApprovalAsked) -> list[Text]:
        written = [intent.path for intent in asked.intents if isinstance(intent, WriteIntent)]
        before = self._conversation.files.known_text(written[0]) if len(written) == 1 else None
        # Later calls of the same answer that will need an approval, as far as known
        ids = [part.id for part in self._calls]
        later = self._calls[ids.index(asked.part.id) + 1 :] if asked.part.id in ids else ()
        return proposal(
            asked, [part for part in later if part.metadata.get("verdict", {}).get("decision") == "ask"], before=before
        )
