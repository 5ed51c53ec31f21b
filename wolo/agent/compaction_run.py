"""Makes room in the window for one turn, or because a person asks: asks for the summary, tells of it, counts what it cost."""

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
from wolo.agent.compaction.compactor import Compactor, Summarize, SummaryRequest
from wolo.agent.compaction.context_window import Fixed
from wolo.agent.compaction.history_cut import Cut
from wolo.agent.events import AttemptFailed, Compacted, CompactionStarted, ErrorInfo, ModelReplaced, Noticed
from wolo.agent.hook_calls import NOTHING as NOTHING_HEARD
from wolo.agent.hook_calls import HookResponse
from wolo.agent.tool_execution import Emit
from wolo.agent.turn_policy import RepetitionGuard
from wolo.errors import BadAnswer, ContextOverflow, ProviderError, WoloError
from wolo.messages.deltas import Delta, TextDelta
from wolo.messages.message import Message, Usage, user
from wolo.messages.parts import MediaPart, ThinkingPart, ToolPart
from wolo.models.protocol import ModelClient, NoticeLevel, Question
from wolo.models.tokens import BYTES_PER_TOKEN, estimate_message, estimate_part, estimate_text, estimate_tools
from wolo.tools.toolbox import MCP_PREFIX

EMBEDDED = "local"
"""The provider whose models are too small to sum anything up."""

NOTHING_TO_COMPACT = "There is nothing to compact: all that is sent is new, or as short as it gets."
NOTHING_TO_RESTORE = "There is nothing to take back, or no room for it in the window."
STOPPED = "Cancelled; everything is as it was."


def can_summarize(asker: ModelClient) -> bool:
    return asker.choice.provider.name != EMBEDDED


class CompactionRun:
    def __init__(self, services: AgentServices, cancellation: Cancellation, *, prompt_id: str = "", focus: str = "") -> None:
        self._services = services
        self._cancellation = cancellation
        self._prompt_id = prompt_id
        self._focus = focus
        self._usage = NOTHING
        self._untold: Usage | None = None
        self._has_failed = self._has_told_hooks = False
        self._trigger = "auto"
        self.waited_s = 0.0
        """For the provider."""

    def take_usage(self) -> Usage:
        """What was used since the last time this was asked."""
        usage, self._usage = self._usage, NOTHING
        return usage

    async def before_request(self, messages: Sequence[Message]) -> Compacted | None:
        services = self._services
        return await self._tell(await services.compactor.fit(messages, services.fixed(), self._summarise_or_none()))

    async def after_overflow(self, messages: Sequence[Message], error: ContextOverflow | None) -> Compacted | None:
        services = self._services
        return await self._tell(await services.compactor.overflowed(messages, services.fixed(), error, self._summarise_or_none()))

    async def on_request(self, messages: Sequence[Message]) -> None:
        services = self._services
        try:
            response = await self._before("manual")
            if response.decision == "deny":
                await services.emit(Noticed(text=f"A hook does not let the conversation be compacted: {response.reason}"))
                return
            done = await services.compactor.compact(messages, services.fixed(), self._summarise_or_none())
        except Cancelled:
            await services.emit(Noticed(text=STOPPED))
        else:
            await self._tell(done, otherwise="" if self._has_failed else NOTHING_TO_COMPACT)

    async def restore(self, messages: Sequence[Message]) -> None:
        services = self._services
        await self._tell(services.compactor.restore(messages, services.fixed()), otherwise=NOTHING_TO_RESTORE)

    def _summarise_or_none(self) -> Summarize | None:
        return self._summarize if can_summarize(self._services.asker) else None

    async def _summarize(self, order: SummaryRequest) -> str:
        services = self._services
        await self._before("auto")
        summary = Summarizer(
            services.asker, services.emit, session_id=services.session_id, prompt_id=self._prompt_id, focus=self._focus
        )
        asked = services.clock()
        try:
            said = await self._cancellation.run(summary.make(order, services.compactor.settings.timeout_s))
        finally:
            self.waited_s += services.clock() - asked
            self._usage = add(self._usage, summary.usage)
            self._untold = summary.usage if self._untold is None else add(self._untold, summary.usage)
        if said.why_none:
            self._has_failed = True
            await services.emit(Noticed(text=said.why_none, level="warning"))
        return said.summary

    async def _before(self, trigger: str) -> HookResponse:
        """Hooks hear of it once; what they add says what must not get lost."""
        if self._has_told_hooks:
            return NOTHING_HEARD
        self._has_told_hooks = True
        response = await self._services.hooks.at(
            "PreCompact", self._cancellation, trigger=trigger, custom_instructions=self._focus
        )
        self._trigger = trigger
        self._focus = "\n".join(filter(None, (self._focus, response.context)))
        return response

    async def _tell(self, compacted: Compacted | None, otherwise: str = "") -> Compacted | None:
        if compacted is None and otherwise:
            await self._services.emit(Noticed(text=otherwise))
        if compacted is not None:
            compacted = replace(compacted, usage=self._untold)
            self._untold = None
            await self._services.emit(compacted)
            self._services.prefix.reload()
            summary = compacted.summary.text if compacted.summary else ""
            with suppress(Cancelled):
                await self._services.hooks.at("PostCompact", self._cancellation, trigger=self._trigger, compact_summary=summary)
            self._has_told_hooks = False
        return compacted


SYSTEM, TOOLS, REMOTE_TOOLS, SUMMARY = "system prompt", "tools", "tools of MCP servers", "summary of what is left out"
PROMPTS, ANSWERS, THINKING, CALLS, MEDIA = "prompts", "answers", "thinking", "calls and their outputs", "images and files"


class ContextUsage(Struct, frozen=True, kw_only=True):
    tokens: dict[str, int]
    """Estimates by source, in the order in which they are sent."""
    most: int | None
    """What a request may hold; None: nobody knows."""
    messages: int
    left_out: int
    shortened: int

    @property
    def total(self) -> int:
        return sum(self.tokens.values())


class CompactionPreview(Struct, frozen=True, kw_only=True):
    before: ContextUsage
    after: ContextUsage
    """Without the summary that the model would write."""
    summary_tokens: int
    """How long it may become; 0: none would be asked for."""
    requests: int


def context_usage(compactor: Compactor, messages: Sequence[Message], fixed: Fixed) -> ContextUsage:
    return _usage_of(compactor, compactor.cut, messages, fixed)


def preview(compactor: Compactor, messages: Sequence[Message], fixed: Fixed, *, may_ask: bool = True) -> CompactionPreview:
    cut, order = compactor.preview(messages, fixed, may_ask=may_ask)
    return CompactionPreview(
        before=context_usage(compactor, messages, fixed),
        after=_usage_of(compactor, cut, messages, fixed),
        summary_tokens=order.most_tokens if order else 0,
        requests=len(order.pieces) if order else 0,
    )


def _usage_of(compactor: Compactor, cut: Cut, messages: Sequence[Message], fixed: Fixed) -> ContextUsage:
    scale = compactor.window.scale
    tokens = dict.fromkeys((SYSTEM, TOOLS, REMOTE_TOOLS, SUMMARY, PROMPTS, ANSWERS, THINKING, CALLS, MEDIA), 0)
    tokens[SYSTEM], tokens[TOOLS] = estimate_text(fixed.system), estimate_tools(fixed.tools)
    tokens[REMOTE_TOOLS] = estimate_tools([tool for tool in fixed.tools if tool.name.startswith(MCP_PREFIX)])
    tokens[TOOLS] -= tokens[REMOTE_TOOLS]
    shown = cut.apply(messages)
    for message in shown:
        _add(tokens, message)
    most = compactor.window.most(fixed)
    return ContextUsage(
        tokens={source: round(count * scale) for source, count in tokens.items() if count},
        most=None if most is None else round(most),
        messages=len(shown) - (cut.lead is not None and bool(cut.left_out)),
        left_out=sum(message.id in cut.left_out for message in messages),
        shortened=sum(message.id in cut.shortened for message in messages),
    )


def _add(tokens: dict[str, int], message: Message) -> None:
    """The frame of a message counts with what it is."""
    kind = SUMMARY if message.role.endswith("_summary") else ANSWERS if message.role == "assistant" else PROMPTS
    rest = estimate_message(message)
    for part in message.parts:
        source = THINKING if isinstance(part, ThinkingPart) else CALLS if isinstance(part, ToolPart) else ""
        source = source or (MEDIA if isinstance(part, MediaPart) else kind)
        tokens[source] += estimate_part(part)
        rest -= estimate_part(part)
    tokens[kind] += rest


TRIES = 2
"""More often it is not tried: there is another way to make room."""
TOO_LONG = 2
"""So many times the tokens it was given, and it is no summary."""
FINISHED = ("stop", "length", "")
"""Ends of an answer that leave something to go on with."""

_ASK = "Write the summary now, in at most {words:,} words."
_TASK = "What the user asked for last; it stays word for word beside your summary:"


class HookAnswer(Struct, frozen=True, kw_only=True):
    summary: str
    """Empty when there is none."""
    usage: Usage
    """Of all requests for it."""
    why_none: str = ""
    """A sentence for people."""


class Summarizer:
    """One summary. `usage` is right at any time, also when it is interrupted."""

    def __init__(self, asker: ModelClient, emit: Emit, *, session_id: str, prompt_id: str, focus: str = "") -> None:
        self.usage = NOTHING
        self._asker = asker
        self._emit = emit
        self._session_id = session_id
        self._prompt_id = prompt_id
        self._focus = focus

    async def make(self, order: SummaryRequest, timeout_s: float) -> HookAnswer:
        """Whatever goes wrong is said in `why_none`. CancelledError passes through."""
        summary, why = order.so_far, ""
        try:
            async with asyncio.timeout(timeout_s):
                for number, piece in enumerate(order.pieces, start=1):
                    summary = await self._one(order, piece, summary, number)
        except TimeoutError:
            why = f"it took more than {timeout_s:.0f} s"
        except WoloError as error:
            why = error.message.rstrip(".")
        if why:
            return HookAnswer(summary="", usage=self.usage, why_none=f"The model could not sum up the conversation: {why}.")
        return HookAnswer(summary=summary, usage=self.usage)

    async def _one(self, order: SummaryRequest, piece: str, so_far: str, number: int) -> str:
        """Raises BadAnswer for a summary that is of no use."""
        question = Question(
            messages=(user(_prompt(order, piece, so_far, number, self._focus)),),
            system=_system(),
            session_id=self._session_id,
            prompt_id=self._prompt_id,
        )
        answer = await self._asker.ask(question, _Listener(self._emit, self._asker, order, number))
        self.usage = add(self.usage, answer.usage or Usage())
        return _usable(answer, order.most_tokens * TOO_LONG)


def _usable(answer: Message, most_tokens: int) -> str:
    text = answer.text.strip()
    if answer.finish_reason not in FINISHED and not (answer.finish_reason == "tool_calls" and text):
        raise BadAnswer(answer.error or f"its answer ended with {answer.finish_reason!r}")
    if not text:
        raise BadAnswer("its answer was empty")
    if estimate_text(text) > most_tokens:
        raise BadAnswer("its summary is too long")
    return text


def _prompt(order: SummaryRequest, piece: str, so_far: str, number: int, focus: str) -> str:
    of = f' part="{number} of {len(order.pieces)}"' if len(order.pieces) > 1 else ""
    told = f"<transcript{of}>\n{piece}\n</transcript>"
    before = f"<summary_so_far>\n{so_far}\n</summary_so_far>" if so_far else ""
    task = f"{_TASK}\n<task>\n{order.task}\n</task>" if order.task else ""
    ask = _ASK.format(words=max(order.most_tokens * 2 // 3, 100))
    attention = f"The user asks for attention to this: {focus}" if focus else ""
    return "\n\n".join(filter(None, (before, told, task, ask, attention)))


def _system() -> str:
    return (Path(__file__).parent / "prompts" / "summary.md").read_text(encoding="utf-8").strip()


class _Listener:
    """Tells what a person should know; the text itself is nobody's to read while it comes."""

    def __init__(self, emit: Emit, asker: ModelClient, order: SummaryRequest, number: int) -> None:
        self._emit = emit
        self._asker = asker
        self._order = order
        self._number = number
        self._watch = RepetitionGuard()
        self._chars = 0

    async def on_request(self, attempt: int, context_tokens: int) -> None:
        self._chars = 0
        self._watch = RepetitionGuard()
        started = CompactionStarted(
            reason=self._order.reason,
            model=self._asker.choice.label,
            tokens=self._order.tokens,
            request=self._number,
            requests=len(self._order.pieces),
        )
        await self._emit(started)

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        """Raises BadAnswer as soon as the summary is too long, or repeats itself."""
        self._watch.take(deltas)
        self._chars += sum(len(each.text) for each in deltas if isinstance(each, TextDelta))
        if self._chars > self._order.most_tokens * TOO_LONG * BYTES_PER_TOKEN:
            raise BadAnswer("its summary is too long")

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        if attempt >= TRIES:
            raise error
        await self._emit(AttemptFailed(error=ErrorInfo.of(error), attempt=attempt, tries=tries, delay_s=delay_s))

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        await self._emit(ModelReplaced(error=ErrorInfo.of(error), model=model))

    async def on_notice(self, text: str, level: NoticeLevel = "warning") -> None:
        await self._emit(Noticed(text=text, level=level))
