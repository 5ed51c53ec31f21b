"""Judges, approves and runs the calls of an answer; every call gets exactly one result."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from wolo.agent import events, hook_calls, tool_execution
from wolo.agent.approvals import Approvals, AskUser, CallReviewer, Review, RunningCall
from wolo.agent.cancellation import Cancellation, Cancelled, SteeringQueue
from wolo.errors import ToolError
from wolo.guard import modes, precedence, rules
from wolo.guard.intents import CallIntent, Intent
from wolo.guard.judge import Judge
from wolo.guard.secrets.redactor import RestoredValue, ask_first
from wolo.messages.message import Message
from wolo.messages.parts import IN_FENCE, Outcome, ToolPart
from wolo.tools.tool import Tool, ToolServices, argument_fields, call_kind, locations_of
from wolo.tools.tool_values import Location, View
from wolo.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from wolo.agent.sandbox_escape import SandboxEscape

log = logging.getLogger(__name__)

MAX_PARALLEL = 8
"""Maximum number of calls at once."""


class PlannedCall(Struct, frozen=True, kw_only=True):
    """A call that was decoded and judged; without a `tool` it has already ended."""

    part: ToolPart
    tool: Tool | None = None
    args: Any = None
    """Placeholders are replaced by secrets."""
    restored: RestoredValue = RestoredValue(None)
    """Source of `args`."""
    intents: tuple[Intent, ...] = ()
    verdict: rules.Verdict | None = None
    judged_under: tuple[modes.Mode, tuple[rules.Rule, ...]] | None = None
    """Mode and rules of the verdict, for a call that no other call of the answer runs before."""

    @property
    def only_reads(self) -> bool:
        """Depends on the arguments for some tools."""
        are_reads = bool(self.intents) and all(isinstance(each, CallIntent) and each.only_reads for each in self.intents)
        return self.tool is not None and (self.tool.reads_only or are_reads)

    @property
    def runs_beside(self) -> bool:
        """Runs together with its neighbours: it only reads, or the program that offers it says so."""
        parallel: bool = getattr(self.tool, "is_parallel", self.only_reads)  # only functions of programs have it
        return parallel and self.verdict is not None and self.verdict.decision == "allow"


class EndedCall(Struct, frozen=True, kw_only=True):
    part: ToolPart
    view: View | None = None
    files_changed: tuple[str, ...] = ()
    locations: tuple[Location, ...] = ()
    denied: str = ""
    """Reason for the denial; empty when the call was not denied."""


AddInstructions = Callable[[ToolPart, str, Sequence[Intent]], Awaitable[ToolPart]]
"""Adds the instructions of folders that a call touched to its result. Also takes the id of the answer."""


class CallBatch:
    """Runs the calls of one answer. The result of a call is emitted once it and all calls before it have ended."""

    def __init__(self, calls: ToolCalls, message_id: str, planned: Sequence[PlannedCall], cancellation: Cancellation) -> None:
        self._calls, self._message_id = calls, message_id
        self._planned = list(planned)
        self._cancellation = cancellation
        self._ended: list[EndedCall | None] = [None] * len(planned)
        self._num_emitted = 0
        self._slots = asyncio.Semaphore(MAX_PARALLEL)
        self._emit_lock = asyncio.Lock()

    @property
    def parts(self) -> list[ToolPart]:
        """Ended calls, in call order."""
        return [ended.part for ended in self._ended if ended is not None]

    async def run(self, note: str = "", *, steering: SteeringQueue | None = None) -> None:
        """Runs all calls. After a cancellation, calls that have not started get the outcome `never_started`; so do those after
        the first call once `steering` holds a message.

        `note` is text for the model, appended to the last result.
        """
        at = 0
        while at < len(self._planned):
            if at and steering is not None and steering.waiting:
                for position, call in enumerate(self._planned[at:], start=at):
                    if call.tool is not None:
                        self._planned[position] = PlannedCall(
                            part=tool_execution.end(call.part, "never_started", tool_execution.SKIPPED_FOR_STEERING)
                        )
            num_beside = sum(1 for _ in takewhile(attrgetter("runs_beside"), self._planned[at:]))
            if num_beside <= 1:
                await self._run_one(at, note)
                at += 1
                continue
            try:
                async with asyncio.TaskGroup() as group:
                    for position in range(at, at + num_beside):
                        group.create_task(self._run_one(position, note))
            except BaseExceptionGroup as failed:  # only `emit` can fail; its first failure cancels the others
                raise failed.exceptions[0] from None
            at += num_beside

    async def _run_one(self, at: int, note: str) -> None:
        async with self._slots:
            ended = await self._calls.run(self._message_id, self._planned[at], self._cancellation)
            if note and at == len(self._planned) - 1:
                ended = replace(ended, part=replace(ended.part, output=f"{ended.part.output}\n\n{note}"))
            self._ended[at] = ended
            async with self._emit_lock:
                while self._num_emitted < len(self._ended) and (following := self._ended[self._num_emitted]) is not None:
                    # In call order: the first result with a placeholder explains it to the model.
                    part = self._calls.services.secrets.explain_once(following.part)
                    following = self._ended[self._num_emitted] = replace(following, part=part)
                    if following.denied:
                        await self._calls.emit(events.CallDenied(part=part, reason=following.denied))
                    end_event = events.CallEnded(
                        message_id=self._message_id,
                        part=part,
                        view=following.view,
                        files_changed=following.files_changed,
                        locations=following.locations,
                    )
                    await self._calls.emit(end_event)
                    self._num_emitted += 1


class ToolCalls:
    """`plan` has no side effects; a `CallBatch` runs the plan. One instance serves all turns of an agent."""

    def __init__(
        self,
        toolbox: Toolbox,
        services: ToolServices,
        judge: Judge,
        *,
        emit: tool_execution.Emit,
        ask_user: AskUser | None,
        hooks: hook_calls.AgentHooks,
        reviewer: CallReviewer | None = None,
        add_instructions: AddInstructions | None = None,
    ) -> None:
        self._hooks, self._toolbox, self.services = hooks, toolbox, services
        self._judge, self.emit = judge, emit
        self._approvals = Approvals(ask_user, judge, services, hooks, emit) if ask_user else None
        self._reviewer = reviewer
        self._escape: SandboxEscape | None = None
        """None: no call was sandboxed so far."""
        self._add_instructions = add_instructions

    # Before the answer is saved

    def plan(self, answer: Message) -> list[PlannedCall]:
        """Decodes and judges all calls of an answer; the verdicts are saved with the answer."""
        planned = [self._plan_one(part) for part in answer.calls]
        return [replace(call, judged_under=(self._judge.mode, self._judge.rules)) for call in planned[:1]] + planned[1:]

    def _plan_one(self, part: ToolPart) -> PlannedCall:
        if part.status != "pending":
            return PlannedCall(part=part)
        try:
            name, arguments = self._toolbox.own_call(part.tool, part.input)
            if name != part.tool or arguments is not part.input:
                # The model reads its call as one of ours from now on, under the id that it chose
                raw_input = part.raw_input if arguments == part.input else ""
                part = replace(part, tool=name, input=dict(arguments), raw_input=raw_input)
            restored = self.services.secrets.restore(self._toolbox.unwrap(part.tool, part.input))
            tool, args = self._toolbox.decode(part.tool, restored.value)
        except ToolError as error:
            return PlannedCall(part=tool_execution.end(part, "invalid", self.services.secrets.hide(error.message)))
        part = replace(part, kind=call_kind(tool, args))
        call = PlannedCall(part=part, tool=tool, args=args, restored=restored)
        try:
            intents, verdict = self._judge_call(call, tool)
        except Exception as error:
            return PlannedCall(part=self.services.secrets.hide_part(_not_judgeable(part, error)))
        verdict = verdict if self._approvals else verdict.without_person()
        log.debug("%s: %s, because %s", tool.name, verdict.decision, verdict.reason or verdict.source)
        saved = {"decision": verdict.decision, "reason": verdict.reason, "rule": verdict.rule, "source": verdict.source}
        marked = replace(part, metadata={**part.metadata, "verdict": saved})
        return replace(call, part=marked, intents=intents, verdict=verdict)

    def _judge_call(
        self, call: PlannedCall, tool: Tool, response: hook_calls.HookResponse = hook_calls.NOTHING
    ) -> tuple[tuple[Intent, ...], rules.Verdict]:
        """Judges the arguments with secrets, and redacts the reason of the verdict."""
        intents = tuple(tool.intents(call.args, self.services))
        verdict = self._judge.judge(tool.name, intents, call.part.input)
        if response.decision == "allow" and verdict.decision == "ask":
            verdict = self._judge.as_if_allowed(intents, verdict, "hook")
        elif response.decision == "ask" and verdict.decision != "deny":
            reason = response.reason or "A hook requires approval."
            if verdict.decision == "ask":
                verdict = replace(verdict, reason=f"{reason} {verdict.reason}")
            else:
                verdict = replace(verdict, decision="ask", reason=reason, rule="", source="hook")
        verdict = ask_first(verdict, intents, call.restored, asks_nobody=self._judge.mode.trusts_commands)
        if call.part.metadata.get(IN_FENCE) and verdict.decision != "deny":
            reason = f"{tool_execution.MAY_BE_EXAMPLE} {verdict.reason if verdict.decision == 'ask' else ''}".rstrip()
            verdict = replace(verdict, decision="ask", reason=reason, rule="", source=IN_FENCE)
        return intents, replace(verdict, reason=self.services.secrets.hide(verdict.reason))

    # After the answer is saved

    async def run(self, message_id: str, call: PlannedCall, cancellation: Cancellation) -> EndedCall:
        """Runs hooks, approval and the tool. Raises only what `emit` raises."""
        if call.tool is None:
            return EndedCall(part=call.part)
        try:
            response = hook_calls.NOTHING
            if self._hooks.is_active:
                response = await self._hooks.run("PreToolUse", cancellation, **_hook_view(call, call.tool).payload)
            ended = await self._run_with_hooks(response, message_id, call, call.tool, cancellation)
        except ToolError as error:
            ended = EndedCall(
                part=tool_execution.end(call.part, "error", tool_execution.WRONGLY_CHANGED.format(reason=error.message))
            )
        except Cancelled:
            ended = EndedCall(part=tool_execution.end(call.part, "never_started", tool_execution.NEVER_STARTED))
        part = replace(ended.part, input=call.part.input)
        if self._hooks.is_active:
            part = self._hooks.end_call(part, cancellation)
        return self._redact(replace(ended, part=part, locations=locations_of(call.args, call.intents, ended.view)))

    async def _run_with_hooks(
        self, response: hook_calls.HookResponse, message_id: str, call: PlannedCall, tool: Tool, cancellation: Cancellation
    ) -> EndedCall:
        """Raises ToolError when hooks changed the arguments to invalid ones, and Cancelled."""
        if response.decision == "deny":
            return _deny_by_hook(call.part, response.reason)
        if response.updated_input is not None:
            call = self._with_arguments(call, response.updated_input)
        decided = await self._decide(call, tool, response, cancellation)
        is_changed = response.updated_input is not None
        if isinstance(decided, PlannedCall):
            is_changed = is_changed or decided.part.input is not call.part.input
            call = decided
        ended = decided if isinstance(decided, EndedCall) else await self._run_tool(message_id, decided, tool, cancellation)
        if (approved := ended.part.metadata.get(hook_calls.APPROVED_INPUT)) is not None:
            text = tool_execution.CHANGED_BY_PERSON.format(arguments=json.dumps(approved, ensure_ascii=False))
            ended = replace(ended, part=replace(ended.part, output=f"{ended.part.output}\n\n{text}"))
            is_changed = False
        if not self._hooks.is_active:
            return ended
        ended = self._redact(ended)
        part = hook_calls.with_hook_text(ended.part, replace(response, decision=""), is_changed=is_changed)
        result = hook_calls.HookedResult(part=part, view=ended.view, files_changed=ended.files_changed)
        with suppress(Cancelled):  # the result is valid even if the hooks after the call are interrupted
            part = await self._run_post_hooks(_hook_view(call, tool), result, cancellation)
        return replace(ended, part=part)

    def _with_arguments(self, call: PlannedCall, arguments: Mapping[str, Any]) -> PlannedCall:
        hidden = self.services.secrets.hide_value(dict(arguments))
        given = self.services.secrets.restore(hidden)
        _, args = self._toolbox.decode(call.part.tool, self._toolbox.unwrap(call.part.tool, given.value))
        return replace(call, part=replace(call.part, input=hidden), args=args, restored=given)

    async def _run_post_hooks(
        self, call: hook_calls.HookedCall, result: hook_calls.HookedResult, cancellation: Cancellation
    ) -> ToolPart:
        """Attributes changes that hooks make to the call's files, such as formatting, to the call."""
        from wolo.tools.command_tracking import ChangeTracking  # noqa: PLC0415  # most users have no hooks

        looks = ChangeTracking(self.services.for_call(result.part.wire_id, lambda text: None)) if result.files_changed else None
        try:
            if looks is not None:
                await looks.before()
        except ToolError:
            looks = None  # the user's hook runs even if its changes cannot be undone
        try:
            return await self._hooks.after_call(call, result, cancellation)
        finally:
            if looks is not None:
                await asyncio.to_thread(looks.after)

    async def _decide(
        self, call: PlannedCall, tool: Tool, response: hook_calls.HookResponse, cancellation: Cancellation
    ) -> PlannedCall | EndedCall:
        """Returns the call that may run, or its denial.

        The call is judged again, because earlier calls of the answer may have changed the verdict. An approval holds only for the
        intents that the user saw.
        """
        part = call.part
        may_read = call.only_reads and call.verdict is not None and call.verdict.decision == "allow"
        if may_read and call.judged_under == (self._judge.mode, self._judge.rules) and not self._hooks.is_active:
            return call  # it opens what was judged; what a command opens may have changed since the answer arrived
        approved: tuple[Intent, ...] | None = None
        reviewed: tuple[Intent, ...] | None = None
        review: Review | None = None
        are_hooks_asked = False
        while True:
            try:
                intents, verdict = self._judge_call(replace(call, part=part), tool, response)
            except Exception as error:
                return EndedCall(part=_not_judgeable(part, error))
            if verdict.decision == "ask" and intents != approved and not are_hooks_asked:
                are_hooks_asked = True
                payload = {**_hook_view(call, tool).payload, "reason": verdict.reason}
                hook = await self._hooks.run("PermissionRequest", cancellation, **payload)
                if hook.decision == "deny":
                    return _deny_by_hook(part, hook.reason)
                if hook.decision == "allow" and response.decision != "ask":
                    if hook.updated_input is not None:
                        call = self._with_arguments(replace(call, part=part), hook.updated_input)
                        part = call.part
                    response = hook
                    continue
            if self._reviewer is not None and intents != approved and response.decision != "ask":
                most = self._reviewer.most(intents, verdict, has_secrets=bool(call.restored.names))
                if most is not None and review is None:
                    review = await cancellation.run(self._reviewer.review(part, verdict, most))
                    reviewed, said = intents, {"answer": "yes" if review.verdict else "no", "reason": review.reason}
                    part = replace(part, metadata={**part.metadata, "review": said})
                    continue
                if most is not None and review is not None and review.verdict is not None and intents == reviewed:
                    part = replace(part, metadata={**part.metadata, "decided_by": "model"})
                    return replace(call, part=part, intents=intents, verdict=review.verdict)
            if verdict.decision == "deny" or (verdict.decision == "ask" and not self._approvals):
                return await self._deny_by_rule(replace(call, part=part), tool, verdict, cancellation)
            if verdict.decision == "allow" or intents == approved:
                decided_by = {} if approved is None else {"decided_by": "person"}
                part = replace(part, metadata={**part.metadata, **decided_by})
                return replace(call, part=part, intents=intents, verdict=verdict)
            assert self._approvals is not None  # without a user no call asks
            answer = await self._approvals.ask(part, tool, call.args, intents, verdict, cancellation)
            if answer.is_dismissed:
                return _deny(part, "denied_by_person", tool_execution.NOT_ANSWERED, tool_execution.NOT_ANSWERED)
            if not answer.allowed:
                return _deny(part, "denied_by_person", answer.reason or tool_execution.NO_REASON, tool_execution.DENIED_BY_PERSON)
            approved = intents
            if answer.input is not None:
                call = self._with_arguments(replace(call, part=part), answer.input)
                approved = tuple(tool.intents(call.args, self.services))
                part = replace(call.part, metadata={**call.part.metadata, hook_calls.APPROVED_INPUT: call.part.input})

    async def _deny_by_rule(self, call: PlannedCall, tool: Tool, verdict: rules.Verdict, cancellation: Cancellation) -> EndedCall:
        if verdict.decision == "deny" and verdict.source == modes.PLANNING:  # what the model was told, not a decision about it
            return EndedCall(
                part=tool_execution.end(call.part, "denied_by_rule", tool_execution.READ_ONLY.format(reason=verdict.reason))
            )
        verdict = verdict if verdict.decision == "deny" else verdict.without_person()
        reply = tool_execution.NOT_CONFIRMED if verdict.source == IN_FENCE else tool_execution.DENIED_BY_RULE
        denied = _deny(call.part, "denied_by_rule", verdict.reason, reply)
        part = await self._hooks.on_denial(_hook_view(call, tool), denied.part, verdict.reason, cancellation)
        return replace(denied, part=part)

    async def _run_tool(self, message_id: str, call: PlannedCall, tool: Tool, cancellation: Cancellation) -> EndedCall:
        if cancellation.cause is not None:
            raise Cancelled
        await (secrets := self.services.secrets).scan_workspace()
        self.services.sandbox.prepare()
        part = replace(call.part, status="running", start_time=time.time())
        places = self.services.secrets.hide_structs(locations_of(call.args, call.intents))
        await self.emit(events.CallStarted(message_id=message_id, part=part, locations=places))
        progress = tool_execution.LiveProgress(part.id, self.emit, secrets.stream())
        escape: SandboxEscape | None = None
        if call.verdict is not None and call.verdict.confined:
            from wolo.agent.sandbox_escape import SandboxEscape, ask_host  # noqa: PLC0415  # for the first sandboxed call

            escape = self._escape = self._escape or SandboxEscape(self._judge.grants)
        name = precedence.fingerprint(tool.name, call.intents, part.input) if escape else ""
        confined = escape is not None and not escape.is_allowed(name)
        only_reads = call.verdict is not None and call.verdict.source == precedence.SAFE
        context = self.services.for_call(
            part.wire_id, progress.add, call.intents, confined=confined, only_reads=only_reads, part_id=part.id
        )

        running = RunningCall(tool, part, call.args, call.intents, self._approvals, cancellation)
        if escape is not None and self._approvals is not None:
            context = replace(context, ask_host=partial(ask_host, running, self._judge.grants))
        try:
            result = await running.run(context)
            if escape is not None:
                may_leave = self._approvals is not None and self._judge.confine != "always"
                result = await escape.retry_outside(name, result, context, running, may_ask=may_leave)
        finally:
            await progress.close()
        secrets.rescan(call.intents, result.files_changed)
        part, denied = tool_execution.finish_part(part, result), escape.why_it_never_ran(result, context) if escape else ""
        if self._add_instructions is not None and part.outcome == "ok":
            part = await self._add_instructions(part, message_id, call.intents)
        return EndedCall(part=part, view=result.view, files_changed=result.files_changed, denied=denied)

    def _redact(self, ended: EndedCall) -> EndedCall:
        secrets = self.services.secrets
        part = secrets.hide_part(replace(ended.part, metadata=secrets.hide_value(ended.part.metadata)))
        view = ended.view and secrets.hide_fields(ended.view)
        files, places = tuple(map(secrets.hide, ended.files_changed)), secrets.hide_structs(ended.locations)
        return replace(ended, part=part, view=view, files_changed=files, locations=places, denied=secrets.hide(ended.denied))


def _hook_view(call: PlannedCall, tool: Tool) -> hook_calls.HookedCall:
    """Uses the canonical names of tool and arguments."""
    arguments = call.args
    if isinstance(arguments, Struct):
        given = (field for field in argument_fields(type(arguments)) if getattr(arguments, field.name) != field.default)
        arguments = {field.name: to_builtins(getattr(arguments, field.name)) for field in given}
    return hook_calls.HookedCall(id=call.part.id, tool=tool.name, arguments=arguments)


def _not_judgeable(part: ToolPart, error: Exception) -> ToolPart:
    """Ends a call whose intents cannot be determined; it does not run."""
    if isinstance(error, ToolError):
        return tool_execution.end(part, "error", error.message)
    log.error("cannot determine the effects of a call of %s", part.tool, exc_info=error)
    return tool_execution.end(part, "error", tool_execution.crash_text(part.tool, error))


def _deny(part: ToolPart, outcome: Outcome, reason: str, template: str) -> EndedCall:
    return EndedCall(part=tool_execution.end(part, outcome, template.format(reason=reason)), denied=reason)


def _deny_by_hook(part: ToolPart, reason: str) -> EndedCall:
    part = replace(part, metadata={**part.metadata, "decided_by": "hook"})
    return _deny(part, "denied_by_rule", reason, tool_execution.DENIED_BY_HOOK)
