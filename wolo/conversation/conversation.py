"""A live conversation: prompt it, answer it, interrupt it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from wolo.agent.agent import AgentLoop
from wolo.agent.cancellation import Cancellation, Cancelled
from wolo.agent.events import ApprovalGiven, Event, JobEnded, JobStarted, ModeChanged, Noticed, Scope
from wolo.config.schema import Ui
from wolo.conversation.local_context import LocalContext
from wolo.conversation.pending_requests import PendingApprovals, PendingQuestions
from wolo.conversation.permission_check import PermissionCheck
from wolo.conversation.recorder import EventStream, Recorder, SessionAccess
from wolo.conversation.resources.conversation_hooks import HookSet
from wolo.conversation.resources.request_prefix import OPTIONS, InstructionReader
from wolo.conversation.resources.startup import ConversationChange
from wolo.conversation.resources.tool_environment import ConversationFiles, SandboxSetup
from wolo.conversation.resources.user_files import UserFiles
from wolo.conversation.subagents.subagents import Subagents
from wolo.errors import WoloError
from wolo.formats.format import ThinkingLevel, ToolSpec
from wolo.guard.modes import MODES
from wolo.mcp.servers import Servers
from wolo.messages.message import OPENED, RESOURCES, WOKEN, Message, Usage, UserPrompt, custom
from wolo.messages.parts import AnyPart
from wolo.models.capabilities import effective_level
from wolo.models.limit_wait import LimitWait
from wolo.models.provider import ModelChoice
from wolo.sessions.entries import GOAL_ENTRY, STEERING, CustomEntry, MessageEntry, SettingEntry, side_question_entry
from wolo.tools.tool import ToolServices
from wolo.tools.tool_values import AskQuestions, TodoItem

if TYPE_CHECKING:
    from wolo.agent.compaction_run import CompactionPreview, ContextUsage
    from wolo.agent.goal import Goal, GoalPolicy
    from wolo.conversation.running_extensions import Extensions
    from wolo.conversation.telemetry import Telemetry
    from wolo.conversation.user_command import CommandRights

log = logging.getLogger(__name__)
P = ParamSpec("P")
_TITLE_S = 2.0
"""Time to wait for a title at the end of the conversation."""


class ConversationInfo(Struct, frozen=True, kw_only=True):
    """Facts that front ends show; only `set_mode` changes some during a conversation."""

    session_id: str
    model: str
    """`provider/model`."""
    cwd: Path
    root: Path
    """The workspace: the repository of `cwd`, else `cwd`."""
    mode: str
    sandbox: str = ""
    """The backend; empty: commands are not sandboxed."""
    tool_names: tuple[str, ...]
    ui: Ui = Ui()
    saves_session: bool = True
    started_in: str = ""
    """The directory of the resumed session; empty for a new one."""
    notices: tuple[str, ...] = ()
    """Shown once, with the first prompt."""
    mentions: bool = True
    """`@` in a prompt attaches files and asks for agents; otherwise all of it is text."""


class ConversationParts(Struct, frozen=True, kw_only=True):
    """The parts of one conversation; `factory.py` wires them."""

    agent: AgentLoop
    services: ToolServices
    events: EventStream
    recorder: Recorder
    approvals: PendingApprovals
    questions: PendingQuestions
    permissions: PermissionCheck
    session: SessionAccess
    files: ConversationFiles
    sandbox: SandboxSetup
    user_files: UserFiles
    servers: Servers
    hooks: tuple[HookSet, ...]
    """Including those that may not run."""
    subagents: Subagents
    instructions: InstructionReader
    extensions: Extensions | None = None
    """None: there are none."""
    local_context: LocalContext | None = None
    telemetry: Telemetry | None = None
    limit_wait: LimitWait | None = None


class Successor(Protocol):
    """Ends a conversation and opens the one that follows it."""

    async def close(self) -> None: ...

    def abandon(self) -> None: ...

    async def reopen(self, conversation: Conversation, change: ConversationChange) -> Conversation: ...


class Conversation:
    """Runs one turn at a time. Every event is on disk, as far as it must be, before a front end gets it."""

    def __init__(
        self,
        info: ConversationInfo,
        parts: ConversationParts,
        successor: Successor,
        history: tuple[Message, ...],
        *,
        attended: bool,
        options: Mapping[str, Any],
        side_question_usage: tuple[Usage, ...] = (),
    ) -> None:
        """`attended`: a user can be asked. `options` of the run are saved with its first prompt."""
        self.info, self.history, self.side_question_usage = info, history, side_question_usage
        self.events, self.session, self.files = parts.events, parts.session, parts.files
        self._before_turn = parts.session.stored.num_before_turn
        self.approvals, self.questions, self.permissions = parts.approvals, parts.questions, parts.permissions
        self.user_files, self.servers, self.hooks, self.subagents = parts.user_files, parts.servers, parts.hooks, parts.subagents
        self.jobs = parts.services.shell.jobs
        """Background commands, also after the conversation was closed; None: there can be none."""
        self.steering = parts.agent.services.steering
        """Messages that `steer` got and the model has not received yet."""
        self.agent, self.instructions, self.extensions = parts.agent, parts.instructions, parts.extensions
        self._parts = parts
        self._secrets = parts.services.secrets
        self._successor = successor
        self._earlier_todos: tuple[TodoItem, ...] | None = None
        """The task list before `history`; None: not looked up."""
        self._opened: dict[str, Any] = {"mode": info.mode, "cwd": str(info.cwd), "attended": attended, OPTIONS: dict(options)}
        """Saved with the first prompt; a replay needs it."""
        self._attended = attended
        self._turn: asyncio.Task[None] | None = None
        self._titling: asyncio.Task[None] | None = None
        self._user_command = Cancellation()
        self._is_closed = False
        self._goal_policy: GoalPolicy | None = None
        self._appended: list[Message] = []
        """Added to the session during the turn."""
        if self.jobs is not None:
            self.jobs.on_change = lambda job: self.events.pass_on(
                JobStarted.of(job) if job.ending is None else JobEnded.of(job, job.ending)
            )
        assert parts.services.mode is not None  # a conversation always has one
        self._mode = parts.services.mode
        self._mode.change = self._change_mode

    @property
    def choice(self) -> ModelChoice:
        """The current model and its connection."""
        return self.agent.services.asker.choice

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self.agent.services.prefix.tools

    @property
    def mentionable_agents(self) -> tuple[str, ...]:
        """Agents that `@NAME` in a prompt gives a task to; none if the model cannot delegate."""
        can_delegate = "task" in self.info.tool_names
        return tuple(offer.name for offer in self.subagents.agents.offers) if can_delegate else ()

    @property
    def thinking_used(self) -> ThinkingLevel | None:
        """The supported level nearest to `choice.thinking`; None: provider default."""
        return effective_level(self.choice, self.choice.thinking) if self.choice.thinking else None

    def think(self, level: ThinkingLevel) -> ThinkingLevel:
        """From the next request on. Returns the nearest supported level."""
        self.agent.services.asker.think(level)
        return effective_level(self.choice, level)

    @property
    def usage_beside_turn(self) -> tuple[Sequence[Usage], Sequence[Usage]]:
        """Usage of compactions and of side questions since the newest turn began."""
        summaries, asides = self._before_turn
        return self.events.summary_usage[summaries:], self.side_question_usage[asides:]

    @property
    def mode_in_force(self) -> str:
        """Stricter than `info.mode` where the definition of the agent limits it."""
        return self._mode.in_force

    def set_mode(self, name: str) -> str:
        """From the next call on, even during a turn; the sandbox follows. Returns a notice if another mode applies.

        Raises UsageError for an unknown mode.
        """
        plan = self._parts.sandbox.enter(name)
        self._parts.recorder.change(SettingEntry(name="mode", value=plan.mode.name))
        self._mode.enter(plan.mode.name)
        self.info = replace(self.info, mode=plan.mode.name, sandbox=plan.backend)
        if self._opened:
            self._opened["mode"] = plan.mode.name
        if (limit := self._mode.in_force) != plan.mode.name:
            return f"The definition of this agent limits it to mode {limit}: {MODES[limit].about}."
        return plan.notice

    def _change_mode(self, name: str, plan_file: str) -> None:
        """For the model's plan, which the user has approved."""
        notice = self.set_mode(self._parts.sandbox.config.settings.managed.lower_mode(name))
        self.events.pass_on(ModeChanged(mode=self.info.mode, notice=notice, plan_file=plan_file))

    def give_way(self, path: str) -> None:
        """Call before a file of the workspace is written: what runs in the sandbox is ended if `path` is protected."""
        if (walls := self._parts.sandbox.sandbox.made) is not None:
            walls.give_way(path)

    def context_usage(self) -> ContextUsage:
        """The content of the next request, by source."""
        return self.agent.context_usage(self.history)

    def preview(self) -> CompactionPreview:
        """The effect that `compact` would have; changes nothing."""
        return self.agent.preview(self.history)

    def prompt(self, message: UserPrompt) -> AsyncIterator[Event]:
        """Runs a turn, from pending notices to `TurnEnded`. Closing the iterator early interrupts the turn."""
        return self._stream(self._run_turn, message)

    def compact(self, focus: str = "") -> AsyncIterator[Event]:
        """Ends with `Compacted`, or with a `Noticed` that says why not."""
        return self._stream(self.agent.compact, self.history, focus)

    def uncompact(self) -> AsyncIterator[Event]:
        """Restores compacted messages that fit: the same events."""
        return self._stream(self._uncompact)

    def run_user_command(self, command: str, rights: CommandRights = "person") -> AsyncIterator[Event]:
        """Runs the user's own command without asking, from `CallStarted` to `CallEnded`. It is neither saved nor sent."""
        from wolo.conversation.user_command import run_user_command  # noqa: PLC0415  # not needed for a prompt

        cancellation = self._user_command = Cancellation()
        return self._stream(run_user_command, command, rights, self._parts.services, cancellation, self.events.show)

    def run_dialog(self, work: Callable[[AskQuestions], Coroutine[Any, Any, None]]) -> AsyncIterator[Event] | None:
        """Runs a command that asks the user; its questions are among the events. None: nobody can answer."""
        if (ask := self._parts.services.ask_user) is None:
            return None
        cancellation = self._user_command = Cancellation()

        async def run() -> None:
            with suppress(Cancelled):
                await cancellation.run(work(ask))

        return self._stream(run)

    async def _stream(
        self, work: Callable[P, Coroutine[Any, Any, None]], *args: P.args, **options: P.kwargs
    ) -> AsyncIterator[Event]:
        """Yields pending notices, then the events of the work while it runs. Raises what the work raises."""
        for text in self.info.notices:
            yield Noticed(text=text, level="warning")
        self.info = replace(self.info, notices=())
        self._turn = asyncio.create_task(self._run_to_end(work(*args, **options)))
        self.events.is_in_turn = True
        try:
            while (event := await self.events.queue.get()) is not None:
                yield event
            await self._turn
        finally:
            self.interrupt()
            with suppress(asyncio.CancelledError):
                await self._turn
            self._turn, self.events.is_in_turn = None, False

    async def _run_to_end(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            self.events.queue.put_nowait(None)

    async def aside(self, question: str) -> str:
        """Answers a side question, even during a turn; the conversation does not change.

        Raises ProviderError, and UsageError if the model cannot be asked.
        """
        answer = await self.agent.aside(self.history, question)
        usage = answer.usage or Usage()
        self.side_question_usage += (usage,)
        if self.history or self._turn is not None:
            await self._parts.recorder.save(side_question_entry(usage))
        return answer.text

    async def append_custom_message(self, custom_type: str, text: str, *more: AnyPart) -> None:
        """Saves a message that is never sent to the model, even during a turn."""
        message = self._secrets.hide_message(custom(custom_type, text, *more))
        await self._parts.recorder.save(MessageEntry(message=message))
        if self._turn is None:
            self.history += (message,)
        else:
            self._appended.append(message)

    async def continue_from(self, messages: tuple[Message, ...]) -> None:
        """Saves messages of another conversation as the beginning of this one, which must be empty."""
        messages = tuple(map(self._secrets.hide_message, messages))
        await self._parts.recorder.save(*(MessageEntry(message=message) for message in messages))
        self.history = messages

    def interrupt(self) -> None:
        """Stops the turn; its `TurnEnded` still comes. Does nothing between turns."""
        self.agent.interrupt()
        self._user_command.cancel("interrupted")

    def resume_now(self, model: str = "") -> bool:
        """Ends the wait for a limit; `model` answers until the limit ends. False: nothing waits for one.

        Raises UsageError if that model cannot be used.
        """
        if self._parts.limit_wait is None or not self._parts.limit_wait.is_waiting:
            return False
        choice = None
        if model:
            from wolo.conversation.resources.model_selection import choose_other  # noqa: PLC0415  # few turns meet a limit

            choice = choose_other(self.permissions.config, self.info.cwd, self.choice, model)
        self._parts.limit_wait.end(choice)
        return True

    def steer(self, message: UserPrompt) -> None:
        """Sends a message into the running turn after the current call; calls after that one are skipped."""
        self._on_user_words()
        self.steering.add(self._secrets.hide_message(message))

    def _on_user_words(self) -> None:
        """Refused calls may be asked for again, and lines of jobs may start turns again."""
        self.permissions.judge.grants.refused.clear()
        if self.jobs is not None and self.jobs.wakes.num_in_a_row:
            self.jobs.wakes.reset()

    def wake_with(self, listener: Callable[[], None]) -> None:
        """`listener` gets notice of lines that the model watches for, if the settings let them start turns."""
        if self.jobs is not None and self.permissions.config.settings.shell.wake:
            self.jobs.wakes.listener = listener

    def wake_prompt(self) -> UserPrompt | None:
        """The lines that wait, as the prompt of a turn; None: there are none."""
        return self.jobs.wakes.take() if self.jobs is not None else None

    def look_for_lines(self) -> None:
        """Call it when nothing runs any more."""
        if self.jobs is not None:
            self.jobs.wakes.look()

    async def save_steering(self, message: Message) -> None:
        """Saves words for `steer`, so that they can be accepted before the model gets them. Raises SessionError."""
        text = self._secrets.hide_message(message).text
        await self._parts.recorder.save(CustomEntry(custom_type=STEERING, data={"text": text}))

    def dismiss(self, id: str) -> None:
        """Closes the `ApprovalAsked` of that id without a decision: its call does not run, and the next one asks again."""
        self.approvals.answer(ApprovalGiven(id=id, allowed=False, is_dismissed=True))

    def answer(
        self,
        id: str,
        *,
        allowed: bool,
        scope: Scope = "once",
        reason: str = "",
        rule: str = "",
        input: dict[str, Any] | None = None,
    ) -> None:
        """Answers the `ApprovalAsked` of that id. `rule` replaces the one shown; raises UsageError if it cannot be saved.

        A denial holds until the next prompt; with the scope `always` it saves the rule `denial`. `input`: run the call with
        these arguments.
        """
        self.approvals.answer(ApprovalGiven(id=id, allowed=allowed, scope=scope, reason=reason, rule=rule, input=input))

    def todos(self) -> tuple[TodoItem, ...]:
        """The current task list, even during a turn. May block to load the start of a large session."""
        from wolo.tools.todo import latest_todos  # noqa: PLC0415  # not needed for a prompt

        items = latest_todos(self.agent.services.history.messages or self.history)
        if items is None:
            if self._earlier_todos is None:
                self._earlier_todos = latest_todos(self.session.stored.read_unloaded().messages) or ()
            items = self._earlier_todos
        return items

    @property
    def is_in_turn(self) -> bool:
        return self.events.is_in_turn

    @property
    def goal(self) -> Goal | None:
        """The goal of the session, with what was spent so far; None: there is none."""
        policy = self._goal_policy
        return None if policy is None or policy.goal.status == "cleared" else policy.current

    async def set_goal(self, goal: Goal) -> None:
        """Works towards it from the next request on, also during a turn. Raises UsageError and SessionError."""
        from wolo.conversation.goals import check_goal  # noqa: PLC0415  # most sessions have no goal

        services = self.agent.services
        check_goal(goal, services.asker, services.open_small)
        await self.hold_to(goal).change(goal)

    def hold_to(self, goal: Goal) -> GoalPolicy:
        """The policy of the goal, which a resumed session had before."""
        from wolo.conversation.goals import make_policy  # noqa: PLC0415  # as above

        if self._goal_policy is None:
            parts, services = self._parts, self.agent.services
            self._goal_policy = services.goals.policy = make_policy(
                goal, services, parts.services, parts.permissions, save=self._save_goal, attended=self._attended
            )
        return self._goal_policy

    async def _save_goal(self, goal: Goal, usage: Usage | None) -> None:
        """`usage` is that of the judging model."""
        entries = [CustomEntry(custom_type=GOAL_ENTRY, data=to_builtins(goal))]
        if usage is not None:
            self.side_question_usage += (usage,)
            entries.append(side_question_entry(usage))
        await self._parts.recorder.save(*entries)

    def listen_while_idle(self, listener: Callable[[Event], None]) -> None:
        """`listener` gets events between turns; without one they wait for the next turn, and turns wait for background tasks."""
        self.events.idle_listener = listener
        self.subagents.holds_turn = False

    @property
    def is_asking(self) -> bool:
        """An approval or a question waits for the user."""
        return bool(self.approvals.waiting or self.questions.waiting)

    def ask_again(self) -> AsyncIterator[Event]:
        """Between turns: the approvals and questions of background tasks, until the user has answered all."""
        return self._stream(self._ask_again)

    def dismiss_requests(self) -> None:
        """Closes all pending approvals and skips all pending questions."""
        for id in tuple(self.approvals.waiting):
            self.dismiss(id)
        for id in tuple(self.questions.waiting):
            self.questions.answer(id, None)

    def kill(self) -> None:
        """Ends all processes at once, before wolo exits."""
        self._parts.services.shell.processes.close_all()
        self.subagents.kill()
        self.servers.kill()
        if self.extensions is not None:
            self.extensions.kill()

    async def reopen(self, change: ConversationChange) -> Conversation:
        """Closes this conversation and opens the next one.

        Raises WoloError, and this one continues; HandoverFailed, and another one continues in its place.
        """
        return await self._successor.reopen(self, change)

    async def close(self) -> None:
        """Does nothing the second time."""
        if self._is_closed:
            return
        self._is_closed = True
        self.events.idle_listener = None
        self.interrupt()
        try:
            if self._titling is not None:
                await asyncio.wait({self._titling}, timeout=_TITLE_S)
                self._titling.cancel()
                await asyncio.wait({self._titling})
            if self._turn is not None:
                await asyncio.wait({self._turn})
            await self._successor.close()
        except BaseException:
            if self._turn is None or self._turn.done():
                self._successor.abandon()
            else:  # it still saves how it ends
                self._turn.cancel()
                self._turn.add_done_callback(lambda _: self._successor.abandon())
            raise

    def abandon(self) -> None:
        """Ends processes and releases files and locks without an event loop, which may be closed. Never raises."""
        if not self._is_closed:
            self._is_closed = True
            self.events.idle_listener = None
            self.subagents.kill()
            self._successor.abandon()

    async def _ask_again(self) -> None:
        """Emits the requests of background tasks until the user has answered all."""
        asked: set[str] = set()
        while self.is_asking:
            requests: dict[str, Event] = {id: request for id, (request, _) in self.approvals.waiting.items()}
            requests |= {id: request for id, (request, _) in self.questions.waiting.items()}
            for id in requests.keys() - asked:
                self.events.queue.put_nowait(requests[id])
            asked |= requests.keys()
            pending: set[asyncio.Future[Any]] = {future for _, future in self.approvals.waiting.values()}
            pending |= {future for _, future in self.questions.waiting.values()}
            await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # lets them be removed

    async def _uncompact(self) -> None:
        self.history = (*await asyncio.to_thread(self.session.stored.load_rest), *self.history)
        await self.agent.uncompact(self.history)

    async def _run_turn(self, message: Message) -> None:
        if message.is_from_user:
            self._on_user_words()
        if RESOURCES in message.metadata:
            message = await self._with_resources(message)
        if self._parts.local_context is not None:
            sent = self.agent.services.compactor.apply_cut(self.history)
            message = await self._parts.local_context.add_to(message, sent, self.permissions.judge.readable)
        opened, self._opened = self._opened, {}
        if opened:
            message = replace(message, metadata={**message.metadata, OPENED: opened})
        is_first = not self.history
        self._before_turn = (len(self.events.summary_usage), len(self.side_question_usage))
        turn = await self.agent.run(self.history, self._secrets.hide_message(message))
        if WOKEN in message.metadata and turn.ended.cause != "done" and self.jobs is not None:
            self.jobs.wakes.pause()
        appended, self._appended = self._appended, []
        self.history = (*turn.messages, *appended)
        if not turn.new:  # a hook blocked it, so the next prompt is the first
            self._opened = opened
        elif is_first and self._attended and self.info.saves_session and self.agent.services.open_small:
            self._titling = asyncio.create_task(self._write_title(message.text))

    async def _write_title(self, prompt: str) -> None:
        """The title stays the prompt's beginning when the small model does not write one."""
        from wolo.agent.side_question import ask_for_title  # noqa: PLC0415  # only where a small model is set

        assert self.agent.services.open_small is not None
        try:
            title, usage = await ask_for_title(self.agent.services.open_small, self.info.session_id, prompt)
            self.agent.services.account.use(usage)
            self.side_question_usage += (usage,)
            await self._parts.recorder.save(side_question_entry(usage))
        except WoloError as error:
            log.info("No title: %s", error.message)
            return
        if title and not self.session.has_title:
            self.session.set_title(title)

    async def _with_resources(self, message: Message) -> Message:
        """When interrupted, the turn begins without them and ends at once."""
        from wolo.conversation.resource_mentions import add_resources  # noqa: PLC0415  # few prompts mention any

        cancellation = self._user_command = Cancellation()
        try:
            message, notices = await cancellation.run(add_resources(message, self.servers, self._parts.services.save_output))
        except Cancelled:
            asyncio.get_running_loop().call_soon(self.agent.interrupt)
            return message
        for notice in notices:
            await self.events.emit(Noticed(text=self._secrets.hide(notice), level="warning"))
        return message
