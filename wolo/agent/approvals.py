"""Asks the user to approve a call, and remembers the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from wolo.agent.cancellation import Cancellation
from wolo.agent.events import ApprovalAsked, ApprovalGiven, SandboxState
from wolo.agent.hook_calls import AgentHooks
from wolo.agent.tool_execution import Emit, run_guarded
from wolo.guard.intents import Intent, RunIntent
from wolo.guard.judge import Judge
from wolo.guard.rules import Verdict
from wolo.messages.parts import IN_FENCE, ToolPart, new_id
from wolo.tools.tool import CallContext, Tool, ToolServices, locations_of, preview
from wolo.tools.tool_values import CallResult

AskUser = Callable[[ApprovalAsked], Awaitable[ApprovalGiven]]


class Review(Struct, frozen=True):
    verdict: Verdict | None
    """None: the user decides."""
    reason: str


class CallReviewer(Protocol):
    """Approves calls in place of the user; `reviewer.py` has the only one."""

    def most(self, intents: Sequence[Intent], verdict: Verdict, *, has_secrets: bool) -> Verdict | None:
        """The verdict that a yes would lead to; None: only the user can approve this."""

    async def review(self, part: ToolPart, verdict: Verdict, most: Verdict) -> Review:
        """Raises only what `emit` raises."""


class Approvals:
    """The approvals of an agent whose user can be asked."""

    def __init__(self, ask_user: AskUser, judge: Judge, services: ToolServices, hooks: AgentHooks, emit: Emit) -> None:
        self._ask_user, self._judge, self._services = ask_user, judge, services
        self._secrets = services.secrets
        self._hooks, self._emit = hooks, emit

    async def ask(
        self, part: ToolPart, tool: Tool, args: Any, intents: Sequence[Intent], verdict: Verdict, cancellation: Cancellation
    ) -> ApprovalGiven:
        """Asks about a call that the verdict does not allow. Raises Cancelled."""
        secrets = self._secrets
        rule, denial, no_rule = "", "", ""  # no rule for a call that may be an example
        if verdict.source != IN_FENCE:
            rule, denial = self._judge.suggest_rule(intents), self._judge.suggest_denial(intents)
            no_rule = self._judge.why_no_rule(intents)
        rule, denial = (each if secrets.hide(each) is each else "" for each in (rule, denial))  # it is saved in the settings
        reason = verdict.reason if rule else secrets.hide(f"{verdict.reason} {no_rule}".rstrip())
        walls: SandboxState = "inside" if verdict.confined else "outside"
        approval = await self.request(part, tool, args, intents, reason, cancellation, rule=rule, denial=denial, walls=walls)
        if approval.is_dismissed:
            return approval
        if approval.scope != "once" or not approval.allowed:  # a denial is remembered until the next prompt
            offered = rule if approval.allowed else denial
            saved = approval.rule or (offered if approval.scope in ("always", "everywhere") else "")
            self._judge.remember(tool.name, intents, part.input, allowed=approval.allowed, rule=saved, reason=approval.reason)
        return approval

    async def request(
        self,
        part: ToolPart,
        tool: Tool,
        args: Any,
        intents: Sequence[Intent],
        reason: str,
        cancellation: Cancellation,
        *,
        rule: str = "",
        denial: str = "",
        walls: SandboxState,
    ) -> ApprovalGiven:
        """Raises Cancelled."""
        from wolo.tools.editing.drawn_arguments import arguments_in_view  # noqa: PLC0415  # most turns ask for nothing

        shown = tuple(map(self._secrets.hide_intent, intents))
        held = walls if any(isinstance(intent, RunIntent) for intent in intents) else ""
        view = await asyncio.to_thread(preview, tool, args, self._services)
        request = ApprovalAsked(
            id=new_id("ask"),
            part=part,
            intents=shown,
            view=view and self._secrets.hide_fields(view),
            locations=self._secrets.hide_structs(locations_of(args, intents, view)),
            reason=reason,
            rule=rule,
            denial=denial,
            walls=held,
            in_view=tuple(arguments_in_view(part.input, args, view)),
        )
        notice = f"{part.tool} needs your approval"
        waiting = self._hooks.notify_while("permission_prompt", notice, self._ask_user(request))
        approval = await cancellation.run(waiting)
        await self._emit(approval)
        return approval


class RunningCall:
    """Runs a call, and asks the user about it. Both raise Cancelled."""

    def __init__(
        self,
        tool: Tool,
        part: ToolPart,
        args: Any,
        intents: Sequence[Intent],
        approvals: Approvals | None,
        cancellation: Cancellation,
    ) -> None:
        self._tool, self._part, self._args, self._intents = tool, part, args, intents
        self._approvals, self._cancellation = approvals, cancellation

    async def run(self, context: CallContext) -> CallResult:
        return await self._cancellation.run(run_guarded(self._tool, self._args, context))

    async def ask(self, reason: str, walls: SandboxState, *more: Intent) -> ApprovalGiven:
        """`more` are effects that it would have beside those of the call."""
        assert self._approvals is not None
        intents = (*self._intents, *more)
        return await self._approvals.request(self._part, self._tool, self._args, intents, reason, self._cancellation, walls=walls)
