"""The agent: asks the model and runs the calls of its answer, until an answer has none."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent import agent_services, asker, events, hook_calls, tool_calls, tool_execution
from wolo.agent.budget import NOTHING, Limits, Spent, add, describe, limit_reached
from wolo.agent.cancellation import Cancellation, Cancelled, wait_for_clean_end
from wolo.agent.turn_policy import NextStep, Stop, TurnPolicy
from wolo.errors import BadRequest, ContextOverflow, ProviderError, SessionError
from wolo.guard.modes import PLAN
from wolo.messages.message import (
    BUDGET,
    EMPTY_ANSWER,
    INSTRUCTIONS,
    JOB_ENDED,
    MCP_INSTRUCTIONS,
    NAMED_MODE,
    Message,
    Usage,
    named_mode,
    nudge,
)
from wolo.messages.parts import CHANGED, TextPart, ToolPart
from wolo.models.address import is_near
from wolo.models.protocol import ANSWER_SCHEMA, ModelQuestion
from wolo.tools.toolbox import PRESENT_PLAN

if TYPE_CHECKING:
    from wolo.agent.compaction_run import CompactionPreview, CompactionRun, ContextUsage
    from wolo.agent.finish.finish_check import FinishCheck
    from wolo.agent.verification import Verifier


class Turn(Struct, frozen=True, kw_only=True):
    """Result of one turn."""

    ended: events.TurnEnded
    messages: tuple[Message, ...]
    """The whole conversation, including the new messages."""
    new: tuple[Message, ...]
    """The prompt and everything after it."""


class AgentLoop:
    """Knows no screen, no disk and no settings."""

    def __init__(self, services: agent_services.AgentServices) -> None:
        self.services = services
        self._cancellation: Cancellation | None = None

    def context_usage(self, history: Sequence[Message]) -> ContextUsage:
        """The content of the next request, by source."""
        from wolo.agent.compaction_run import context_usage  # noqa: PLC0415  # not needed for a prompt

        services = self.services
        return context_usage(services.compactor, history, services.prefix.measure_fixed(services.asker.choice.model))

    def preview(self, history: Sequence[Message]) -> CompactionPreview:
        """The effect that `compact` would have; asks no model and changes nothing."""
        from wolo.agent.compaction_run import can_summarize, preview  # noqa: PLC0415  # not needed for a prompt

        services = self.services
        fixed = services.prefix.measure_fixed(services.asker.choice.model)
        return preview(services.compactor, history, fixed, may_ask=can_summarize(services.asker))

    async def compact(self, history: Sequence[Message], focus: str = "") -> None:
        """Compacts on the user's request and emits the result; `interrupt` leaves everything as it was."""
        from wolo.agent.compaction_run import CompactionRun  # noqa: PLC0415  # not needed for a prompt

        self.services.history.messages = list(history)
        cancellation = self._cancellation = Cancellation()
        run = CompactionRun(self.services, cancellation, focus=focus)
        try:
            await run.on_request(history)
        finally:
            self._cancellation = None
            self.services.account.use(run.take_usage())

    async def uncompact(self, history: Sequence[Message]) -> None:
        """Sends as many of the compacted messages again as fit."""
        from wolo.agent.compaction_run import CompactionRun  # noqa: PLC0415  # not needed for a prompt

        self.services.history.messages = list(history)
        await CompactionRun(self.services, Cancellation()).restore(history)

    async def aside(self, history: Sequence[Message], question: str) -> Message:
        """Asks a question that does not join the conversation, also during a turn. Raises ProviderError and UsageError."""
        from wolo.agent.side_question import ask_aside  # noqa: PLC0415  # not needed for a prompt

        return await ask_aside(self.services, history, question)

    async def run(self, history: Sequence[Message], prompt: Message) -> Turn:
        """Runs a turn, from `TurnStarted` to `TurnEnded`.

        Cancelling the awaiting task equals `interrupt()`: the turn ends cleanly and is returned.
        Raises only what `emit` raises for the end of the turn.
        """
        cancellation = self._cancellation = Cancellation()
        runner = TurnRunner(self.services, history, prompt, cancellation)
        running = asyncio.ensure_future(runner.run())
        alarm = None
        goal_s = goal.seconds_left() if (goal := self.services.goals.policy) else None
        if seconds := [each for each in (self.services.limits.max_seconds, goal_s) if each is not None]:
            alarm = asyncio.get_running_loop().call_later(min(seconds), cancellation.cancel, "max_seconds")
        try:
            await wait_for_clean_end(running, cancellation)
            return running.result()
        finally:
            self._cancellation = None
            if alarm is not None:
                alarm.cancel()

    def interrupt(self) -> None:
        """Stops the turn: open calls get results, `TurnEnded` still follows. Does nothing between turns."""
        if self._cancellation is not None:
            self._cancellation.cancel("interrupted")


class TurnRunner:
    """Runs one turn, once."""

    def __init__(
        self, services: agent_services.AgentServices, history: Sequence[Message], prompt: Message, cancellation: Cancellation
    ) -> None:
        self._services = services
        self._emit = services.emit
        self._history = services.history
        self._history.messages = list(history)
        self._cancellation = cancellation
        self._policy = TurnPolicy(is_local=is_near(services.asker.choice.base_url))
        self._prompt = prompt
        self._compaction: CompactionRun | None = None
        """None: nothing was compacted during this turn."""
        self._start_index = len(history)
        self._named_mode: tuple[str, int, Collection[str]] = ("", 0, ())
        """The mode that the history named when it had so many messages, and those that were left out then."""
        self._verifier: Verifier | None = None
        if services.verify is not None:
            from wolo.agent.verification import Verifier  # noqa: PLC0415  # most users have no check

            self._verifier = Verifier(services.verify, services.emit, cancellation)
        self._relay: asker.StreamRelay | None = None
        self._answer = ""
        self._limit_stop: Stop | None = None
        """Limit reached during streaming."""
        self._before_pause = ""
        """Text of the answer before the provider paused it."""
        self._finish_reason = ""
        self._used = NOTHING
        self._num_answers = 0
        self._started_at = services.clock()
        self._provider_s = 0.0
        self._times_sent_back = 0

    async def run(self) -> Turn:
        services = self._services
        if services.budget is not None:
            services.budget.begin_turn()
        try:
            stop = await self._begin() or await self._loop()
        except Cancelled:
            stop = await self._stop()
        except ProviderError as error:
            stop = Stop.by(error)
        except SessionError as error:
            stop = Stop(cause="session_error", error=events.ErrorInfo.of(error), exit_code=error.exit_code)
        if stop.error is not None and stop.cause in ("model_error", "unavailable"):
            await services.hooks.on_failure(stop.error)
        if (tasks := services.tasks) is not None and tasks.holds_turn and tasks.is_running:
            await tasks.stop()
        is_held = (goal := services.goals.policy) is not None and goal.is_begun
        if goal is not None:
            stop = await goal.end_turn(stop)
        # Without answers the cost is unknown, unless the model's price is known: then it is zero.
        is_priced = self._num_answers or self._limit_stop or services.asker.choice.model.price is not None
        used = self._used if services.is_subagent else add(self._used, services.account.lent)
        ended = events.TurnEnded(
            cause=stop.cause,
            answer=self._answer,
            finish_reason=self._finish_reason,
            usage=used if is_priced else Usage(),
            num_answers=self._num_answers if services.is_subagent else services.account.answers,
            duration_s=services.clock() - self._started_at,
            provider_s=self._provider_s + (self._compaction.waited_s if self._compaction else 0.0),
            error=stop.error,
            exit_code=stop.exit_code,
            verification=(verification := self._verifier.outcome if self._verifier else None),
            work=finish.report(self._history.messages, self._start_index, verification)
            if (finish := self._finish_check())
            else events.WorkCheck(),
            goal=goal.report() if goal is not None and is_held else None,
        )
        if not services.is_subagent:
            services.account.lent = NOTHING
        await self._emit(ended)
        messages = tuple(self._history.messages)
        return Turn(ended=ended, messages=messages, new=messages[self._start_index :])

    async def _begin(self) -> Stop | None:
        """Saves the prompt. A stop when hooks block it, before anything is saved or sent. Raises Cancelled."""
        services = self._services
        try:
            checked = await self._check_prompt(self._prompt)
        except Cancelled:
            await self._emit(events.PromptRefused(prompt=self._prompt, reason=""))
            raise
        if not isinstance(checked, Message):
            error = events.ErrorInfo(
                kind="blocked", message=f"A hook blocked this prompt: {checked.reason}", hint="Nothing was sent."
            )
            return Stop(cause="blocked", error=error, exit_code=1)
        self._prompt = checked
        if notice := self._mode_notice():  # in the prompt, which a format would separate from another message by an answer
            words = TextPart(text=f"\n\n{notice.text}", is_notice=True)
            named = {**checked.metadata, NAMED_MODE: notice.metadata[NAMED_MODE]}
            self._prompt = replace(checked, parts=(*checked.parts, words), metadata=named)
        if not services.is_subagent:
            services.account.answers = 0
        await self._emit(events.TurnStarted(prompt=self._prompt))
        self._history.messages.append(self._prompt)  # only after the prompt was saved
        if services.prefix.changed_instructions is not None:
            sent = services.compactor.apply_cut(self._history.messages)
            if message := await services.prefix.changed_instructions(sent):
                names = ", ".join(message.metadata[INSTRUCTIONS])
                await self._notice(f"Changed instructions: {names}. The model gets the new text.")
                await self._add_message(message)
        return None

    async def _check_prompt(self, prompt: Message) -> Message | hook_calls.PromptBlocked:
        """Returns the prompt with the context of hooks. Raises Cancelled."""
        if not self._services.hooks.is_active:
            return prompt
        checked = await self._services.hooks.check_prompt(prompt, self._cancellation)
        if isinstance(checked, hook_calls.PromptBlocked):
            await self._emit(events.PromptRefused(prompt=prompt, reason=checked.reason))
        return checked

    async def _loop(self) -> Stop:
        services = self._services
        if goal := services.goals.policy:
            goal.begin_turn(self._start_index)
        while True:
            if self._cancellation.cause is not None:
                raise Cancelled
            await self._deliver_news()
            if services.prefix.late_tools is not None:
                await self._notice(await self._cancellation.run(services.prefix.add_late_tools()))
                if instructions := services.prefix.unsent_instructions(self._history.messages):
                    await self._add_message(nudge(instructions, MCP_INSTRUCTIONS))
            if limit := services.account.limit_reached():
                return _limit_reached(services.account.limits, limit)
            if limit := limit_reached(services.limits, self._used, self._num_answers):
                return _limit_reached(services.limits, limit)
            if (budget := services.budget) is not None:
                duration_s = services.clock() - self._started_at
                if rest := budget.notice(services.account, services.limits, self._used, self._num_answers, duration_s):
                    await self._add_message(nudge(rest, BUDGET))
            answer = await self._ask()
            if answer is None:
                continue
            usage = answer.usage or Usage()
            self._used = add(self._used, usage)
            services.account.use(usage, num_answers=1)
            self._num_answers += 1
            self._finish_reason = answer.finish_reason
            if answer.finish_reason == "overflow" and await self._has_compacted(is_overflow=True):
                continue
            stop = await self._handle_answer(answer)
            if stop is not None and (stop.cause != "done" or not await self._continues()):
                return self._verifier.judge_stop(stop) if self._verifier else stop

    async def _ask(self) -> Message | None:
        """Returns None after a compaction; the loop must start over."""
        services, messages = self._services, self._history.messages
        fixed = services.prefix.measure_fixed(services.asker.choice.model)
        self._relay = None
        if not services.compactor.fits(messages, fixed) and await self._has_compacted():
            return None
        services.compactor.check(messages, fixed)
        shown = services.compactor.apply_cut(messages)
        form = self._prompt.metadata.get(ANSWER_SCHEMA)
        question = ModelQuestion(
            messages=shown,
            system=fixed.system,
            tools=fixed.tools,
            session_id=services.session_id,
            prompt_id=self._prompt.id,
            json_schema=form["schema"] if form and (form["is_last"] or not fixed.tools) else None,
        )
        self._relay = asker.StreamRelay(self._emit, services.asker, self._stop_at_limit, services.prefix.kind)
        asked_at = services.clock()
        try:
            try:
                answer = await self._cancellation.run(services.asker.ask(question, self._relay))
            finally:
                self._provider_s += services.clock() - asked_at
        except ContextOverflow as error:
            if await self._has_compacted(is_overflow=True, error=error):
                return None
            error.hint = services.compactor.hint()
            raise
        except BadRequest as error:
            if notice := services.prefix.offer_less(error.message):
                await self._notice(notice)
                return None
            raise
        self._relay = None
        if answer.finish_reason != "overflow":
            services.compactor.learn_usage(shown, fixed, answer.usage)
        return answer

    async def _has_compacted(self, *, is_overflow: bool = False, error: ContextOverflow | None = None) -> bool:
        """True when a compaction changed something. Its usage counts even when it was cancelled.

        `is_overflow`: the provider refused the request, with the `error` or an answer.
        """
        from wolo.agent.compaction_run import CompactionRun  # noqa: PLC0415  # most turns fit as they are

        self._relay = None
        run = self._compaction = self._compaction or CompactionRun(self._services, self._cancellation, prompt_id=self._prompt.id)
        try:
            return await run.fit(self._history.messages, is_overflow=is_overflow, error=error) is not None
        finally:
            usage = run.take_usage()
            self._used = add(self._used, usage)
            self._services.account.use(usage)

    def _stop_at_limit(self, streamed: Usage) -> None:
        """Cancels a streaming answer that exceeds a limit."""
        services = self._services
        for limits, used in ((services.account.limits, services.account.used), (services.limits, self._used)):
            if reached := limit_reached(limits, add(used, streamed), 0):
                self._limit_stop = _limit_reached(limits, reached)
                self._cancellation.cancel(reached)
                return

    async def _handle_answer(self, answer: Message) -> Stop | None:
        """Saves the answer and runs its calls. None: ask again."""
        step = self._policy.after(answer)
        if step.save_answer:
            text, has_calls = answer.text, bool(answer.calls)
            self._answer = self._before_pause + text or self._answer
            self._before_pause = self._answer if answer.finish_reason == "paused" and not has_calls else ""
            if stop := await self._save_answer(answer, step, has_calls=has_calls):
                return stop
        await self._notice(step.notice)
        if step.nudge:
            await self._add_message(nudge(step.nudge, EMPTY_ANSWER))
        return step.stop

    async def _save_answer(self, answer: Message, step: NextStep, *, has_calls: bool) -> Stop | None:
        """Returns a stop when the result of a call ends the turn."""
        calls, messages = self._services.calls, self._history.messages
        planned = [] if step.refuse or not has_calls else calls.plan(answer)
        if planned:
            answer = answer.with_parts(call.part for call in planned)
        messages.append(answer)
        await self._emit(events.AnswerEnded(message=answer))
        if step.refuse:
            outcome, reason = step.refuse
            parts = [tool_execution.end(part, outcome, reason) if part.status == "pending" else part for part in answer.calls]
            messages[-1] = answer.with_parts(parts)
            for part in parts:
                await self._emit(events.CallEnded(message_id=answer.id, part=part))
        if not planned:
            return None
        if self._verifier is not None:
            await self._verifier.before(planned)
        batch = tool_calls.CallBatch(calls, answer.id, planned, self._cancellation)
        try:
            await batch.run(step.note, steering=self._services.steering)
        finally:
            messages[-1] = answer.with_parts(batch.parts)
        last = next((part for part in batch.parts if part.terminate and part.outcome == "ok"), None)
        if last is None:
            return None
        self._answer = last.output or self._answer
        return Stop(cause="done")

    async def _continues(self) -> bool:
        """True when something for the model came in before the turn could end. Raises Cancelled."""
        services, tasks = self._services, self._services.tasks
        if await self._deliver_steering():
            return True
        if tasks is not None:
            if tasks.holds_turn and tasks.is_running:
                await self._cancellation.run(tasks.wait())
            if tasks.has_news:
                return True
        message = None
        if finish := self._finish_check():
            is_verified = self._verifier is not None
            message = finish.ask(self._history.messages, self._start_index, is_verified=is_verified)
        if message is None and self._verifier:
            message = await self._verifier.after()
        if message is None and services.hooks.is_active:
            message = await services.hooks.on_stop(self._answer, self._times_sent_back, self._cancellation)
            self._times_sent_back += 1
        if message is None and (goal := services.goals.policy):
            message = await goal.after_answer(self._history.messages, self._cancellation)
        if message is None:
            return False
        await self._add_message(message)
        return True

    def _finish_check(self) -> FinishCheck | None:
        """None in a turn that changes no file."""
        new = self._history.messages[self._start_index :]
        changes = any(isinstance(part, ToolPart) and CHANGED in part.metadata for message in new for part in message.parts)
        return self._services.finish() if changes and self._services.finish else None

    async def _deliver_news(self) -> None:
        services = self._services
        await self._deliver_steering()
        is_begun = self._compaction is not None or len(self._history.messages) > self._start_index + 1
        if is_begun and (notice := self._mode_notice()):  # the prompt has the first one
            await self._add_message(notice)
        goal = services.goals.policy
        if goal and (message := goal.reminder(self._history.messages, services.compactor.cut.left_out)):
            await self._add_message(message)
        jobs = services.shell.jobs
        if jobs is not None and (jobs.unreported or jobs.watches) and (news := jobs.news()):
            await self._add_message(nudge("\n".join(news), JOB_ENDED))
        if services.hooks.is_active and (message := await services.hooks.news(self._cancellation)):
            await self._add_message(message)
        for message in services.tasks.take_news(self._history.messages) if services.tasks is not None else ():
            await self._add_message(message)

    def _mode_notice(self) -> Message | None:
        """Names the mode where it differs from the one that the sent messages name last; if none: from all but plan mode."""
        services = self._services
        if services.mode is None or (services.mode.in_force != PLAN and not self._history.messages):
            return None
        messages, left_out = self._history.messages, services.compactor.cut.left_out
        before, count, known = self._named_mode
        if known is not left_out:
            before, count = "", 0
        mode, before = services.mode.in_force, named_mode(messages[count:], left_out) or before
        self._named_mode = before, len(messages), left_out
        if mode == before or (mode != PLAN and not before):
            return None
        from wolo.tools.questions.present_plan import mode_notice  # noqa: PLC0415  # most conversations stay in one mode

        can_present = any(tool.name == PRESENT_PLAN for tool in services.prefix.tools)
        return mode_notice(mode, before, can_present=can_present)

    async def _deliver_steering(self) -> bool:
        """True when a message was delivered. Raises Cancelled; undelivered messages stay in the queue."""
        queue, is_delivered = self._services.steering, False
        while waiting := queue.waiting:
            checked = await self._check_prompt(waiting[0])
            if queue.withdraw(waiting[0].id) and isinstance(checked, Message):  # unless the user has withdrawn it
                try:
                    await self._add_message(checked)
                except SessionError:
                    queue.waiting = (waiting[0], *queue.waiting)
                    raise
                is_delivered = True
        return is_delivered

    async def _notice(self, text: str) -> None:
        if text:
            await self._emit(events.Noticed(text=text, level="warning"))

    async def _add_message(self, message: Message) -> None:
        await self._emit(events.MessageAdded(message=message))
        self._history.messages.append(message)

    async def _stop(self) -> Stop:
        """Saves the text received so far; an incomplete call is dropped."""
        text = self._relay.text if self._relay else ""
        if text.strip():
            self._answer, self._finish_reason = text, "interrupted"
            usage = self._relay.usage if self._relay and self._limit_stop else None
            partial = Message(role="assistant", parts=(TextPart(text=text),), finish_reason="interrupted", usage=usage)
            self._history.messages.append(partial)
            await self._emit(events.AnswerEnded(message=partial))
        if self._cancellation.cause == "blocked":
            reason = self._services.hooks.stop_reason or "No reason given."
            error = events.ErrorInfo(kind="blocked", message=f"A hook ended the turn: {reason}", hint="Completed work is kept.")
            return Stop(cause="blocked", error=error, exit_code=1)
        if self._cancellation.cause == "max_seconds":
            return _limit_reached(self._services.limits, "max_seconds")
        if self._limit_stop is not None and self._relay is not None:
            self._used = add(self._used, self._relay.usage)
            self._services.account.use(self._relay.usage)
            return self._limit_stop
        return Stop(cause="interrupted", error=events.ErrorInfo(kind="interrupted", message="Interrupted."), exit_code=130)


def _limit_reached(limits: Limits, limit: Spent) -> Stop:
    error = events.ErrorInfo(kind=limit, message=describe(limits, limit), hint="Raise the limit, or continue with -c.")
    return Stop(cause=limit, error=error, exit_code=5)
