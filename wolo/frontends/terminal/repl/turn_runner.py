"""One turn in the terminal: its events on the screen, its questions answered, its signals heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from msgspec.structs import replace
from rich.text import Text

from wolo.agent.events import AnswerEnded, ApprovalAsked, CallDenied, Event, Noticed, QuestionsAsked, TurnEnded
from wolo.conversation.conversation import Conversation
from wolo.frontends.terminal.dialogs.ask_approval import ask
from wolo.frontends.terminal.dialogs.ask_questions import ask_questions
from wolo.frontends.terminal.dialogs.notifications import Bell
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.line_prompt import Dismissed
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.panels.approval_preview import is_edit, proposal
from wolo.frontends.terminal.repl.event_buffer import Coming
from wolo.guard.intents import WriteIntent
from wolo.messages.message import Message
from wolo.messages.parts import ToolPart
from wolo.messages.terminal_text import escaped_line
from wolo.tools.background_jobs import Job, Jobs


async def run_turn(conversation: Conversation, message: Message, terminal: Terminal) -> TurnEnded:
    """`exit_code` of what is returned is the whole truth: signals and calls that nobody could allow are in it."""
    turn = _Turn(conversation, terminal)
    try:
        with terminal.signals.during(turn.stop):
            return await turn.play(message)
    finally:
        terminal.screen.status.stop()


async def run_work(conversation: Conversation, events: AsyncIterator[Event], terminal: Terminal) -> None:
    """What a command does that takes a while. Its notices answer the person: they are said as often as they come."""
    screen, is_stopping = terminal.screen, False

    def stop() -> None:
        nonlocal is_stopping
        is_stopping = True
        conversation.interrupt()

    try:
        with terminal.signals.during(stop):
            async for event in events:
                if is_stopping:
                    conversation.interrupt()  # said before there was anything to interrupt
                if isinstance(event, Noticed):
                    screen.say(event.text)
                else:
                    screen.show(event)
    finally:
        screen.status.stop()


def tell_jobs(jobs: Jobs, running: Iterable[Job], screen: Screen) -> None:
    """Those that ran have ended because their conversation has, but for those that a person detached."""
    for job in running:
        screen.say(f"Ended with the conversation: {escaped_line(job.name)}.", "dim")
    for job in jobs.detached:
        screen.say(f"Goes on: {escaped_line(job.name)}, pid {job.program.pid}; what it prints: {job.spool.path}", "dim")


class _Turn:
    def __init__(self, conversation: Conversation, terminal: Terminal) -> None:
        self._conversation = conversation
        self._terminal = terminal
        self._question: asyncio.Task[Any] | None = None
        self._is_stopping = False
        self._bell = Bell(conversation.facts.ui, terminal.screen.stage)
        self._calls: tuple[ToolPart, ...] = ()
        """Of the newest answer."""

    def stop(self) -> None:
        self._is_stopping = True
        self._conversation.interrupt()
        self._terminal.screen.status.say("stopping, once more ends it at once")
        if self._question is not None:
            self._question.cancel()

    async def play(self, message: Message) -> TurnEnded:
        ended: TurnEnded | None = None
        is_denied = False
        coming = Coming(self._conversation.prompt(message))
        try:
            async for event in coming:
                self._terminal.screen.show(event)
                if self._is_stopping:
                    self._conversation.interrupt()  # said before there was anything to interrupt
                if isinstance(event, ApprovalAsked | QuestionsAsked):
                    await self._answer(event, coming)
                elif isinstance(event, AnswerEnded):
                    self._calls = event.message.calls
                elif isinstance(event, CallDenied):
                    is_denied = is_denied or event.part.outcome == "denied_by_rule"
                elif isinstance(event, TurnEnded):
                    ended = event
        finally:
            await coming.close()
        assert ended is not None  # the conversation promises a TurnEnded at the end of every turn
        if not self._is_stopping:
            words = "the turn is done" if ended.cause == "done" else f"the turn has ended: {ended.cause.replace('_', ' ')}"
            self._bell.turn_ended(ended.duration_s, words)
        exit_code = self._terminal.signals.exit_status or ended.exit_code or (4 if is_denied else 0)
        return replace(ended, exit_code=exit_code)

    async def _answer(self, asked: ApprovalAsked | QuestionsAsked, coming: Coming) -> None:
        if self._is_stopping:
            return  # the question ends with the turn
        try:
            if isinstance(asked, ApprovalAsked):
                async with self._bell.while_asking("your approval is needed"):
                    await self._approve(asked, coming)
            else:
                async with self._bell.while_asking("a question waits for you"):
                    await self._reply(asked, coming)
        except Dismissed:
            self._question = None
            self._terminal.stop()
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
        finally:
            self._question = None

    async def _approve(self, asked: ApprovalAsked, coming: Coming) -> None:
        lines = await asyncio.to_thread(self._proposal, asked)
        self._question = asking = asyncio.ensure_future(
            ask(
                asked,
                lines,
                self._terminal.screen,
                self._terminal.keyboard,
                self._conversation.complaint,
                may_accept_edits=self._conversation.mode == "ask" and is_edit(asked) and not asked.only_once,
            )
        )
        if answer := await coming.while_asking(asked, asking):
            given = answer.given
            if answer.accepts_edits and (notice := self._conversation.set_mode("edit")):
                self._terminal.screen.say(notice, "warning")
            self._conversation.answer(given.id, allowed=given.allowed, scope=given.scope, reason=given.reason, rule=given.rule)
        else:
            self._terminal.screen.say(f"✗ nobody answered in time: {escaped_line(asked.part.tool)}", "dim")

    def _proposal(self, asked: ApprovalAsked) -> list[Text]:
        written = [intent.path for intent in asked.intents if isinstance(intent, WriteIntent)]
        before = self._conversation.known_text(written[0]) if len(written) == 1 else None
        return proposal(asked, self._waiting(asked), before=before)

    def _waiting(self, asked: ApprovalAsked) -> list[ToolPart]:
        """Calls of the same answer that are going to be asked after this one, as far as that is known."""
        ids = [part.id for part in self._calls]
        later = self._calls[ids.index(asked.part.id) + 1 :] if asked.part.id in ids else ()
        return [part for part in later if part.metadata.get("verdict", {}).get("decision") == "ask"]

    async def _reply(self, asked: QuestionsAsked, coming: Coming) -> None:
        self._question = asking = asyncio.ensure_future(ask_questions(asked, self._terminal.screen, self._terminal.keyboard))
        self._conversation.answer_questions(asked.id, await coming.while_asking(asked, asking))
