"""Runs a compaction: previews it, asks the model for a summary, emits the result and counts its cost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.agent_services import AgentServices
from wolo.agent.budget import NOTHING, add
from wolo.agent.cancellation import Cancellation, Cancelled
from wolo.agent.compaction.compactor import Compactor, Fixed, Summarize, SummaryRequest
from wolo.agent.compaction.history_cut import Cut
from wolo.agent.events import AttemptFailed, Compacted, CompactionStarted, ErrorInfo, ModelReplaced, Noticed
from wolo.agent.hook_calls import NOTHING as NO_RESPONSE
from wolo.agent.hook_calls import HookResponse
from wolo.agent.tool_execution import Emit
from wolo.agent.turn_policy import RepetitionGuard
from wolo.errors import BadAnswer, ContextOverflow, ProviderError, WoloError
from wolo.messages.deltas import Delta, TextDelta
from wolo.messages.message import Message, Usage, user
from wolo.messages.parts import MediaPart, ThinkingPart, ToolPart
from wolo.models.protocol import ModelClient, ModelQuestion, NoticeLevel
from wolo.models.tokens import BYTES_PER_TOKEN, estimate_message, estimate_part, estimate_text, estimate_tools
from wolo.tools.toolbox import MCP_PREFIX

EMBEDDED = "local"
"""Provider of the embedded models, which are too small to summarize."""

NOTHING_TO_COMPACT = "Nothing to compact: everything that is sent is recent or already shortened."
NOTHING_TO_RESTORE = "Nothing to restore, or no room for it in the context window."
STOPPED = "Cancelled; nothing was changed."


def can_summarize(asker: ModelClient) -> bool:
    return asker.choice.provider.name != EMBEDDED


class CompactionRun:
    def __init__(self, services: AgentServices, cancellation: Cancellation, *, prompt_id: str = "", focus: str = "") -> None:
        self._services, self._cancellation, self._prompt_id = services, cancellation, prompt_id
        self._focus = focus
        self._usage = NOTHING
        self._unreported: Usage | None = None
        self._has_failed = self._has_run_hooks = False
        self._trigger = "auto"
        self.waited_s = 0.0
        """Time spent waiting for the provider."""

    def take_usage(self) -> Usage:
        """Returns the usage since the last call."""
        usage, self._usage = self._usage, NOTHING
        return usage

    async def fit(
        self, messages: Sequence[Message], *, is_overflow: bool = False, error: ContextOverflow | None = None
    ) -> Compacted | None:
        """Before a request, or after one that was refused."""
        compactor, fixed, summarize = self._services.compactor, self._measure_fixed(), self._summarizer_or_none()
        if is_overflow:
            return await self._emit_result(await compactor.fit_after_overflow(messages, fixed, error, summarize))
        return await self._emit_result(await compactor.fit(messages, fixed, summarize))

    async def on_request(self, messages: Sequence[Message]) -> None:
        services = self._services
        try:
            response = await self._run_pre_compact_hooks("manual")
            if response.decision == "deny":
                await services.emit(Noticed(text=f"A hook blocked the compaction: {response.reason}"))
                return
            done = await services.compactor.compact(messages, self._measure_fixed(), self._summarizer_or_none())
        except Cancelled:
            await services.emit(Noticed(text=STOPPED))
        else:
            await self._emit_result(done, if_none="" if self._has_failed else NOTHING_TO_COMPACT)

    async def restore(self, messages: Sequence[Message]) -> None:
        services = self._services
        await self._emit_result(services.compactor.restore(messages, self._measure_fixed()), if_none=NOTHING_TO_RESTORE)

    def _measure_fixed(self) -> Fixed:
        return self._services.prefix.measure_fixed(self._services.asker.choice.model)

    def _summarizer_or_none(self) -> Summarize | None:
        services = self._services
        return self._summarize if services.open_small is not None or can_summarize(services.asker) else None

    async def _summarize(self, request: SummaryRequest) -> str:
        services = self._services
        await self._run_pre_compact_hooks("auto")
        summary = why = ""
        if services.open_small is not None:
            small = services.open_small()
            try:
                summary, why = await self._summarize_with(small, request)
            finally:
                await small.close()
        if services.open_small is None or (why and can_summarize(services.asker)):
            if why:
                await services.emit(Noticed(text=f"{why} {services.asker.choice.label} does it instead.", level="warning"))
            summary, why = await self._summarize_with(services.asker, request)
        if why:
            self._has_failed = True
            await services.emit(Noticed(text=why, level="warning"))
        return summary

    async def _summarize_with(self, asker: ModelClient, request: SummaryRequest) -> tuple[str, str]:
        """The summary, or a sentence for the user why there is none. Usage counts also after a cancellation."""
        services, why = self._services, ""
        timeout_s = services.compactor.settings.timeout_s
        asked = services.clock()
        self._unreported = self._unreported or NOTHING
        try:
            async with asyncio.timeout(timeout_s):
                return await self._cancellation.run(self._ask_for_summary(asker, request)), ""
        except TimeoutError:
            why = f"it took more than {timeout_s:.0f} s"
        except WoloError as error:
            why = error.message.rstrip(".")
        finally:
            self.waited_s += services.clock() - asked
        return "", f"The model could not summarize the conversation: {why}."

    async def _ask_for_summary(self, asker: ModelClient, request: SummaryRequest) -> str:
        """One question per piece. Raises ProviderError, also for an unusable answer."""
        summary = request.so_far
        for number, piece in enumerate(request.pieces, start=1):
            question = ModelQuestion(
                messages=(user(_prompt(request, piece, summary, number, self._focus)),),
                system=(Path(__file__).parent / "prompts" / "summary.md").read_text(encoding="utf-8").strip(),
                session_id=self._services.session_id,
                prompt_id=self._prompt_id,
            )
            answer = await asker.ask(question, _Listener(self._services.emit, asker, request, number))
            usage = answer.usage or Usage()
            self._usage, self._unreported = add(self._usage, usage), add(self._unreported or NOTHING, usage)
            summary = answer.text.strip()
            if answer.finish_reason not in FINISHED and not (answer.finish_reason == "tool_calls" and summary):
                raise BadAnswer(answer.error or f"its answer ended with {answer.finish_reason!r}")
            if not summary:
                raise BadAnswer("its answer was empty")
            if estimate_text(summary) > request.most_tokens * MAX_LENGTH_FACTOR:
                raise BadAnswer("its summary is too long")
        return summary

    async def _run_pre_compact_hooks(self, trigger: str) -> HookResponse:
        """Runs PreCompact hooks once; their added context tells the model what the summary must contain."""
        if self._has_run_hooks:
            return NO_RESPONSE
        self._has_run_hooks = True
        response = await self._services.hooks.run(
            "PreCompact", self._cancellation, trigger=trigger, custom_instructions=self._focus
        )
        self._trigger = trigger
        self._focus = "\n".join(filter(None, (self._focus, response.context)))
        return response

    async def _emit_result(self, compacted: Compacted | None, if_none: str = "") -> Compacted | None:
        if compacted is None and if_none:
            await self._services.emit(Noticed(text=if_none))
        if compacted is not None:
            compacted = replace(compacted, usage=self._unreported)
            self._unreported = None
            await self._services.emit(compacted)
            if compacted.reason == "masked":  # the conversation goes on as it is
                return compacted
            self._services.prefix.reload()
            summary = compacted.summary.text if compacted.summary else ""
            with suppress(Cancelled):
                await self._services.hooks.run("PostCompact", self._cancellation, trigger=self._trigger, compact_summary=summary)
            self._has_run_hooks = False
        return compacted


SYSTEM, TOOLS, REMOTE_TOOLS, SUMMARY = "system prompt", "tools", "MCP tools", "summary of omitted messages"
PROMPTS, ANSWERS, THINKING, CALLS, MEDIA = "prompts", "answers", "thinking", "tool calls and outputs", "images and files"


class ContextUsage(Struct, frozen=True, kw_only=True):
    tokens: dict[str, int]
    """Estimates by source, in the order in which they are sent."""
    most: int | None
    """Maximum size of a request; None: unknown."""
    num_messages: int
    left_out: int
    shortened: int

    @property
    def total(self) -> int:
        return sum(self.tokens.values())


class CompactionPreview(Struct, frozen=True, kw_only=True):
    before: ContextUsage
    after: ContextUsage
    """Excludes the summary that the model would write."""
    summary_tokens: int
    """Maximum length of the summary; 0: no summary would be requested."""
    num_requests: int


def context_usage(compactor: Compactor, messages: Sequence[Message], fixed: Fixed) -> ContextUsage:
    return _usage_of(compactor, compactor.cut, messages, fixed)


def preview(compactor: Compactor, messages: Sequence[Message], fixed: Fixed, *, may_ask: bool = True) -> CompactionPreview:
    cut, request = compactor.preview(messages, fixed, may_ask=may_ask)
    return CompactionPreview(
        before=context_usage(compactor, messages, fixed),
        after=_usage_of(compactor, cut, messages, fixed),
        summary_tokens=request.most_tokens if request else 0,
        num_requests=len(request.pieces) if request else 0,
    )


def _usage_of(compactor: Compactor, cut: Cut, messages: Sequence[Message], fixed: Fixed) -> ContextUsage:
    scale = compactor.window.scale
    tokens = dict.fromkeys((SYSTEM, TOOLS, REMOTE_TOOLS, SUMMARY, PROMPTS, ANSWERS, THINKING, CALLS, MEDIA), 0)
    tokens[SYSTEM], tokens[TOOLS] = estimate_text(fixed.system), estimate_tools(fixed.tools)
    tokens[REMOTE_TOOLS] = estimate_tools([tool for tool in fixed.tools if tool.name.startswith(MCP_PREFIX)])
    tokens[TOOLS] -= tokens[REMOTE_TOOLS]
    shown = cut.apply(messages)
    for message in shown:
        # The overhead of a message counts for its role.
        kind = SUMMARY if message.role.endswith("_summary") else ANSWERS if message.role == "assistant" else PROMPTS
        rest = estimate_message(message)
        for part in message.parts:
            source = THINKING if isinstance(part, ThinkingPart) else CALLS if isinstance(part, ToolPart) else ""
            source = source or (MEDIA if isinstance(part, MediaPart) else kind)
            tokens[source] += estimate_part(part)
            rest -= estimate_part(part)
        tokens[kind] += rest
    most = compactor.window.most(fixed)
    return ContextUsage(
        tokens={source: round(count * scale) for source, count in tokens.items() if count},
        most=None if most is None else round(most),
        num_messages=len(shown) - (cut.lead is not None and bool(cut.left_out)),
        left_out=len(cut.left_out),
        shortened=sum(message.id in cut.shortened for message in messages),
    )


MAX_ATTEMPTS = 2
"""Attempts per request; without a summary, the oldest messages are left out."""
MAX_LENGTH_FACTOR = 2
"""A summary with more than this many times the requested tokens is rejected."""
FINISHED = ("stop", "length", "")
"""Finish reasons of a usable summary."""

_ASK = "Write the summary now, in at most {words:,} words."
_TASK = "The user's latest request; it is sent word for word along with your summary:"


def _prompt(request: SummaryRequest, piece: str, so_far: str, number: int, focus: str) -> str:
    of = f' part="{number} of {len(request.pieces)}"' if len(request.pieces) > 1 else ""
    transcript = f"<transcript{of}>\n{piece}\n</transcript>"
    before = f"<summary_so_far>\n{so_far}\n</summary_so_far>" if so_far else ""
    task = f"{_TASK}\n<task>\n{request.task}\n</task>" if request.task else ""
    ask = _ASK.format(words=max(request.most_tokens * 2 // 3, 100))
    attention = f"The user asks for attention to this: {focus}" if focus else ""
    return "\n\n".join(filter(None, (before, transcript, task, ask, attention)))


class _Listener:
    """Emits progress for the user, but not the text of the summary."""

    def __init__(self, emit: Emit, asker: ModelClient, request: SummaryRequest, number: int) -> None:
        self._emit, self._asker, self._request, self._number = emit, asker, request, number
        self._watch = RepetitionGuard()
        self._chars = 0

    async def on_request(self, attempt: int, context_tokens: int) -> None:
        self._chars = 0
        self._watch = RepetitionGuard()
        started = CompactionStarted(
            reason=self._request.reason,
            model=self._asker.choice.label,
            tokens=self._request.tokens,
            request=self._number,
            requests=len(self._request.pieces),
        )
        await self._emit(started)

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        """Raises BadAnswer as soon as the summary is too long or repeats itself."""
        self._watch.take(deltas)
        self._chars += sum(len(each.text) for each in deltas if isinstance(each, TextDelta))
        if self._chars > self._request.most_tokens * MAX_LENGTH_FACTOR * BYTES_PER_TOKEN:
            raise BadAnswer("its summary is too long")

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        if attempt >= MAX_ATTEMPTS:
            raise error
        await self._emit(AttemptFailed(error=ErrorInfo.of(error), attempt=attempt, tries=tries, delay_s=delay_s))

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        await self._emit(ModelReplaced(error=ErrorInfo.of(error), model=model))

    async def on_notice(self, text: str, level: NoticeLevel = "warning") -> None:
        await self._emit(Noticed(text=text, level=level))
