"""Runs subagents for the tool `task`, under the limits of the parent conversation.

A subagent shares the judge, sandbox, secrets, workspace and budget of its parent; its changes count as changes by the calling
tool call. It has its own session, which names the parent's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.agent import AgentLoop
from wolo.agent.agent_services import AgentServices, MessageHistory
from wolo.agent.approvals import AskUser, CallReviewer
from wolo.agent.budget import Account, BudgetNotices, Limits
from wolo.agent.compaction.compactor import Compactor
from wolo.agent.compaction.history_cut import cut_of
from wolo.agent.events import Event, Noticed
from wolo.agent.hook_calls import AgentHooks, RunHook
from wolo.agent.prompt_prefix import PromptPrefix
from wolo.agent.tool_calls import ToolCalls
from wolo.agent.tool_execution import Emit
from wolo.conversation.recorder import Recorder
from wolo.conversation.resources.model_selection import ModelAccess
from wolo.conversation.resources.persistence import SavedSession, SessionProperties, SessionSink, UnsavedSession
from wolo.conversation.resources.request_prefix import NestedGiven, NestedInstructions, RequestPrefix
from wolo.conversation.resources.startup import StartupState
from wolo.conversation.resources.tool_environment import new_shell, save_redacted
from wolo.errors import ToolError, UsageError, WoloError
from wolo.extensions.agent_files import AgentProfile, Agents
from wolo.guard.judge import Judge
from wolo.messages.message import OPENED, Message, user
from wolo.messages.parts import TASK
from wolo.models.protocol import ModelClient
from wolo.models.provider import EDIT_TOOLS, ModelChoice
from wolo.sessions.listing import task_of
from wolo.sessions.store import Store
from wolo.tools.tool import CallContext, ShellState, ToolServices
from wolo.tools.tool_values import CallResult, PutQuestions, TaskRequest
from wolo.tools.toolbox import (
    MCP_PREFIX,
    NEEDS_NOTES,
    NEEDS_PLANNER,
    NEEDS_SKILLS,
    NEEDS_SUBAGENTS,
    NEEDS_USER,
    TASK_COMPLETION,
    Toolbox,
)
from wolo.workspace.files.file_reading import FileLedger

if TYPE_CHECKING:
    from wolo.agent.finish.finish_check import FinishCheck
    from wolo.conversation.subagents.background_tasks import BackgroundTasks
    from wolo.conversation.subagents.subagent_run import PausableTimer, SubagentRun

AT_ONCE = 4
"""Subagents with write access run alone anyway."""


MakeReviewer = Callable[[Judge, ToolServices, Emit], CallReviewer]


class Parent(Struct, frozen=True):
    state: StartupState
    access: ModelAccess
    prefix: RequestPrefix
    asker: ModelClient
    judge: Judge
    hooks: AgentHooks
    run_hook: RunHook | None
    account: Account
    emit: Emit
    ask_user: AskUser | None
    ask_questions: PutQuestions | None
    reviewer: MakeReviewer | None = None
    nested: NestedInstructions | None = None
    follow: Callable[[AgentServices], None] | None = None
    """Gets what each subagent works with, before its first event."""
    watch: Callable[[Event, str], None] | None = None
    """Gets the events of each subagent, with the id of its `task` call."""


class Prepared(Struct, frozen=True, kw_only=True):
    """A subagent that is ready to run."""

    run: SubagentRun
    agent: AgentLoop
    prompt: Message
    history: tuple[Message, ...]
    """The messages of a resumed task."""
    timer: PausableTimer
    recorder: Recorder
    sink: SessionSink


class Subagents:
    def __init__(self, parent: Parent, agents: Agents) -> None:
        self.agents = agents
        self.running: list[SubagentRun] = []
        """In order of their start."""
        self.background: BackgroundTasks | None = None
        """None: no task has run in the background."""
        self.holds_turn = True
        """A turn waits for background tasks; False: the conversation goes on after it."""
        self._parent = parent
        self._shells: list[ShellState] = []
        self._places = asyncio.Semaphore(AT_ONCE)
        self._cleanups: set[asyncio.Task[None]] = set()
        """Clean-up in the background."""
        self._notified: set[str] = set()
        self._has_looked_back = False
        """Tasks of an earlier process were looked for."""
        self._unsaved: dict[str, tuple[str, tuple[Message, ...]]] = {}
        """Agent and messages of ended tasks that are not saved."""

    def kill(self) -> None:
        for shell in self._shells:
            shell.processes.close_all()

    async def close(self) -> None:
        await self.stop()
        if self._cleanups:
            await asyncio.wait(self._cleanups)

    @property
    def is_running(self) -> bool:
        """Whether a background task runs."""
        return self.background is not None and bool(self.background.running)

    @property
    def has_news(self) -> bool:
        return self.background is not None and self.background.has_news

    def take_news(self, messages: Sequence[Message]) -> list[Message]:
        """A message for each background task that ended since the last call, also in an earlier process."""
        news = self.background.take_news() if self.background is not None else []
        if not self._has_looked_back:
            self._has_looked_back = True
            if any(TASK in part.metadata for message in messages for part in message.calls):
                from wolo.conversation.subagents.background_tasks import lost_results  # noqa: PLC0415  # few sessions have tasks

                state = self._parent.state
                here = {task.run.part_id for task in self.background.all} if self.background is not None else set()
                news += lost_results(messages, state.site.places.data if isinstance(state.sink, SavedSession) else None, here)
        return news

    async def wait(self) -> None:
        if self.background is not None:
            await self.background.wait()

    async def stop(self) -> None:
        """Interrupts all background tasks; their sessions are saved."""
        if self.background is not None:
            await self.background.cancel(self.background.running)

    def interrupt(self, session_id: str) -> None:
        """Stops a running task; its result says so. Raises UsageError."""
        run = next((run for run in self.running if run.session_id == session_id), None)
        if run is None:
            raise UsageError(f"No task {session_id} is running.")
        run.interrupt()

    def find_task(self, id: str) -> str:
        """The agent of an ended task. Raises ToolError."""
        if any(run.session_id == id for run in self.running):
            raise ToolError(f"The task {id} still runs; its result comes as a message.")
        if id in self._unsaved:
            return self._unsaved[id][0]
        state = self._parent.state
        if isinstance(state.sink, SavedSession):
            from wolo.conversation.subagents.background_tasks import agent_of  # noqa: PLC0415  # few tasks are resumed

            return agent_of(id, state.site.places.data, state.sink.session_id)
        raise ToolError(f"There is no task {id} that can be resumed.")

    async def delegate(self, request: TaskRequest, call: CallContext) -> CallResult:
        """Runs a task, or starts it in the background. Raises ToolError if it cannot start."""
        if request.background:
            from wolo.conversation.subagents.background_tasks import MOST_RUNNING, BackgroundTasks  # noqa: PLC0415  # most tasks run in a call

            tasks = self.background = self.background or BackgroundTasks(call.services.secrets)
            if len(tasks.running) >= MOST_RUNNING:
                raise ToolError(f"{MOST_RUNNING} background tasks run already; wait until one has ended.")
            prepared = await self._begin(request, call, number=len(tasks.all) + 1)
            task = tasks.start(prepared.run, self._run(prepared))
            id = prepared.sink.session_id
            started = f"Started as background task {task.number}, id {id}."
            text = f"{started} Its result comes as a message when it ends; do not wait for it."
            return CallResult(text, metadata={TASK: {"agent": request.agent, "session": id, "background": True}})
        async with self._places:
            return await self._run(await self._begin(request, call))

    async def _begin(self, request: TaskRequest, call: CallContext, *, number: int = 0) -> Prepared:
        """Raises ToolError."""
        profile = next(each for each in self.agents.profiles if each.name == request.agent)
        from wolo.conversation.subagents.subagent_run import choose_model  # noqa: PLC0415  # most turns run none

        try:
            choice, notice = choose_model(self._parent.state, self._parent.asker.choice, profile)
            sink = await self._open_sink(profile, choice, request.resume)
        except WoloError as error:
            raise ToolError(f"Cannot start the agent {request.agent}: {error.message}") from error
        await self._notice(notice)
        prepared = await self._prepare(profile, choice, sink, request, call, number)
        prepared.run.interrupt = prepared.agent.interrupt
        if self._parent.follow is not None:
            self._parent.follow(prepared.agent.services)
        self.running.append(prepared.run)
        self._shells.append(prepared.agent.services.shell)
        try:
            await prepared.run.begin(choice.label)
        except BaseException:
            self._end(prepared)
            raise
        return prepared

    async def _run(self, prepared: Prepared) -> CallResult:
        parent, run = self._parent, prepared.run
        try:
            prepared.timer.start()
            turn = await prepared.agent.run(prepared.history, prepared.prompt)
            prepared.timer.stop()
            parent.account.lend(turn.ended.usage)
            if (reason := prepared.agent.services.hooks.stop_reason) is not None:
                parent.hooks.end_turn(reason)
            if isinstance(prepared.sink, UnsavedSession):
                self._unsaved[run.session_id] = (run.agent, turn.messages)
            return await run.end(turn.ended)
        finally:
            self._end(prepared)

    def _end(self, prepared: Prepared) -> None:
        prepared.timer.stop()
        self.running.remove(prepared.run)
        self._shells.remove(prepared.agent.services.shell)
        cleanup = asyncio.ensure_future(_clean_up(prepared))
        self._cleanups.add(cleanup)
        cleanup.add_done_callback(self._cleanups.discard)

    async def _prepare(
        self, profile: AgentProfile, choice: ModelChoice, sink: SessionSink, request: TaskRequest, call: CallContext, number: int
    ) -> Prepared:
        from wolo.conversation.subagents.subagent_run import PausableTimer, SubagentRun, for_agent, open_asker  # noqa: PLC0415  # rare

        parent, settings = self._parent, self._parent.state.config.settings
        prompt = call.services.secrets.hide(request.prompt)
        recorder = Recorder(sink, sink.session_id, has_hooks=parent.run_hook is not None)
        asker = open_asker(parent.access, parent.state, profile, choice)
        timer = PausableTimer(settings.tasks.timeout_s, lambda: agent.interrupt())
        run = SubagentRun(profile.name, prompt, sink.session_id, recorder, call, parent.emit, timer, number, parent.watch)
        compactor = Compactor(settings.context, settings.compaction, cut_of(sink.compaction))
        history = MessageHistory(compactor, lambda: sink.read_unloaded().messages)
        judge = parent.judge.under(profile.ceiling) if profile.ceiling is not None else parent.judge
        services, toolbox = self._services(sink, call, run, history, judge), self._toolbox(profile, choice)
        begins = parent.prefix.system if NEEDS_SKILLS & {*toolbox.names} else parent.prefix.without_skills
        skills = await self._skills(profile, call)
        hooks = AgentHooks(for_agent(parent.run_hook, profile.name, sink.session_id), run.on_event, services.secrets)
        secrets, emit = services.secrets, run.on_event
        nested = parent.nested and NestedGiven(parent.nested, compactor, history, secrets.hide, emit, hooks)
        calls = ToolCalls(
            toolbox,
            services,
            judge,
            emit=emit,
            ask_user=run.asking(parent.ask_user) if parent.ask_user else None,
            hooks=hooks,
            reviewer=parent.reviewer(judge, services, emit) if parent.reviewer else None,
            add_instructions=nested.add_to if nested else None,
        )
        prose = (Path(__file__).parent / "prompts" / "task.md").read_text(encoding="utf-8").strip()
        system = "\n\n".join(filter(None, (begins, prose, profile.prompt, *skills)))
        agent = AgentLoop(
            AgentServices(
                asker=asker,
                emit=emit,
                hooks=hooks,
                calls=calls,
                prefix=PromptPrefix(system, toolbox, compactor, secrets),
                compactor=compactor,
                history=history,
                shell=services.shell,
                account=parent.account,
                limits=Limits(max_turns=_answers(profile, settings.tasks.max_turns)),
                budget=BudgetNotices(),
                session_id=sink.session_id,
                finish=partial(_finish_check, services, judge),
                is_subagent=True,
            )
        )
        return Prepared(
            run=run,
            agent=agent,
            prompt=self._prompt(profile, prompt, call),
            history=self._unsaved.get(request.resume, ("", sink.history))[1],
            timer=timer,
            recorder=recorder,
            sink=sink,
        )

    async def _skills(self, profile: AgentProfile, call: CallContext) -> list[str]:
        """Texts of the skills that the profile names."""
        texts = []
        for name in profile.skills:
            try:
                if call.services.find_skill is None:
                    raise ToolError(f"Unknown skill: `{name}`.")
                texts.append(await asyncio.to_thread(call.services.find_skill(name).tell))
            except ToolError as error:
                await self._notice(f"The agent {profile.name} names a skill that it cannot have: {error.message}")
        return texts

    async def _notice(self, text: str) -> None:
        """Shows each notice once."""
        if text and text not in self._notified:
            self._notified.add(text)
            await self._parent.emit(Noticed(text=text, level="warning"))

    async def _open_sink(self, profile: AgentProfile, choice: ModelChoice, resume: str) -> SessionSink:
        state = self._parent.state
        if not isinstance(state.sink, SavedSession):
            return UnsavedSession(state.site.places.state, time.time(), id=resume)
        opening = asyncio.ensure_future(asyncio.to_thread(self._open, profile, choice, resume))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            await asyncio.wait({opening})
            if opening.exception() is None:
                opening.result().close()
            raise

    def _open(self, profile: AgentProfile, choice: ModelChoice, resume: str) -> SessionSink:
        state = self._parent.state
        parent = task_of(state.sink.session_id, profile.name)
        origin = SessionProperties(cwd=state.site.cwd, model=choice.label, mode=self._parent.judge.mode.name, parent=parent)
        store = Store.share(state.site.places.data)
        try:
            session = store.find(resume) if resume else None
            return SavedSession(store, session, origin, time.time(), updates_index=state.options.attended)
        except BaseException:
            store.close()
            raise

    def _services(
        self, sink: SessionSink, call: CallContext, run: SubagentRun, history: MessageHistory, judge: Judge
    ) -> ToolServices:
        """The parent's, with its own file ledger and shell."""
        state, own = self._parent.state, call.services
        save = own.save_output
        if isinstance(sink, SavedSession):
            save = partial(save_redacted, sink, own.secrets)
        return replace(
            own,
            may_fetch=judge.may_fetch,
            is_readable=judge.readable,
            all_readable=judge.all_readable,
            ledger=FileLedger(state.site.places.state / "file-locks"),
            save_output=save,
            shell=new_shell(state.site.cwd, state.site.places.state, own.secrets),
            ask_user=run.putting(self._parent.ask_questions) if self._parent.ask_questions else None,
            agents=(),
            delegate=None,
            find_task=None,
            mode=None,
            works_for=call.call_id,
            recall=history.recall,
        )

    def _toolbox(self, profile: AgentProfile, choice: ModelChoice) -> Toolbox:
        """The parent's tools that the profile allows."""
        toolbox = self._parent.prefix.toolbox
        there = {*toolbox.names, *(EDIT_TOOLS if {*EDIT_TOOLS} & {*toolbox.names} else ())}
        hide = {
            *NEEDS_SUBAGENTS,
            *NEEDS_NOTES,
            *NEEDS_PLANNER,
            *profile.without,
            *(() if self._parent.ask_questions else NEEDS_USER),
        }
        hide |= set() if choice.format == "xml" else {TASK_COMPLETION}
        named = () if profile.tools is None else (*profile.tools, TASK_COMPLETION)
        only = [name for name in named if name in there or name.startswith(MCP_PREFIX)]
        hide = {name for name in hide if name in there or name.startswith(MCP_PREFIX)}
        return toolbox.offer(None if profile.tools is None else only, hide, edit_tool=choice.edit_tool, most=choice.most_tools)

    def _prompt(self, profile: AgentProfile, prompt: str, call: CallContext) -> Message:
        parent = self._parent
        opened = {"mode": parent.judge.mode.name, "cwd": str(parent.state.site.cwd), "attended": parent.ask_user is not None}
        task = {"agent": profile.name, "session": parent.state.sink.session_id, "call": call.part_id}
        return replace(user(prompt), metadata={OPENED: opened, TASK: task})


def _finish_check(services: ToolServices, judge: Judge) -> FinishCheck:
    """Reports the checks of a subagent; its parent is the one that is asked."""
    from wolo.conversation.project_checks import open_finish_check  # noqa: PLC0415  # not needed before the first change

    return open_finish_check(services, judge, verify="", asks=False, shows=False, attended=False, offers_shell=False)


def _answers(profile: AgentProfile, most: int) -> int:
    """A project's profile can only lower the limit."""
    wanted = profile.max_turns or most
    return min(wanted, most) if profile.is_projects else wanted


async def _clean_up(prepared: Prepared) -> None:
    services = prepared.agent.services
    await asyncio.to_thread(services.shell.processes.close_all)
    services.shell.close()
    await services.asker.close()
    await prepared.recorder.close()
    await asyncio.to_thread(prepared.sink.cleanup)
    await asyncio.to_thread(prepared.sink.close)
