"""What the loop tells a person's hooks, and what it hears from them: without any hooks, nothing at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from wolo.agent.cancellation import Cancellation
from wolo.agent.events import Event, HookAwaited, Noticed
from wolo.agent.tool_execution import CHANGED_BY_HOOK, FROM_HOOK
from wolo.guard.rules import Verdict
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.message import SENT_BACK, Message, nudge
from wolo.messages.parts import TextPart, ToolPart
from wolo.tools.tool_values import View

T = TypeVar("T")
HOOKS = "hooks"
"""Under this name the metadata of a call, and of a word by which the model was sent back, keep what was heard."""
HookDecision = Literal["", "allow", "ask", "deny"]
MAX_STOP_RETRIES = 3
"""How often in a turn hooks may send the model back to work."""
CONTEXT = "<hook_context>\n{text}\n</hook_context>"
"""How the model is told, with a prompt, what hooks add to it."""


class HookAnswer(Protocol):
    """What the hooks of one event say together."""

    @property
    def decision(self) -> HookDecision: ...
    @property
    def reason(self) -> str: ...
    @property
    def context(self) -> str:
        """For the model."""
        ...

    @property
    def updated_input(self) -> Mapping[str, Any] | None:
        """The arguments a call is to have instead."""
        ...

    @property
    def updated_output(self) -> str | None:
        """What the model is to read as the result of a call instead."""
        ...

    @property
    def stops(self) -> bool:
        """The turn ends here."""
        ...

    @property
    def stop_reason(self) -> str:
        """For the person, where it ends."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """For the person."""
        ...


class RunHook(Protocol):
    """Runs all hooks of an event. Must not raise; a cancellation ends them."""

    async def __call__(
        self, event: str, payload: Mapping[str, Any], slow: Callable[[Sequence[str]], Awaitable[None]]
    ) -> HookAnswer:
        """`slow` hears which commands take their time."""
        ...


class HookResponse(Struct, frozen=True, kw_only=True):
    """What hooks have said, without secrets but in the arguments of a call."""

    decision: HookDecision = ""
    reason: str = ""
    context: str = ""
    updated_input: Mapping[str, Any] | None = None
    updated_output: str | None = None
    stops: bool = False
    stop_reason: str = ""


NOTHING = HookResponse()


class HookedCall(Struct, frozen=True, kw_only=True):
    """A call as hooks are told of it: by the tool's own name, with the arguments that the tool gets."""

    id: str
    tool: str
    arguments: Mapping[str, Any]

    @property
    def told(self) -> dict[str, Any]:
        return {"tool_name": self.tool, "tool_input": dict(self.arguments), "tool_use_id": self.id}


class HookedResult(Struct, frozen=True, kw_only=True):
    """A result as hooks are told of it."""

    part: ToolPart
    view: View | None
    files_changed: Sequence[str]

    @property
    def told(self) -> dict[str, Any]:
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
    """A prompt that hooks keep back."""

    reason: str


class Hooks:
    """Of one agent. `at` is the one way to them; what is below says what an event is told."""

    def __init__(self, run: RunHook | None, emit: Callable[[Event], Awaitable[None]], secrets: Secrets) -> None:
        self._run = run
        self._emit = emit
        self._secrets = secrets
        self._heard: dict[str, dict[str, HookResponse]] = {}
        """Of calls that have not ended, by id and event."""
        self.stop_reason: str | None = None
        """Why a hook ended the turn, for the person; None: none did."""
        self._ends_turn = False
        self._pending_context = ""
        """What was added at the beginning of the session, until a prompt is let through that can carry it."""

    @property
    def is_active(self) -> bool:
        return self._run is not None

    async def at(self, event: str, cancellation: Cancellation | None = None, **payload: Any) -> HookResponse:
        """Raises Cancelled when the cancellation is pulled: the hooks are ended then. A hook that ends the turn pulls it."""
        if self._run is None:
            return NOTHING

        async def slow(commands: Sequence[str]) -> None:
            hidden = tuple(map(self._secrets.hide, commands))
            await self._emit(HookAwaited(hook=event, commands=hidden))

        said = await (
            cancellation.run(_run(self._run, event, payload, slow)) if cancellation else self._run(event, payload, slow)
        )
        hide = self._secrets.hide
        for notice in said.notices:
            await self._emit(Noticed(text=hide(notice), level="warning"))
        response = HookResponse(
            decision=said.decision,
            reason=hide(said.reason),
            context=hide(said.context),
            updated_input=said.updated_input,
            updated_output=None if said.updated_output is None else hide(said.updated_output),
            stops=said.stops,
            stop_reason=hide(said.stop_reason),
        )
        if response != NOTHING and "tool_use_id" in payload:
            self._heard.setdefault(payload["tool_use_id"], {})[event] = response
        if response.stops and cancellation is not None:
            self.stop_reason = response.stop_reason
            cancellation.cancel("blocked")
        return response

    def end_turn(self, reason: str) -> None:
        """The turn ends with the call that runs: a hook has ended the work of an agent that this one gave a task."""
        self.stop_reason, self._ends_turn = reason, True

    def cancel_if_ended(self, cancellation: Cancellation) -> None:
        if self._ends_turn:
            self._ends_turn = False
            cancellation.cancel("blocked")

    def with_record(self, part: ToolPart) -> ToolPart:
        """The call with what was heard of it, for whoever plays it again."""
        response = self._heard.pop(part.id, {})
        if not response:
            return part
        said = self._secrets.hide_value({event: to_builtins(each) for event, each in response.items()})
        return replace(part, metadata={**part.metadata, HOOKS: said})

    # Prompts

    async def check_prompt(self, prompt: Message, cancellation: Cancellation) -> Message | PromptBlocked:
        """The prompt as it may be sent. What hooks add stands in it, so that requests go on as they began."""
        if self._run is None:
            return prompt
        began = await self.at("SessionStart", cancellation)
        if began.stops:
            return PromptBlocked(began.stop_reason)
        self._pending_context = began.context or self._pending_context
        response = await self.at("UserPromptSubmit", cancellation, prompt=prompt.text)
        if response.decision == "deny":
            return PromptBlocked(response.reason)
        added, self._pending_context = "\n\n".join(filter(None, (self._pending_context, response.context))), ""
        if not added:
            return prompt
        return replace(prompt, parts=(*prompt.parts, TextPart(text=f"\n\n{CONTEXT.format(text=added)}")))

    async def on_stop(self, answer: str, times: int, cancellation: Cancellation) -> Message | None:
        """The model says it is done: what it must hear first; None when it may stop."""
        if self._run is None or times >= MAX_STOP_RETRIES:
            return None
        response = await self.at("Stop", cancellation, stop_hook_active=times > 0, last_assistant_message=answer)
        said = "\n\n".join(filter(None, (response.reason if response.decision == "deny" else "", response.context)))
        return nudge(FROM_HOOK.format(text=said), SENT_BACK, **{HOOKS: to_builtins(response)}) if said else None

    # ToolCalls

    async def before_call(self, call: HookedCall, cancellation: Cancellation) -> HookResponse:
        return await self.at("PreToolUse", cancellation, **call.told)

    async def before_asking(self, call: HookedCall, reason: str, cancellation: Cancellation) -> HookResponse:
        return await self.at("PermissionRequest", cancellation, **call.told, reason=reason)

    async def after_call(self, call: HookedCall, ended: HookedResult, cancellation: Cancellation) -> ToolPart:
        """The result with what hooks have to say about it."""
        part = ended.part
        if self._run is None or part.outcome not in ("ok", "error"):
            return part
        event = "PostToolUse" if part.outcome == "ok" else "PostToolUseFailure"
        return with_hook_text(part, await self.at(event, cancellation, **call.told, tool_response=ended.told))

    async def notify_while(self, kind: str, message: str, work: Awaitable[T]) -> T:
        """Somebody waits for the person: hooks are told meanwhile, and nobody waits for them."""
        if self._run is None:
            return await work
        telling = asyncio.ensure_future(self.at("Notification", notification_type=kind, message=message))
        try:
            return await work
        finally:
            telling.cancel()
            with suppress(asyncio.CancelledError):
                await telling


def with_hook_text(part: ToolPart, response: HookResponse, *, is_changed: bool = False) -> ToolPart:
    """The result, and below it what hooks want the model to know; `is_changed`: the arguments are theirs."""
    if is_changed:
        words = CHANGED_BY_HOOK.format(arguments=json.dumps(part.input, ensure_ascii=False))
        part = replace(part, output=f"{part.output}\n\n{words}")
    if response.updated_output is not None:
        part = replace(part, output=response.updated_output)
    reason = response.reason if response.decision == "deny" else ""
    said = "\n\n".join(filter(None, (reason, response.context)))
    return replace(part, output=f"{part.output}\n\n{FROM_HOOK.format(text=said)}") if said else part


def ask_because_of_hook(verdict: Verdict, reason: str) -> Verdict:
    """What a hook wants a person to be asked is asked, with its reason first."""
    reason = reason or "A hook wants this to be asked."
    if verdict.decision == "ask":
        return replace(verdict, reason=f"{reason} {verdict.reason}")
    return replace(verdict, decision="ask", reason=reason, rule="", source="hook")


def executed_input(part: ToolPart) -> dict[str, Any]:
    """The arguments a kept call had in the end: hooks may have changed them."""
    response = part.metadata.get(HOOKS)
    said = response if isinstance(response, dict) else {}
    changed = (said.get(event, {}).get("updated_input") for event in ("PermissionRequest", "PreToolUse"))
    return dict(next(filter(None, changed), part.input))


async def _run(
    run: RunHook, event: str, payload: Mapping[str, Any], slow: Callable[[Sequence[str]], Awaitable[None]]
) -> HookAnswer:
    """As a coroutine that begins nothing before it is awaited."""
    return await run(event, payload, slow)
