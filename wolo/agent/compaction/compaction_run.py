"""Makes room in the window for one turn, or because a person asks: asks for the summary, tells of it, counts what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec.structs import replace

from wolo.agent.budget import NOTHING, add
from wolo.agent.cancellation import Brake, Stopped
from wolo.agent.compaction.compactor import Compactor, Order, Summarise
from wolo.agent.compaction.context_window import Fixed
from wolo.agent.compaction.summarizer import Summary
from wolo.agent.events import Compacted, Noticed
from wolo.agent.hook_calls import NOTHING as NOTHING_HEARD
from wolo.agent.hook_calls import Heard, Hooks
from wolo.agent.tool_calls import Emit
from wolo.errors import ContextOverflow
from wolo.messages.message import Message, Usage
from wolo.models.protocol import Asker

EMBEDDED = "local"
"""The provider whose models are too small to sum anything up."""

NOTHING_TO_COMPACT = "There is nothing to compact: all that is sent is new, or as short as it gets."
NOTHING_TO_RESTORE = "There is nothing to take back, or no room for it in the window."
STOPPED = "Stopped; everything is as it was."


def can_sum_up(asker: Asker) -> bool:
    return asker.choice.provider.name != EMBEDDED


class Needs(Protocol):
    """What of an agent it takes."""

    asker: Asker
    compactor: Compactor
    emit: Emit
    session_id: str
    clock: Callable[[], float]

    hooks: Hooks

    def fixed(self) -> Fixed: ...

    def begin_anew(self) -> None:
        """What is sent begins differently from now on: instructions may be read again."""
        ...


class MakingRoom:
    def __init__(self, agent: Needs, brake: Brake, *, prompt_id: str = "", focus: str = "") -> None:
        self._agent = agent
        self._brake = brake
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
        agent = self._agent
        return await self._tell(await agent.compactor.fit(messages, agent.fixed(), self._summarise_or_none()))

    async def after_overflow(self, messages: Sequence[Message], error: ContextOverflow | None) -> Compacted | None:
        agent = self._agent
        return await self._tell(await agent.compactor.overflowed(messages, agent.fixed(), error, self._summarise_or_none()))

    async def because_asked(self, messages: Sequence[Message]) -> None:
        agent = self._agent
        try:
            heard = await self._before("manual")
            if heard.decision == "deny":
                await agent.emit(Noticed(text=f"A hook does not let the conversation be compacted: {heard.reason}"))
                return
            done = await agent.compactor.compact(messages, agent.fixed(), self._summarise_or_none())
        except Stopped:
            await agent.emit(Noticed(text=STOPPED))
        else:
            await self._tell(done, otherwise="" if self._has_failed else NOTHING_TO_COMPACT)

    async def taken_back(self, messages: Sequence[Message]) -> None:
        agent = self._agent
        await self._tell(agent.compactor.restore(messages, agent.fixed()), otherwise=NOTHING_TO_RESTORE)

    def _summarise_or_none(self) -> Summarise | None:
        return self._summarise if can_sum_up(self._agent.asker) else None

    async def _summarise(self, order: Order) -> str:
        agent = self._agent
        await self._before("auto")
        summary = Summary(agent.asker, agent.emit, session_id=agent.session_id, prompt_id=self._prompt_id, focus=self._focus)
        asked = agent.clock()
        try:
            said = await self._brake.step(summary.make(order, agent.compactor.settings.timeout_s))
        finally:
            self.waited_s += agent.clock() - asked
            self._usage = add(self._usage, summary.usage)
            self._untold = summary.usage if self._untold is None else add(self._untold, summary.usage)
        if said.why_none:
            self._has_failed = True
            await agent.emit(Noticed(text=said.why_none, level="warning"))
        return said.summary

    async def _before(self, trigger: str) -> Heard:
        """Hooks hear of it once; what they add says what must not get lost."""
        if self._has_told_hooks:
            return NOTHING_HEARD
        self._has_told_hooks = True
        heard = await self._agent.hooks.at("PreCompact", self._brake, trigger=trigger, custom_instructions=self._focus)
        self._trigger = trigger
        self._focus = "\n".join(filter(None, (self._focus, heard.context)))
        return heard

    async def _tell(self, compacted: Compacted | None, otherwise: str = "") -> Compacted | None:
        if compacted is None and otherwise:
            await self._agent.emit(Noticed(text=otherwise))
        if compacted is not None:
            compacted = replace(compacted, usage=self._untold)
            self._untold = None
            await self._agent.emit(compacted)
            self._agent.begin_anew()
            summary = compacted.summary.text if compacted.summary else ""
            with suppress(Stopped):
                await self._agent.hooks.at("PostCompact", self._brake, trigger=self._trigger, compact_summary=summary)
            self._has_told_hooks = False
        return compacted
