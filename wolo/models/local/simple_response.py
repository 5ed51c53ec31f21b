"""Questions of one response in simple mode, and the one message that they become."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from wolo.messages.deltas import CallDelta, TextDelta
from wolo.messages.message import Message, Producer, Usage, UsageCost
from wolo.messages.parts import TextPart, ToolPart, new_id
from wolo.models.local import simple_texts as texts
from wolo.models.local.local_chat import Completion, LocalChat, Sampling, Turn
from wolo.models.local.simple_context import PLAN_KEY, Plan, ProjectNames, SimpleTurn
from wolo.models.local.simple_writer import FILE_TOKENS, CallStream
from wolo.models.protocol import Listener, ModelQuestion
from wolo.models.provider import ModelChoice
from wolo.models.tokens import estimate_text

ANSWER_TOKENS: Final = 300
PROMPT_TOKENS: Final = 200
"""Estimated tokens of instructions and examples."""


class SimpleResponse:
    """Asks the model, counts its tokens, and builds the message."""

    def __init__(
        self,
        chat: LocalChat,
        choice: ModelChoice,
        turn: SimpleTurn,
        names: ProjectNames,
        question: ModelQuestion,
        listener: Listener,
    ) -> None:
        self._chat = chat
        self._choice = choice
        self._turn = turn
        self._names = names
        self._tools = frozenset(tool.name for tool in question.tools)
        self._max_tokens = question.max_tokens or FILE_TOKENS
        self._listener = listener
        self._request = texts.shorten(turn.request, texts.MAX_REQUEST_CHARS)
        self._question = texts.shorten(turn.question, texts.MAX_QUESTION_CHARS)
        self._usage = Usage(cost=UsageCost())

    async def _complete(self, turns: Sequence[Turn], sampling: Sampling, stream: CallStream | None = None) -> Completion:
        completion = await self._chat.complete(turns, sampling, stream.add if stream else None)
        self._count(completion)
        return completion

    async def _choose(self, turns: Sequence[Turn], values: Sequence[str], max_tokens: int) -> str:
        completion = await self._complete(turns, Sampling(max_tokens=max_tokens, schema=texts.one_of(values)))
        return json_text(completion.text) or next((value for value in values if value in completion.text.lower()), "")

    async def _answer(self, turns: Sequence[Turn]) -> Message:
        """Stream a free-text answer."""

        async def show(text: str) -> None:
            await self._listener.on_deltas((TextDelta(text=text),))

        sampling = Sampling(max_tokens=min(ANSWER_TOKENS, self._max_tokens), shun_repeats=True)
        completion = await self._chat.complete(turns, sampling, show)
        self._count(completion)
        if not completion.text.strip():
            return await self._say("I have no answer to that. Rephrase it, or use a larger model with --model.")
        if completion.cut_off:
            await show(" …")
        return self._message((TextPart(text=completion.text + (" …" if completion.cut_off else "")),))

    def _count(self, completion: Completion) -> None:
        self._usage = msgspec.structs.replace(
            self._usage,
            input_tokens=self._usage.input_tokens + completion.prompt_tokens - completion.cached_tokens,
            cache_read_tokens=self._usage.cache_read_tokens + completion.cached_tokens,
            output_tokens=self._usage.output_tokens + completion.output_tokens,
        )

    async def _announce_attempt(self, attempt: int) -> None:
        await self._listener.on_request(attempt, PROMPT_TOKENS + estimate_text(self._request))

    # Messages

    async def _say(self, text: str) -> Message:
        await self._listener.on_deltas((TextDelta(text=text),))
        return self._message((TextPart(text=text),))

    async def _call(self, tool: str, input: dict[str, Any], *, plan: Plan = "") -> Message:
        call_id = new_id("call")
        written = json.dumps(input, ensure_ascii=False)
        await self._listener.on_deltas((CallDelta(slot=0, call_id=call_id, tool=tool, arguments=written, part_id=call_id),))
        return self._calling(tool, input, call_id, plan=plan)

    def _calling(self, tool: str, input: dict[str, Any], call_id: str, *, plan: Plan = "") -> Message:
        raw_input = json.dumps(input, ensure_ascii=False)
        part = ToolPart(id=call_id, tool=tool, input=input, raw_input=raw_input, call_id=call_id)
        return self._message((part,), plan=plan)

    def _message(self, parts: tuple[TextPart | ToolPart, ...], *, plan: Plan = "") -> Message:
        return Message(
            role="assistant",
            parts=parts,
            finished=True,
            finish_reason="tool_calls" if any(isinstance(part, ToolPart) for part in parts) else "stop",
            usage=self._usage,
            producer=Producer(provider=self._choice.provider.name, format="simple", model=self._choice.model.id),
            metadata={PLAN_KEY: plan} if plan else {},
        )


def json_text(text: str) -> str:
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"), type=str)
    except msgspec.MsgspecError:
        return ""  # cut off before the closing quote
