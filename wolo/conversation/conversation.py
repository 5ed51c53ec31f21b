"""One live conversation: prompt it, answer it, interrupt it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from wolo.agent.cancellation import Cancellation
from wolo.agent.compaction.history_cut import Cut
from wolo.agent.compaction_run import CompactionPreview, ContextUsage
from wolo.agent.events import ApprovalAsked, ApprovalGiven, Event, JobEnded, JobStarted, Noticed, Scope
from wolo.agent.tool_execution import CommandRights
from wolo.conversation.dependencies import Dependencies
from wolo.conversation.permission_check import PermissionCheck
from wolo.conversation.recorder import Recorder
from wolo.conversation.resources.hooks import HookSet
from wolo.conversation.resources.persistence import UnloadedHistory
from wolo.conversation.resources.request_prefix import OPTIONS
from wolo.conversation.resources.startup import Change, ConversationInfo
from wolo.conversation.resources.user_files import UserFiles
from wolo.conversation.subagents.subagents import Subagents
from wolo.errors import UsageError
from wolo.formats.format import ThinkingLevel, ToolSpec
from wolo.mcp.servers import Servers
from wolo.messages.message import OPENED, Message, Usage, custom
from wolo.messages.parts import AnyPart
from wolo.models.capabilities import effective_level
from wolo.models.provider import Choice
from wolo.sessions.entries import MessageEntry, side_question_entry
from wolo.sessions.listing import SessionInfo
from wolo.sessions.loading import Node
from wolo.tools.background_jobs import Job, Jobs
from wolo.tools.todo import latest_todos
from wolo.tools.tool_values import Replies, TodoItem
from wolo.workspace.checkpoints.tracker import Watch


class Conversation:
    """Every event of a turn is on disk, as far as it must be, before a front end sees it."""

    def __init__(
        self,
        facts: ConversationInfo,
        joints: Dependencies,
        recorder: Recorder,
        history: tuple[Message, ...],
        *,
        attended: bool,
        reopen: Callable[[Conversation, Change], Awaitable[Conversation]],
        options: Mapping[str, Any],
    ) -> None:
        """`attended`: a person can be asked. `reopen` closes this one and opens what follows it. `options` are those of the
        run, kept with its first prompt."""
        self.facts = facts
        self.history = history
        self.asked_aside: tuple[Usage, ...] = ()
        """Usage of all side questions so far."""
        self._joints = joints
        self._reopen = reopen
        self._opened: dict[str, Any] = {
            "mode": facts.mode,
            "cwd": str(facts.cwd),
            "attended": attended,
            OPTIONS: dict(options),
        }
        """Kept with the first prompt, for whoever wants to see the same happen again."""
        self._approvals = joints.approvals
        self._questions = joints.questions
        self._agent = joints.agent
        self._recorder = recorder
        self._stream = joints.events
        self._events = joints.events.queue
        self._turn: asyncio.Task[None] | None = None
        self._by_hand = Cancellation()
        self._is_closed = False
        self._appended: list[Message] = []
        """Messages that joined the session while a turn ran."""
        self.between: Callable[[Event], None] | None = None
        """Hears of what happens between turns; without it that waits for the next one."""
        if joints.jobs is not None:
            joints.jobs.hear = self._hear_job

    @property
    def summed_up(self) -> tuple[Usage, ...]:
        """Usage of all summaries so far."""
        return self._stream.summed_up

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

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What the model is offered with the next request."""
        return self._agent.services.prefix.tools

    @property
    def thinking(self) -> ThinkingLevel | None:
        """How much the model was asked to think; None: nobody said."""
        return self._agent.services.asker.choice.thinking

    @property
    def thinking_used(self) -> ThinkingLevel | None:
        """What comes of that: the nearest level that the model knows."""
        choice = self._agent.services.asker.choice
        return effective_level(choice, choice.thinking) if choice.thinking else None

    def think(self, level: ThinkingLevel) -> ThinkingLevel:
        """From the next request on. Returns the level that counts: the nearest one that the model knows."""
        self._agent.services.asker.think(level)
        return effective_level(self._agent.services.asker.choice, level)

    @property
    def choice(self) -> Choice:
        """The model that answers now, and how it is reached."""
        return self._agent.services.asker.choice

    def set_mode(self, name: str) -> str:
        """From the next call on, also within a turn; walls follow. Returns a notice where it is not that mode which holds now.

        Raises UsageError for a mode that is not there.
        """
        entered = self._joints.enter_mode(name)
        self.facts = replace(self.facts, mode=entered.name, sandbox=entered.sandbox)
        if self._opened:
            self._opened["mode"] = entered.name
        return entered.notice

    @property
    def cut(self) -> Cut:
        """What of the history is not sent."""
        return self._agent.services.compactor.cut

    def context_usage(self) -> ContextUsage:
        """What the next request would be made of."""
        return self._agent.context_usage(self.history)

    def preview(self) -> CompactionPreview:
        """What `compact` would do now; nobody is asked."""
        return self._agent.preview(self.history)

    def prompt(self, message: Message) -> AsyncIterator[Event]:
        """One turn, from the notices that are due to its `TurnEnded`. Leaving the iteration early interrupts the turn."""
        return self._play(partial(self._run, message))

    def compact(self, focus: str = "") -> AsyncIterator[Event]:
        """Makes room in the window now: from the notices that are due to `Compacted`, or a `Noticed` that says why not."""
        return self._play(partial(self._agent.compact, self.history, focus))

    def uncompact(self) -> AsyncIterator[Event]:
        """Takes back what fits of what was left out: the same events."""
        return self._play(partial(self._agent.uncompact, self.history))

    def run_user_command(self, command: str, rights: CommandRights = "person") -> AsyncIterator[Event]:
        """A command of the person's own, which nobody is asked about: from its `CallStarted` to its `CallEnded`.

        Nothing of it is kept, or heard by the model, unless a prompt says so.
        """
        self._by_hand = Cancellation()
        return self._play(partial(self._joints.run_user_command, command, rights, self._by_hand, self._stream.show))

    async def _play(self, work: Callable[[], Coroutine[None, None, None]]) -> AsyncIterator[Event]:
        for text in self.facts.notices:
            yield Noticed(text=text, level="warning")
        self.facts = replace(self.facts, notices=())
        self._turn = asyncio.create_task(self._do(work))
        try:
            while (event := await self._events.get()) is not None:
                yield event
            await self._turn
        finally:
            self.interrupt()
            with suppress(asyncio.CancelledError):
                await self._turn
            self._turn = None

    async def aside(self, question: str) -> str:
        """What the model says to a question that does not become part of the conversation; also while a turn runs.

        Raises ProviderError, and UsageError where it cannot be asked.
        """
        answer = await self._agent.aside(self.history, question)
        usage = answer.usage or Usage()
        self.asked_aside += (usage,)
        if self.history or self._turn is not None:
            await self._recorder.keep(side_question_entry(usage))
        return answer.text

    async def append_custom_message(self, custom_type: str, text: str, *more: AnyPart) -> None:
        """Keeps a message that stays in the session and is never sent; also while a turn runs."""
        kept = self._joints.secrets.hide_message(custom(custom_type, text, *more))
        await self._recorder.keep(MessageEntry(message=kept))
        if self._turn is None:
            self.history += (kept,)
        else:
            self._appended.append(kept)

    def attaching(self, path: Path) -> None:
        """Lets a file become part of a prompt, once its secrets are known. Raises UsageError where a rule denies reading it."""
        if rule := self.bench.judge.rule_against_reading(path):
            raise UsageError(
                f"{path} cannot be attached: reading it is denied by the rule {rule} ({rule.source}).",
                hint="Leave the file out of the prompt, or change the rule.",
            )
        self._joints.secrets.scan_file(path)

    def interrupt(self) -> None:
        """Stops the turn where it stands; its `TurnEnded` still comes. Does nothing between turns."""
        self._agent.interrupt()
        self._by_hand.cancel("interrupted")

    def steer(self, message: Message) -> None:
        """Joins the turn that runs, once the running call has ended; the calls behind that one are not run."""
        self._agent.services.steering.add(self._joints.secrets.hide_message(message))

    @property
    def steered(self) -> tuple[Message, ...]:
        """What `steer` was given and the model has not heard yet."""
        return self._agent.services.steering.waiting

    def withdraw(self, message_id: str) -> bool:
        """Takes a `steer` back; False when it was delivered already."""
        return self._agent.services.steering.withdraw(message_id)

    def unheard(self) -> list[Message]:
        """What `steer` was given and the turn ended without; it is taken out."""
        return self._agent.services.steering.take_all()

    def answer(self, id: str, *, allowed: bool, scope: Scope = "once", reason: str = "", rule: str = "") -> None:
        """A person's word on the `ApprovalAsked` of that id; a second word on the same one is ignored.

        `rule` stands for the one that was shown. Raises UsageError when it has a `complaint`.
        """
        self._approvals.answer(ApprovalGiven(id=id, allowed=allowed, scope=scope, reason=reason, rule=rule))

    def complaint(self, asked: ApprovalAsked, rule: str) -> str:
        """What is wrong with a rule that a person wrote instead of the one shown; empty when it may be kept."""
        return self._approvals.complaint(asked, rule)

    def known_text(self, path: Path) -> str | None:
        """What a file holds, without secrets; None where the session does not know it as it is now: nothing may replace it then.

        May block.
        """
        return self._joints.known_text(path)

    def answer_questions(self, id: str, replies: Replies | None) -> None:
        """A person's words on the `QuestionsAsked` of that id, one reply to each question; None: no answer to any of them.

        A second word on the same ones is ignored.
        """
        self._questions.answer(id, replies)

    def kill(self) -> None:
        """Ends every process this conversation started, at once; for a process that is about to exit."""
        self._joints.kill()

    def unread(self) -> UnloadedHistory:
        """What of a huge session is not in `history`; takes a while where there is such a thing."""
        return self._joints.unread()

    def todos(self) -> tuple[TodoItem, ...]:
        """The todo list as it stands, also within a turn; takes a while where a huge session was not read to its beginning."""
        items = latest_todos(self._agent.services.history.messages or self.history)
        if items is None:
            items = latest_todos(self.unread().messages)
        return items or ()

    @property
    def jobs(self) -> Jobs | None:
        """The commands in the background, also when the conversation has been closed; None: there can be none."""
        return self._joints.jobs

    @property
    def subagents(self) -> Subagents | None:
        """The agents that tasks are given to, and those at work."""
        return self._joints.subagents

    @property
    def library(self) -> UserFiles:
        """Skills and commands that were written for here."""
        return self._joints.library

    def sessions(self) -> list[SessionInfo]:
        """Of this directory, newest first."""
        return self._joints.sessions()

    def tree(self) -> tuple[list[Node], int]:
        """All entries of this session, and the place of the last one on the way; nothing where it is not kept."""
        return self._joints.tree()

    def label(self, message_id: str, label: str) -> None:
        """Gives a message a name of the person's own; an empty one takes it away."""
        self._joints.label(message_id, label)

    def entitle(self, title: str) -> None:
        """Gives this session another title. Raises UsageError where none is kept."""
        if not self.facts.keeps_session:
            raise UsageError("This session is not kept, so it has no title.")
        self._joints.entitle(title)

    @property
    def bench(self) -> PermissionCheck:
        """The rules that are in force, and the judge that calls are held to."""
        return self._joints.bench

    @property
    def servers(self) -> Servers:
        """The MCP servers whose tools the model has."""
        return self._joints.servers

    @property
    def hooks(self) -> tuple[HookSet, ...]:
        """Commands that run at events, also those that may not."""
        return self._joints.hooks

    @property
    def watch(self) -> Watch | None:
        """Knows what was done to files."""
        return self._joints.watch

    @property
    def file_locks(self) -> Path | None:
        """Where the locks of single files lie."""
        return self._joints.file_locks

    async def reopen(self, change: Change) -> Conversation:
        """As `Succession.reopen`."""
        return await self._reopen(self, change)

    async def close(self) -> None:
        """Does nothing the second time."""
        if self._is_closed:
            return
        self._is_closed = True
        self.interrupt()
        if self._turn is not None:
            await asyncio.wait({self._turn})
        await self._joints.close()

    def _hear_job(self, job: Job) -> None:
        event = JobStarted.of(job) if job.ending is None else JobEnded.of(job, job.ending)
        if self._turn is None and self.between is not None:
            self.between(event)
        else:
            self._events.put_nowait(event)

    async def _run(self, message: Message) -> None:
        opened, self._opened = self._opened, {}
        if opened:
            message = replace(message, metadata={**message.metadata, OPENED: opened})
        message = self._joints.secrets.hide_message(message)
        turn = await self._agent.run(self.history, message)
        appended, self._appended = self._appended, []
        self.history = (*turn.messages, *appended)
        if not turn.new:  # it was kept back: the next one is the first
            self._opened = opened

    async def _do(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        try:
            await work()
        finally:
            self._events.put_nowait(None)
