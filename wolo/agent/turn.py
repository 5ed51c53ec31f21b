"""Runs one turn: asks the model and runs the calls of its answer, until an answer has none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from wolo.agent.agent_services import AgentServices
from wolo.agent.budget import NOTHING, Limits, Spent, add, describe, spent
from wolo.agent.call_batch import CallBatch
from wolo.agent.cancellation import Cancellation, Cancelled
from wolo.agent.events import (
    AnswerEnded,
    Compacted,
    ErrorInfo,
    MessageAdded,
    Noticed,
    PromptRefused,
    TurnEnded,
    TurnStarted,
)
from wolo.agent.hook_calls import PromptBlocked
from wolo.agent.stream_relay import StreamRelay
from wolo.agent.tool_execution import refuse_all
from wolo.agent.turn_policy import NextStep, Stop, TurnPolicy
from wolo.errors import BadRequest, ContextOverflow, ProviderError, SessionError
from wolo.messages.message import EMPTY_ANSWER, INSTRUCTIONS, JOB_ENDED, MCP_INSTRUCTIONS, Message, Usage, nudge
from wolo.messages.parts import TextPart, ToolPart
from wolo.models.probe_cache import is_near
from wolo.models.protocol import Question

if TYPE_CHECKING:
    from wolo.agent.compaction_run import CompactionRun
    from wolo.agent.verification import Verifier


class Turn(Struct, frozen=True, kw_only=True):
    """Result of one turn."""

    ended: TurnEnded
    messages: tuple[Message, ...]
    """The whole conversation, including the new messages."""
    new: tuple[Message, ...]
    """The prompt and everything after it."""


class TurnRunner:
    """Runs one turn, once."""

    def __init__(self, services: AgentServices, history: Sequence[Message], prompt: Message, cancellation: Cancellation) -> None:
        self._services = services
        self._emit = services.emit
        self._history = services.history
        self._history.start_from(history)
        self._cancellation = cancellation
        self._policy = TurnPolicy(is_local=is_near(services.asker.choice))
        self._prompt = prompt
        self._compaction: CompactionRun | None = None
        """None: nothing was compacted during this turn."""
        self._start_index = len(history)
        self._verifier = _make_verifier(services, cancellation)
        self._relay: StreamRelay | None = None
        self._answer = ""
        self._limit_stop: Stop | None = None
        """Limit reached during streaming."""
        self._before_pause = ""
        """Text of the answer before the provider paused it."""
        self._finish_reason = ""
        self._used = NOTHING
        self._num_answers = 0
        self._provider_s = 0.0
        self._times_sent_back = 0

    async def run(self) -> Turn:
        started = self._services.clock()
        try:
            stop = await self._stop_if_blocked() or await self._start()
        except Cancelled:
            stop = await self._stopped()
        except ProviderError as error:
            stop = Stop.by(error)
        except SessionError as error:
            stop = Stop(cause="session_error", error=ErrorInfo.of(error), exit_code=error.exit_code)
        if stop.error is not None and stop.cause in ("model_error", "unavailable"):
            await self._services.hooks.on_failure(stop.error)
        if (tasks := self._services.tasks) is not None and tasks.holds_turn and tasks.is_running:
            await tasks.stop()
        ended = TurnEnded(
            cause=stop.cause,
            answer=self._answer,
            finish_reason=self._finish_reason,
            usage=self._usage(),
            num_answers=self._num_answers if self._services.is_subagent else self._services.account.answers,
            duration_s=self._services.clock() - started,
            provider_s=self._provider_s + (self._compaction.waited_s if self._compaction else 0.0),
            error=stop.error,
            exit_code=stop.exit_code,
            verification=self._verifier.outcome if self._verifier else None,
        )
        if not self._services.is_subagent:
            self._services.account.end_turn()
        await self._emit(ended)
        return Turn(ended=ended, messages=(messages := tuple(self._history.messages)), new=messages[self._start_index :])

    async def _stop_if_blocked(self) -> Stop | None:
        """Ends the turn when hooks block the prompt, before anything is saved or sent. Raises Cancelled."""
        try:
            checked = await self._check_prompt(self._prompt)
        except Cancelled:
            await self._emit(PromptRefused(prompt=self._prompt, reason=""))
            raise
        if isinstance(checked, Message):
            self._prompt = checked
            return None
        error = ErrorInfo(kind="blocked", message=f"A hook blocked this prompt: {checked.reason}", hint="Nothing was sent.")
        return Stop(cause="blocked", error=error, exit_code=1)

    async def _start(self) -> Stop:
        if not self._services.is_subagent:
            self._services.account.begin_turn()
        await self._emit(TurnStarted(prompt=self._prompt))
        self._history.append(self._prompt)  # only after the prompt was saved
        await self._add_changed_instructions()
        return await self._loop()

    async def _add_changed_instructions(self) -> None:
        services = self._services
        if services.prefix.changed_instructions is None:
            return
        sent = services.compactor.shown(self._history.messages)
        if message := await asyncio.to_thread(services.prefix.changed_instructions, sent):
            await self._notice(f"Changed instructions: {', '.join(message.metadata[INSTRUCTIONS])}. The model gets the new text.")
            await self._add_message(message)

    async def _check_prompt(self, prompt: Message) -> Message | PromptBlocked:
        """Returns the prompt with the context of hooks. Raises Cancelled."""
        if not self._services.hooks.is_active:
            return prompt
        checked = await self._services.hooks.check_prompt(prompt, self._cancellation)
        if isinstance(checked, PromptBlocked):
            await self._emit(PromptRefused(prompt=prompt, reason=checked.reason))
        return checked

    async def _loop(self) -> Stop:
        while True:
            if self._cancellation.cause is not None:
                raise Cancelled
            await self._deliver_news()
            await self._notice(await self._cancellation.run(self._services.prefix.add_late_tools()))
            if instructions := self._services.prefix.unsent_instructions(self._history.messages):
                await self._add_message(nudge(instructions, MCP_INSTRUCTIONS))
            if limit := self._services.account.spent():
                return _limit_reached(self._services.account.limits, limit)
            if limit := spent(self._services.limits, self._used, self._num_answers):
                return _limit_reached(self._services.limits, limit)
            answer = await self._ask()
            if answer is None:
                continue
            self._count(answer)
            if answer.finish_reason == "overflow" and await self._has_compacted_after_overflow(None):
                continue
            if stop := await self._handle_answer(answer):
                if stop.cause == "done" and (await self._deliver_steering() or await self._await_tasks()):
                    continue
                if stop.cause == "done" and (message := await self._continuation()):
                    await self._add_message(message)
                    continue
                return self._verifier.judged(stop) if self._verifier else stop

    async def _ask(self) -> Message | None:
        """Returns None after a compaction; the loop must start over."""
        services, fixed = self._services, self._services.fixed()
        self._relay = None
        if not services.compactor.fits(self._history.messages, fixed) and await self._has_compacted_to_fit():
            return None
        shown = services.compactor.shown(self._history.messages)
        services.compactor.check(self._history.messages, fixed)
        try:
            answer = await self._request_answer(shown)
        except ContextOverflow as error:
            if await self._has_compacted_after_overflow(error):
                return None
            error.hint = services.compactor.hint()
            raise
        except BadRequest as error:
            if notice := services.prefix.apply_tool_limit(error.message) or services.prefix.drop_rejected_tool(error.message):
                await self._notice(notice)
                return None
            raise
        if answer.finish_reason != "overflow":
            services.compactor.counted(shown, fixed, answer.usage)
        return answer

    async def _has_compacted_to_fit(self) -> bool:
        run = self._compaction_run()
        return await self._has_compacted(run, run.before_request(self._history.messages))

    async def _has_compacted_after_overflow(self, error: ContextOverflow | None) -> bool:
        run = self._compaction_run()
        return await self._has_compacted(run, run.after_overflow(self._history.messages, error))

    def _compaction_run(self) -> CompactionRun:
        from wolo.agent.compaction_run import CompactionRun  # noqa: PLC0415  # most turns fit as they are

        self._compaction = self._compaction or CompactionRun(self._services, self._cancellation, prompt_id=self._prompt.id)
        return self._compaction

    async def _has_compacted(self, run: CompactionRun, compaction: Awaitable[Compacted | None]) -> bool:
        """True when the compaction changed something. Its usage counts even when it was cancelled."""
        self._relay = None
        try:
            return await compaction is not None
        finally:
            usage = run.take_usage()
            self._used = add(self._used, usage)
            self._services.account.use(usage)

    async def _request_answer(self, messages: tuple[Message, ...]) -> Message:
        services = self._services
        self._relay = StreamRelay(self._emit, services.asker, self._stop_at_limit, services.prefix.kind)
        question = Question(
            messages=messages,
            system=services.prefix.system,
            tools=services.prefix.tools,
            session_id=services.session_id,
            prompt_id=self._prompt.id,
        )
        asked = services.clock()
        try:
            answer = await self._cancellation.run(services.asker.ask(question, self._relay))
        finally:
            self._provider_s += services.clock() - asked
        self._relay = None
        return answer

    def _stop_at_limit(self, streamed: Usage) -> None:
        """Cancels a streaming answer that exceeds a limit."""
        services = self._services
        for limits, used in ((services.account.limits, services.account.used), (services.limits, self._used)):
            if reached := spent(limits, add(used, streamed), 0):
                self._limit_stop = _limit_reached(limits, reached)
                self._cancellation.cancel(reached)
                return

    def _count(self, answer: Message) -> None:
        usage = answer.usage or Usage()
        self._used = add(self._used, usage)
        self._services.account.use(usage, answers=1)
        self._num_answers += 1
        self._finish_reason = answer.finish_reason

    async def _handle_answer(self, answer: Message) -> Stop | None:
        """Saves the answer and runs its calls. None: ask again."""
        step = self._policy.after(answer)
        if step.save_answer:
            self._answer = self._before_pause + answer.text or self._answer
            self._before_pause = self._answer if answer.finish_reason == "paused" and not answer.calls else ""
            stop = await self._save_answer(answer, step)
            if stop:
                return stop
        await self._notice(step.notice)
        if step.nudge:
            await self._add_message(nudge(step.nudge, EMPTY_ANSWER))
        return step.stop

    async def _save_answer(self, answer: Message, step: NextStep) -> Stop | None:
        calls = self._services.calls
        planned = [] if step.refuse else calls.plan(answer)
        answer = answer.with_parts(call.part for call in planned)
        self._history.append(answer)
        await self._emit(AnswerEnded(message=answer))
        if step.refuse:
            outcome, words = step.refuse
            refused = refuse_all(answer, outcome, words)
            self._history.replace_last(answer.with_parts(refused))
            await calls.emit_refused(answer.id, refused)
            return None
        if self._verifier is not None:
            await self._verifier.before(planned)
        batch = CallBatch(calls, answer.id, planned, self._cancellation)
        try:
            await batch.run(step.note, steering=self._services.steering)
        finally:
            self._history.replace_last(answer.with_parts(batch.parts))
        return self._terminated(batch.parts)

    def _terminated(self, parts: Sequence[ToolPart]) -> Stop | None:
        last = next((part for part in parts if part.terminate and part.outcome == "ok"), None)
        if last is None:
            return None
        self._answer = last.output or self._answer
        return Stop(cause="done")

    async def _continuation(self) -> Message | None:
        """Returns a message that makes the model continue, from the check or from Stop hooks. Raises Cancelled."""
        return (await self._verifier.after() if self._verifier else None) or await self._continue_for_hooks()

    async def _continue_for_hooks(self) -> Message | None:
        """Returns a message from Stop hooks that makes the model continue. Raises Cancelled."""
        message = await self._services.hooks.on_stop(self._answer, self._times_sent_back, self._cancellation)
        self._times_sent_back += 1
        return message

    async def _deliver_news(self) -> None:
        """Delivers steering messages and notices about ended jobs. Raises Cancelled."""
        await self._deliver_steering()
        jobs = self._services.shell.jobs
        if jobs is not None and jobs.unreported and (news := jobs.news()):
            await self._add_message(nudge("\n".join(news), JOB_ENDED))
        if message := await self._services.hooks.news(self._cancellation):
            await self._add_message(message)

        tasks = self._services.tasks
        for message in tasks.take_news(self._history.messages) if tasks is not None else ():
            await self._add_message(message)

    async def _await_tasks(self) -> bool:
        """True when the result of a background task goes to the model before the turn ends. Raises Cancelled."""
        tasks = self._services.tasks
        if tasks is None:
            return False
        if tasks.holds_turn and tasks.is_running:
            await self._cancellation.run(tasks.wait())
        return tasks.has_news

    async def _deliver_steering(self) -> bool:
        """True when a message was delivered. Raises Cancelled; undelivered messages stay in the queue."""
        queue, is_delivered = self._services.steering, False
        while waiting := queue.waiting:
            checked = await self._check_prompt(waiting[0])
            if queue.withdraw(waiting[0].id) and isinstance(checked, Message):  # unless the user has withdrawn it
                try:
                    await self._add_message(checked)
                except SessionError:
                    queue.add_first(waiting[0])
                    raise
                is_delivered = True
        return is_delivered

    async def _notice(self, text: str) -> None:
        if text:
            await self._emit(Noticed(text=text, level="warning"))

    async def _add_message(self, message: Message) -> None:
        """Adds a message to the model during the turn."""
        await self._emit(MessageAdded(message=message))
        self._history.append(message)

    async def _stopped(self) -> Stop:
        """Saves the text received so far; an incomplete call is dropped."""
        text = self._relay.text if self._relay else ""
        if text.strip():
            self._answer, self._finish_reason = text, "interrupted"
            usage = self._relay.usage if self._relay and self._limit_stop else None
            partial = Message(role="assistant", parts=(TextPart(text=text),), finish_reason="interrupted", usage=usage)
            self._history.append(partial)
            await self._emit(AnswerEnded(message=partial))
        if self._cancellation.cause == "blocked":
            reason = self._services.hooks.stop_reason or "No reason given."
            error = ErrorInfo(kind="blocked", message=f"A hook ended the turn: {reason}", hint="Completed work is kept.")
            return Stop(cause="blocked", error=error, exit_code=1)
        if self._cancellation.cause == "max_seconds":
            return _limit_reached(self._services.limits, "max_seconds")
        if self._limit_stop is not None and self._relay is not None:
            self._used = add(self._used, self._relay.usage)
            self._services.account.use(self._relay.usage)
            return self._limit_stop
        return Stop(cause="interrupted", error=ErrorInfo(kind="interrupted", message="Interrupted."), exit_code=130)

    def _usage(self) -> Usage:
        """Without answers the cost is unknown, unless the model's price is known: then it is zero."""
        priced = self._num_answers or self._limit_stop or self._services.asker.choice.model.price is not None
        used = self._used if self._services.is_subagent else add(self._used, self._services.account.lent)
        return used if priced else Usage()


def _make_verifier(services: AgentServices, cancellation: Cancellation) -> Verifier | None:
    if services.verify is None:
        return None
    from wolo.agent.verification import Verifier  # noqa: PLC0415  # most users have no check

    return Verifier(services.verify, services.emit, cancellation)


def _limit_reached(limits: Limits, limit: Spent) -> Stop:
    error = ErrorInfo(kind=limit, message=describe(limits, limit), hint="Raise the limit, or continue with -c.")
    return Stop(cause=limit, error=error, exit_code=5)
