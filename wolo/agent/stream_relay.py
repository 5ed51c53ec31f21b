"""Turns the stream of a model into events, and saves its text in case the answer never completes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from wolo.agent.events import (
    AttemptFailed,
    CallStreamed,
    ErrorInfo,
    ModelReplaced,
    Noticed,
    RequestStarted,
    TextStreamed,
    ThinkingStreamed,
)
from wolo.agent.tool_execution import Emit
from wolo.agent.turn_policy import RepetitionGuard
from wolo.errors import ProviderError
from wolo.messages.deltas import CallDelta, Delta, TextDelta, ThinkingDelta, size_of
from wolo.messages.message import Usage, UsageCost
from wolo.messages.parts import ToolKind
from wolo.models.protocol import ModelClient, NoticeLevel
from wolo.models.provider import Price, cost_of
from wolo.models.tokens import BYTES_PER_TOKEN


class StreamRelay:
    """The Listener of one question."""

    def __init__(
        self, emit: Emit, asker: ModelClient, on_growth: Callable[[Usage], None], kind: Callable[[str], ToolKind]
    ) -> None:
        """`on_growth` receives the estimated usage of the attempt so far; without a known price its cost is zero.

        `kind` looks up the kind of a tool.
        """
        self._emit = emit
        self._asker = asker
        self._on_growth = on_growth
        self._kind = kind
        self._price: Price | None = None
        """Of the model that answers this attempt."""
        self._begin()

    @property
    def text(self) -> str:
        """Text of the current attempt so far."""
        return "".join(self._text)

    @property
    def usage(self) -> Usage:
        """Estimated usage of the current attempt so far."""
        return self._estimate(self._context_tokens)

    def _estimate(self, input_tokens: int) -> Usage:
        usage = Usage(input_tokens=input_tokens, output_tokens=self._size_bytes // BYTES_PER_TOKEN, estimated=True)
        return replace(usage, cost=cost_of(usage, self._price))

    async def on_request(self, attempt: int, context_tokens: int) -> None:
        self._begin()
        self._context_tokens = context_tokens
        choice = self._asker.choice
        self._price = choice.model.price
        await self._emit(RequestStarted(model=choice.label, attempt=attempt, context_tokens=context_tokens))

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        """Emits one event for each run of equal deltas. Raises BadAnswer when the model repeats itself."""
        self._size_bytes += size_of(deltas)
        at = 0
        while at < len(deltas):
            first = deltas[at]
            if isinstance(first, CallDelta):
                slot = first.slot
                tool = self._tools[slot] = first.tool or self._tools.get(slot, "")
                id = self._ids[slot] = first.part_id or self._ids.get(slot, "")
                size = self._sizes[slot] = self._sizes.get(slot, 0) + len(first.arguments.encode("utf-8", "surrogatepass"))
                tool_kind = self._kind(tool) if tool else "other"
                await self._emit(
                    CallStreamed(id=id, slot=slot, tool=tool, kind=tool_kind, fragment=first.arguments, size_bytes=size)
                )
                at += 1
            elif isinstance(first, TextDelta | ThinkingDelta):
                if isinstance(first, ThinkingDelta) and first.takes_text:
                    self._text.clear()
                kind = type(first)
                pieces = []
                while at < len(deltas) and isinstance(deltas[at], kind):
                    pieces.append(deltas[at].text)  # type: ignore[union-attr]  # both kinds have a text
                    at += 1
                text = "".join(pieces)
                if text and kind is TextDelta:
                    self._text.append(text)
                    await self._emit(TextStreamed(text=text))
                elif text:
                    await self._emit(ThinkingStreamed(text=text))
            else:
                at += 1
        self._guard.take(deltas)
        streamed = self._estimate(input_tokens=0)
        self._on_growth(streamed if streamed.cost else replace(streamed, cost=UsageCost()))

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        self._begin()
        await self._emit(AttemptFailed(error=ErrorInfo.of(error), attempt=attempt, tries=tries, delay_s=delay_s))

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        self._begin()
        await self._emit(ModelReplaced(error=ErrorInfo.of(error), model=model))

    async def on_notice(self, text: str, level: NoticeLevel = "warning") -> None:
        await self._emit(Noticed(text=text, level=level))

    def _begin(self) -> None:
        self._text: list[str] = []
        self._tools: dict[int, str] = {}
        self._ids: dict[int, str] = {}
        self._sizes: dict[int, int] = {}
        self._size_bytes = self._context_tokens = 0
        self._guard = RepetitionGuard()
