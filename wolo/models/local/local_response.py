"""One response of a driven model: several questions to it, and the one message that they become."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from wolo.messages.deltas import CallDelta, TextDelta
from wolo.messages.message import FinishReason, Message, Usage, UsageCost, named_mode
from wolo.messages.parts import TextPart, ToolPart, new_id
from wolo.models.local.local_chat import Completion, LocalChat, Sampling, Turn, sentence
from wolo.models.protocol import Listener, ModelQuestion, producer_of
from wolo.models.provider import DriveMode, ModelChoice

EFFECTS: Final = frozenset(("write", "edit", "shell"))
"""Tools that change something."""
PLAN = "plan"
"""Mode that only reads."""
PLAN_NOTICE = "Plan mode: read-only. Change nothing. Answer with a plan in numbered steps."
MODE_NOTICE = "The mode is now `{mode}`: files may be changed."


def mode_notice(mode: str) -> str:
    """Shorter than the notice for larger models, and without tools that driven models do not get."""
    return PLAN_NOTICE if mode == PLAN else MODE_NOTICE.format(mode=mode)


class IgnoresSchema(Exception):
    """The server answered something that the schema forbids."""


class LocalResponse:
    """Asks the model, counts its tokens, and builds the message."""

    def __init__(
        self, chat: LocalChat, choice: ModelChoice, mode: DriveMode, question: ModelQuestion, listener: Listener
    ) -> None:
        self.chat = chat
        self.choice = choice
        self.question = question
        self.listener = listener
        self._producer = producer_of(choice, mode)
        self._usage = Usage(cost=UsageCost())

    @property
    def is_planning(self) -> bool:
        return named_mode(self.question.messages) == PLAN

    @property
    def label(self) -> str:
        """Name of the model at the start of a sentence."""
        return sentence(self.chat.server.label)

    async def complete(
        self, turns: Sequence[Turn], sampling: Sampling, on_text: Callable[[str], Awaitable[None]] | None = None
    ) -> Completion:
        completion = await self.chat.complete(turns, sampling, on_text)
        self._usage = msgspec.structs.replace(
            self._usage,
            input_tokens=self._usage.input_tokens + completion.prompt_tokens - completion.cached_tokens,
            cache_read_tokens=self._usage.cache_read_tokens + completion.cached_tokens,
            output_tokens=self._usage.output_tokens + completion.output_tokens,
        )
        return completion

    async def reply(self, text: str, reason: FinishReason = "stop") -> Message:
        await self.listener.on_deltas((TextDelta(text=text),))
        return self.message(TextPart(text=text), reason)

    async def call(self, tool: str, input: Mapping[str, Any], metadata: Mapping[str, Any] | None = None) -> Message:
        call_id, arguments = new_id("call"), json.dumps(input, ensure_ascii=False)
        await self.listener.on_deltas((CallDelta(slot=0, call_id=call_id, tool=tool, arguments=arguments, part_id=call_id),))
        return self.call_message(tool, input, call_id, metadata)

    def call_message(
        self, tool: str, input: Mapping[str, Any], call_id: str, metadata: Mapping[str, Any] | None = None
    ) -> Message:
        """The message of a call whose deltas were sent already."""
        raw_input = json.dumps(input, ensure_ascii=False)
        part = ToolPart(id=call_id, tool=tool, input=dict(input), raw_input=raw_input, call_id=call_id)
        return self.message(part, "tool_calls", metadata)

    def message(self, part: TextPart | ToolPart, reason: FinishReason, metadata: Mapping[str, Any] | None = None) -> Message:
        return Message(
            role="assistant",
            parts=(part,),
            finished=True,
            finish_reason=reason,
            usage=self._usage,
            producer=self._producer,
            metadata=dict(metadata or {}),
        )
