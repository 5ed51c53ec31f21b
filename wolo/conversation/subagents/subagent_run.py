"""Runs one subagent: chooses its model, records its events, reports progress and builds the result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from wolo.agent import events
from wolo.agent.approvals import AskUser
from wolo.agent.budget import NOTHING, add
from wolo.agent.hook_calls import NEWS, ReportSlow, RunHook
from wolo.agent.tool_execution import Emit
from wolo.config import keys
from wolo.conversation.phrasing import describe_work
from wolo.conversation.recorder import Recorder
from wolo.conversation.resources import model_selection
from wolo.conversation.resources.startup import StartupState
from wolo.errors import ConfigError
from wolo.extensions.agent_files import AgentProfile
from wolo.messages.call_arguments import call_line
from wolo.messages.message import Usage, task_usage
from wolo.messages.parts import FINISH, TASK, ToolPart
from wolo.messages.terminal_text import clean_line
from wolo.models.protocol import ModelClient
from wolo.models.provider import ModelChoice
from wolo.tools.tool import CallContext
from wolo.tools.tool_values import AskQuestions, CallResult, Delegated, HookReply, PutQuestions, Question, Replies

MOST_LINES = 500
"""Calls in the view."""
LONGEST_SUBJECT = 100
_NOTHING_SAID = "(No answer.)"


class SubagentRun:
    """`on_event` gets the events of the subagent; `call` started it; `emit` is the parent's."""

    def __init__(
        self,
        agent: str,
        prompt: str,
        session_id: str,
        recorder: Recorder,
        call: CallContext,
        emit: Emit,
        alarm: PausableTimer,
        number: int = 0,
        watch: Callable[[events.Event, str], None] | None = None,
    ) -> None:
        """`number` of a background task; 0: the call waits for its end."""
        self.number = number
        self.part_id = call.part_id
        self.interrupt: Callable[[], None] = lambda: None
        self.took_s = 0.0
        self.used: Usage | None = None
        """Usage of the whole task; None: it has not ended."""
        self.agent, self.prompt, self.session_id = agent, prompt, session_id
        self.began = time.monotonic()
        self.doing = "starting"
        self.calls: list[str] = []
        """A line per ended call."""
        self.begun = 0
        """Number of started calls."""
        self.usage = self._of_calls = NOTHING
        self.files: dict[str, None] = {}
        self.denied = 0
        self._recorder, self._call, self._emit = recorder, call, emit
        self._alarm, self._watch = alarm, watch

    @property
    def seconds(self) -> float:
        return self.took_s if self.used is not None else time.monotonic() - self.began

    @property
    def so_far(self) -> str:
        return f"{_count(self.begun, 'call')} · {self.usage.context_tokens:,} tokens"

    async def begin(self, model: str) -> None:
        started = events.TaskStarted(
            part_id=self._call.part_id,
            agent=self.agent,
            session_id=self.session_id,
            model=model,
            prompt=self.prompt,
            background=self.number,
        )
        await self._emit(started)

    async def on_event(self, event: events.Event) -> None:
        """Saves the event, then reports it. `TurnEnded` is not saved here: the session is closed afterwards."""
        if not isinstance(event, events.TurnEnded):
            await self._recorder.record(event)
        if self._watch is not None:
            self._watch(event, self.part_id)
        match event:
            case (
                events.RequestStarted()
                | events.TextStreamed()
                | events.ThinkingStreamed()
                | events.CompactionStarted()
                | events.AttemptFailed()
            ):
                self._does(clean_line(describe_work(event)))
            case events.AnswerEnded():
                self.usage = add(self.usage, event.message.usage or Usage())
            case events.CallStarted():
                self.begun += 1
                self._does(in_short(event.part))
            case events.CallEnded():
                self.files |= dict.fromkeys(event.files_changed)
                bad = "" if event.part.outcome == "ok" else f" · {(event.part.outcome or 'error').replace('_', ' ')}"
                self.calls.append(f"{in_short(event.part)}{bad}")
                self._of_calls = add(self._of_calls, task_usage(event.part) or NOTHING)
            case events.CallDenied():
                self.denied += 1
                await self._emit(replace(event, agent=self.agent))
            case events.ApprovalGiven() | events.Noticed():
                await self._emit(event)
            case events.ModelReplaced():
                why = event.error.message.rstrip(".")
                await self._emit(events.Noticed(text=f"{self.agent}: {why}; {event.model} answers instead.", level="warning"))

    def asking(self, ask_user: AskUser) -> AskUser:
        """Names the subagent in the approval, and stops its timer meanwhile."""

        async def ask(asked: events.ApprovalAsked) -> events.ApprovalGiven:
            self._does("waiting for your approval")
            with self._alarm.pause():
                return await ask_user(replace(asked, agent=self.agent, task=self._call.part_id))

        return ask

    def putting(self, put: PutQuestions) -> AskQuestions:
        async def ask(call_id: str, questions: Sequence[Question]) -> Replies | None:
            self._does("waiting for your answer")
            named = [replace(each, header=f"{self.agent}: {each.header}".rstrip(": ")) for each in questions]
            with self._alarm.pause():
                return await put(call_id, named, self._call.part_id)

        return ask

    async def end(self, ended: events.TurnEnded) -> CallResult:
        """The result counts what its calls used, searches of the web and tasks, too."""
        ended = replace(ended, usage=add(ended.usage, self._of_calls))
        self.used, self.took_s = ended.usage, ended.duration_s
        how = "timed out" if self._alarm.rang else ended.cause.replace("_", " ")
        await self._emit(
            events.TaskEnded(
                part_id=self._call.part_id,
                agent=self.agent,
                session_id=self.session_id,
                ended=how,
                answers=ended.num_answers,
                calls=self.begun,
                usage=ended.usage,
                duration_s=ended.duration_s,
                files_changed=tuple(self.files),
                background=self.number,
            )
        )
        return self._result(ended, how)

    def _result(self, ended: events.TurnEnded, how: str) -> CallResult:
        is_done = ended.cause == "done"
        metadata = {
            "agent": self.agent,
            "session": self.session_id,
            "ended": how,
            "answers": ended.num_answers,
            "calls": self.begun,
            "usage": to_builtins(ended.usage),
            "duration_s": round(ended.duration_s, 3),
            FINISH: to_builtins(ended.work),
        }
        view = Delegated(
            agent=self.agent,
            session_id=self.session_id,
            ended=how,
            calls=tuple(self.calls[:MOST_LINES]),
            answers=ended.num_answers,
            tokens=ended.usage.context_tokens,
            cost_usd=ended.usage.cost.total if ended.usage.cost is not None else None,
            seconds=ended.duration_s,
        )
        # The result for the calling model
        lines = [ended.answer.strip() or _NOTHING_SAID]
        if ended.cause != "done":
            why = f": {ended.error.message}" if ended.error is not None and how not in ("timed out", "interrupted") else ""
            lines.append(f"[{how} after {ended.duration_s:.0f} s{why}; the text above is not its final answer]")
            if self.calls:
                lines.append("[Its calls so far:]\n" + "\n".join(self.calls[-20:]))
        cost = f" · ${ended.usage.cost.total:.4f}" if ended.usage.cost is not None else ""
        denied = f" · {self.denied} denied" if self.denied else ""
        counts = f"{_count(ended.num_answers, 'answer')} · {_count(self.begun, 'call')}{denied}"
        spent = f"{ended.usage.context_tokens:,} tokens{cost} · {ended.duration_s:.1f} s"
        lines.append(f"[{self.agent}: {counts} · {spent} · id {self.session_id}]")
        if self.files:
            lines.append(f"[files changed: {', '.join(self.files)}]")
        return CallResult(
            "\n".join(lines),
            view,
            is_error=not is_done,
            outcome="interrupted" if how == "interrupted" else None,
            files_changed=tuple(self.files),
            metadata={TASK: metadata},
        )

    def _does(self, activity: str) -> None:
        if activity == self.doing:
            return
        self.doing = activity
        self._call.progress(f"{activity} · {self.so_far}\n")


def in_short(part: ToolPart) -> str:
    return call_line(part, most_chars=LONGEST_SUBJECT, most_of_change=0)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


_OTHER_NAMES = {"UserPromptSubmit": "SubagentStart", "Stop": "SubagentStop"}
_NOT_ITS_OWN = frozenset(("SessionStart", NEWS))
"""They belong to the user's session."""


def for_agent(run: RunHook | None, agent: str, session_id: str) -> RunHook | None:
    """Adds the subagent to the payload, and renames events."""
    if run is None:
        return None
    run_parent_hook = run

    async def run_hook(event: str, payload: Mapping[str, Any], slow: ReportSlow) -> HookReply:
        if event in _NOT_ITS_OWN:
            return HookReply()
        return await run_parent_hook(
            _OTHER_NAMES.get(event, event), {**payload, "agent_type": agent, "agent_id": session_id}, slow
        )

    return run_hook


class PausableTimer:
    def __init__(self, timeout_s: float, ring: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.rang = False
        self._left_s, self._ring, self._clock = timeout_s, ring, clock
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._held = 0
        """Number of pending requests to the user."""

    def start(self) -> None:
        self._since = self._clock()
        self._timer = asyncio.get_running_loop().call_later(self._left_s, self._rings)

    def stop(self) -> None:
        if self._timer is not None:
            self._left_s = max(self._left_s - (self._clock() - self._since), 0.0)
            self._timer.cancel()
            self._timer = None

    @contextmanager
    def pause(self) -> Iterator[None]:
        self._held += 1
        self.stop()
        try:
            yield
        finally:
            self._held -= 1
            if not self._held and not self.rang:
                self.start()

    def _rings(self) -> None:
        self._timer = None
        self.rang = True
        self._ring()


def choose_model(state: StartupState, own: ModelChoice, profile: AgentProfile) -> tuple[ModelChoice, str]:
    """The model, and a notice if it is not the one that the profile names; `own` is the conversation's. Raises WoloError."""
    if not profile.model:
        explores = profile.path is None and profile.only_reads
        return (state.small or own) if explores else own, ""
    named = model_selection.resolve_alias(state.config.settings, profile.model, own.provider.name)
    if named is None:
        return own, model_selection.alias_notice(profile.name, profile.model)
    environ = keys.with_stored_keys(state.site, state.config)
    first = state.options.first_provider or state.choice.provider.name
    instead = f"the agent {profile.name} uses {own.label}."
    try:
        choice = model_selection.find(model_selection.for_provider_of(state.config, environ, named, first), environ, named)
    except ConfigError as error:
        return own, f"{error.message} So {instead}"
    if choice.provider.name == "local":
        return own, f"The embedded model cannot run tasks, so {instead}"
    names_it = profile.is_projects and named == profile.model  # an alias is the choice of the user
    if names_it and (choice.provider.name, choice.base_url) != (own.provider.name, own.base_url):
        return own, f"A project's agent cannot select another provider ({choice.label}), so {instead}"
    model_selection.check_prices(state.config, choice)
    return replace(choice, thinking=choice.thinking or own.thinking), ""


def open_asker(
    access: model_selection.ModelAccess, state: StartupState, profile: AgentProfile, choice: ModelChoice
) -> ModelClient:
    """The small model falls back to the model of the conversation."""
    choice = replace(choice, thinking=profile.thinking or choice.thinking, temperature=profile.temperature)
    if state.small is not None and choice.label == state.small.label != state.choice.label:
        return model_selection.make_asker(access, choice, (state.choice,), after_any_error=True)
    return model_selection.make_asker(access, choice, state.fallbacks if not profile.model else ())
