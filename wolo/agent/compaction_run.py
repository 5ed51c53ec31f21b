"""Makes room in the window for one turn, or because a person asks: asks for the summary, tells of it, counts what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from wolo.agent.agent_services import AgentServices
from wolo.agent.budget import NOTHING, add
from wolo.agent.cancellation import Cancellation, Cancelled
from wolo.agent.compaction.compactor import Summarize, SummaryRequest
from wolo.agent.compaction.summarizer import Summary
from wolo.agent.events import Compacted, Noticed
from wolo.agent.hook_calls import NOTHING as NOTHING_HEARD
from wolo.agent.hook_calls import Heard
from wolo.errors import ContextOverflow
from wolo.messages.message import Message, Usage
from wolo.models.protocol import Asker

EMBEDDED = "local"
"""The provider whose models are too small to sum anything up."""

NOTHING_TO_COMPACT = "There is nothing to compact: all that is sent is new, or as short as it gets."
NOTHING_TO_RESTORE = "There is nothing to take back, or no room for it in the window."
STOPPED = "Cancelled; everything is as it was."


def can_summarize(asker: Asker) -> bool:
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
            heard = await self._before("manual")
            if heard.decision == "deny":
                await services.emit(Noticed(text=f"A hook does not let the conversation be compacted: {heard.reason}"))
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
        summary = Summary(
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

    async def _before(self, trigger: str) -> Heard:
        """Hooks hear of it once; what they add says what must not get lost."""
        if self._has_told_hooks:
            return NOTHING_HEARD
        self._has_told_hooks = True
        heard = await self._services.hooks.at("PreCompact", self._cancellation, trigger=trigger, custom_instructions=self._focus)
        self._trigger = trigger
        self._focus = "\n".join(filter(None, (self._focus, heard.context)))
        return heard

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
