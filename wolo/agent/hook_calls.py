"""Runs the user's hooks for an agent and applies their answers; without hooks every method returns at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from wolo.agent.cancellation import Cancellation
from wolo.agent.events import ErrorInfo, HookAwaited, Noticed
from wolo.agent.tool_execution import CHANGED_BY_HOOK, FROM_HOOK, Emit
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.message import HOOK_OUTPUT, SENT_BACK, Message, nudge
from wolo.messages.parts import TextPart, ToolPart
from wolo.tools.tool_values import HookDecision, HookReply, View

T = TypeVar("T")
NEWS = "news"
"""Asks for the output of background hooks, and lets hooks look for changed files; no event that hooks can have."""
HOOKS = "hooks"
"""Metadata key of hook responses, in calls and in messages that hooks add."""
APPROVED_INPUT = "approved_input"
"""Metadata key of the arguments that the user put in place of a call's when approving it."""
ReportSlow = Callable[[Sequence[str]], Awaitable[None]]
"""Receives the commands of hooks that take long."""
STOP_FAILURES = {
    "rate_limited": "rate_limit",
    "quota": "billing_error",
    "auth": "authentication_failed",
    "bad_request": "invalid_request",
    "context_overflow": "invalid_request",
    "content_refused": "invalid_request",
    "unavailable": "server_error",
    "output_limit": "max_output_tokens",
}
"""Kinds of errors in Claude Code's words."""
MAX_STOP_RETRIES = 3
"""Maximum number of times per turn that Stop hooks may make the model continue."""
CONTEXT = "<hook_context>\n{text}\n</hook_context>"
"""Wraps text that hooks add to a prompt."""


class RunHook(Protocol):
    """Runs all hooks of an event. Must not raise; a cancellation ends them."""

    def __call__(self, event: str, payload: Mapping[str, Any], slow: ReportSlow) -> Coroutine[Any, Any, HookReply]:
        """`slow` receives the commands that take long."""


class HookResponse(Struct, frozen=True, kw_only=True):
    """The answer of hooks, with secrets redacted except in `updated_input`."""

    decision: HookDecision = ""
    reason: str = ""
    context: str = ""
    updated_input: Mapping[str, Any] | None = None
    updated_output: str | None = None
    stops: bool = False
    stop_reason: str = ""


NOTHING = HookResponse()


class HookedCall(Struct, frozen=True, kw_only=True):
    """A call as hooks receive it: the canonical tool name and the decoded arguments."""

    id: str
    tool: str
    arguments: Mapping[str, Any]

    @property
    def payload(self) -> dict[str, Any]:
        return {"tool_name": self.tool, "tool_input": dict(self.arguments), "tool_use_id": self.id}


class HookedResult(Struct, frozen=True, kw_only=True):
    """A result as hooks receive it."""

    part: ToolPart
    view: View | None
    files_changed: Sequence[str]

    @property
    def payload(self) -> dict[str, Any]:
        part = self.part
        took_s = (part.end_time or 0) - (part.start_time or part.end_time or 0)
        return {
            "output": part.output,
            "is_error": part.is_error,
            "files_changed": list(self.files_changed),
            "view": to_builtins(self.view),
            "duration_ms": round(took_s * 1000),
        }


class PromptBlocked(Struct, frozen=True):
    """A hook blocked the prompt."""

    reason: str


class AgentHooks:
    """The hooks of one agent. All of them run through `run`; the other methods build the payload of one event."""

    def __init__(self, run: RunHook | None, emit: Emit, secrets: Secrets) -> None:
        self._run = run
        self.is_active = run is not None
        self._emit, self._secrets = emit, secrets
        self._responses: dict[str, dict[str, HookResponse]] = {}
        """Responses for calls that have not ended, by call id and event."""
        self.stop_reason: str | None = None
        """Shown to the user; None: no hook ended the turn."""
        self._ends_turn = False
        self._pending_context = ""
        """Context from SessionStart hooks, added to the first prompt that is not blocked."""

    async def run(self, event: str, cancellation: Cancellation | None = None, **payload: Any) -> HookResponse:
        """Raises Cancelled when cancelled; the hooks are then ended. A hook that ends the turn cancels it."""
        if self._run is None:
            return NOTHING

        async def slow(commands: Sequence[str]) -> None:
            hidden = tuple(map(self._secrets.hide, commands))
            await self._emit(HookAwaited(hook=event, commands=hidden))

        work = self._run(event, payload, slow)
        answer = await (cancellation.run(work) if cancellation else work)
        hide = self._secrets.hide
        for notice in answer.notices:
            await self._emit(Noticed(text=hide(notice), level="warning"))
        response = HookResponse(
            decision=answer.decision,
            reason=hide(answer.reason),
            context=hide(answer.context),
            updated_input=answer.updated_input,
            updated_output=None if answer.updated_output is None else hide(answer.updated_output),
            stops=answer.stops,
            stop_reason=hide(answer.stop_reason),
        )
        if response != NOTHING and "tool_use_id" in payload:
            self._responses.setdefault(payload["tool_use_id"], {})[event] = response
        if response.stops and cancellation is not None:
            self.stop_reason = response.stop_reason
            cancellation.cancel("blocked")
        return response

    def end_turn(self, reason: str) -> None:
        """Ends the turn after the running call, because a hook ended the turn of its subagent."""
        self.stop_reason, self._ends_turn = reason, True

    def end_call(self, part: ToolPart, cancellation: Cancellation) -> ToolPart:
        """Stores the responses in the call's metadata, for replays. Cancels the turn that a hook of a subagent ended."""
        if self._ends_turn:
            self._ends_turn = False
            cancellation.cancel("blocked")
        if not (responses := self._responses.pop(part.id, {})):
            return part
        saved = self._secrets.hide_value({event: to_builtins(each) for event, each in responses.items()})
        return replace(part, metadata={**part.metadata, HOOKS: saved})

    # Prompts

    async def check_prompt(self, prompt: Message, cancellation: Cancellation) -> Message | PromptBlocked:
        """Returns the prompt with the context that hooks add, or PromptBlocked. The context is stored in the prompt, so requests
        keep their prefix."""
        started = await self.run("SessionStart", cancellation)
        if started.stops:
            return PromptBlocked(started.stop_reason)
        self._pending_context = started.context or self._pending_context
        response = await self.run("UserPromptSubmit", cancellation, prompt=prompt.text)
        if response.decision == "deny":
            return PromptBlocked(response.reason)
        added, self._pending_context = "\n\n".join(filter(None, (self._pending_context, response.context))), ""
        if not added:
            return prompt
        return replace(prompt, parts=(*prompt.parts, TextPart(text=f"\n\n{CONTEXT.format(text=added)}")))

    async def on_stop(self, answer: str, times: int, cancellation: Cancellation) -> Message | None:
        """Returns a message that makes the model continue; None when it may stop."""
        if times >= MAX_STOP_RETRIES:
            return None
        response = await self.run("Stop", cancellation, stop_hook_active=times > 0, last_assistant_message=answer)
        text = "\n\n".join(filter(None, (response.reason if response.decision == "deny" else "", response.context)))
        return nudge(FROM_HOOK.format(text=text), SENT_BACK, **{HOOKS: to_builtins(response)}) if text else None

    async def on_failure(self, error: ErrorInfo) -> None:
        kind = STOP_FAILURES.get(error.kind, "unknown")
        details = " ".join(filter(None, (str(error.status or ""), error.code, error.hint)))
        await self.run("StopFailure", error=kind, error_details=details, last_assistant_message=error.message)

    async def news(self, cancellation: Cancellation) -> Message | None:
        """Returns what background hooks, and hooks about changed files, tell the model."""
        response = await self.run(NEWS, cancellation)
        return nudge(FROM_HOOK.format(text=response.context), HOOK_OUTPUT) if response.context else None

    # Calls

    async def on_denial(self, call: HookedCall, part: ToolPart, reason: str, cancellation: Cancellation) -> ToolPart:
        """Returns the denied call with the text that hooks add."""
        response = await self.run("PermissionDenied", cancellation, **call.payload, reason=reason)
        return with_hook_text(part, replace(response, decision="", updated_output=None))

    async def after_call(self, call: HookedCall, ended: HookedResult, cancellation: Cancellation) -> ToolPart:
        """Returns the result with the text that hooks add."""
        part = ended.part
        if part.outcome not in ("ok", "error"):
            return part
        event = "PostToolUse" if part.outcome == "ok" else "PostToolUseFailure"
        return with_hook_text(part, await self.run(event, cancellation, **call.payload, tool_response=ended.payload))

    async def notify_while(self, kind: str, message: str, work: Awaitable[T]) -> T:
        """Runs Notification hooks while the user is asked; the answer does not wait for them."""
        if self._run is None:
            return await work
        telling = asyncio.ensure_future(self.run("Notification", notification_type=kind, message=message))
        try:
            return await work
        finally:
            telling.cancel()
            with suppress(asyncio.CancelledError):
                await telling


def with_hook_text(part: ToolPart, response: HookResponse, *, is_changed: bool = False) -> ToolPart:
    """Appends hook text to a result; `is_changed`: hooks replaced the arguments."""
    if is_changed:
        words = CHANGED_BY_HOOK.format(arguments=json.dumps(part.input, ensure_ascii=False))
        part = replace(part, output=f"{part.output}\n\n{words}")
    if response.updated_output is not None:
        part = replace(part, output=response.updated_output)
    reason = response.reason if response.decision == "deny" else ""
    text = "\n\n".join(filter(None, (reason, response.context)))
    return replace(part, output=f"{part.output}\n\n{FROM_HOOK.format(text=text)}") if text else part


def changed_inputs(part: ToolPart) -> Iterator[dict[str, Any]]:
    """Arguments by which the user or hooks replaced those of a saved call, the last ones first."""
    if isinstance(approved := part.metadata.get(APPROVED_INPUT), dict):
        yield dict(approved)
    saved = part.metadata.get(HOOKS)
    responses = saved if isinstance(saved, dict) else {}
    changed = (responses.get(event, {}).get("updated_input") for event in ("PermissionRequest", "PreToolUse"))
    yield from (dict(each) for each in changed if each is not None)
