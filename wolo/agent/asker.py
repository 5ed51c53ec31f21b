"""Asks the model with secrets redacted on the way out and back, and turns its stream into events."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from wolo.agent import events
from wolo.agent.tool_execution import Emit
from wolo.agent.turn_policy import RepetitionGuard
from wolo.errors import ProviderError
from wolo.formats.format import ThinkingLevel, ToolSpec
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.deltas import CallDelta, Delta, TextDelta, ThinkingDelta, UsageDelta, size_of
from wolo.messages.message import Message, Usage, UsageCost, common_prefix_length
from wolo.messages.parts import ToolKind
from wolo.messages.secret_values import StreamRedactor
from wolo.models.protocol import Listener, ModelClient, ModelQuestion, NoticeLevel
from wolo.models.provider import ModelChoice, Price, cost_of
from wolo.models.tokens import BYTES_PER_TOKEN


class RedactingAsker:
    """Wraps an Asker. A message that was sent once is sent in the same form again, even when more secrets are known by then."""

    def __init__(self, asker: ModelClient, secrets: Secrets) -> None:
        self._asker, self._secrets = asker, secrets
        self._sent: dict[str, tuple[Message, Message]] = {}
        """Original and redacted message, by id."""
        self._last: tuple[tuple[Message, ...], tuple[Message, ...]] = ((), ())
        """Original and redacted messages of the last question."""
        self._systems: dict[str, str] = {}
        """Redacted system prompts; a side question has another prompt."""
        self._tools: tuple[tuple[ToolSpec, ...], tuple[ToolSpec, ...]] = ((), ())

    @property
    def last_sent(self) -> tuple[str, Sequence[Message]]:
        """System prompt and messages of the last question, redacted."""
        return next(reversed(self._systems.values()), ""), self._last[1]

    @property
    def choice(self) -> ModelChoice:
        return self._asker.choice

    def think(self, level: ThinkingLevel) -> None:
        self._asker.think(level)

    async def close(self) -> None:
        await self._asker.close()

    async def ask(self, question: ModelQuestion, listener: Listener) -> Message:
        listening = _RedactingListener(listener, self._secrets)
        try:
            answer = await self._asker.ask(self.hide(question), listening)
        except ProviderError as error:
            raise self._secrets.hide_error(error)  # noqa: B904  # the same error, redacted
        await listening.close()
        return self._secrets.hide_message(answer)

    def hide(self, question: ModelQuestion) -> ModelQuestion:
        """Returns the question as it is sent."""
        system = self._systems.pop(question.system, None)  # the last one is that of the last question
        self._systems[question.system] = self._secrets.hide(question.system) if system is None else system
        if question.tools and question.tools is not self._tools[0]:
            self._tools = (question.tools, _hide_tools(question.tools, self._secrets))
        known = common_prefix_length(self._last[0], question.messages)
        more = question.messages[known:]
        redacted = []
        for message in more:
            before, after = self._sent.get(message.id, (None, None))
            is_sent = after is not None and (before is message or before == message)
            redacted.append(after if after is not None and is_sent else self._secrets.hide_message(message))
        self._sent |= {before.id: (before, after) for before, after in zip(more, redacted, strict=True)}
        is_same = self._last[0] is self._last[1] and all(map(operator.is_, more, redacted))
        messages = question.messages if is_same else self._last[1][:known] + tuple(redacted)
        self._last = (question.messages, messages)
        tools = self._tools[1] if question.tools else ()
        return replace(question, messages=messages, system=self._systems[question.system], tools=tools)


def redact_question(question: ModelQuestion, secrets: Secrets) -> ModelQuestion:
    """Redacts a question that has no predecessor."""
    messages = tuple(map(secrets.hide_message, question.messages))
    tools = _hide_tools(question.tools, secrets)
    return replace(question, messages=messages, system=secrets.hide(question.system), tools=tools)


_clean: dict[tuple[str, ...], tuple[ToolSpec, ...]] = {}
"""The last tools that held none of these texts: most conversations of a process have the same."""


def _hide_tools(tools: tuple[ToolSpec, ...], secrets: Secrets) -> tuple[ToolSpec, ...]:
    known = _clean.get(texts := secrets.exact.texts, ())
    if len(known) == len(tools) and all(map(operator.is_, known, tools)):
        return tools
    given = [[spec.description, spec.parameters] for spec in tools]
    if (redacted := secrets.hide_value(given)) is given:
        _clean.clear()
        _clean[texts] = tools
        return tools
    return tuple(replace(spec, description=text, parameters=schema) for spec, (text, schema) in zip(tools, redacted, strict=True))


class _RedactingListener:
    """Redacts streamed text, also when a secret is split between deltas."""

    def __init__(self, listener: Listener, secrets: Secrets) -> None:
        self._listener, self._secrets = listener, secrets
        self._begin()

    def _begin(self) -> None:
        self._last: TextDelta | ThinkingDelta | CallDelta | None = None
        self._pieces: dict[int, StreamRedactor] = {}
        """By slot of a call; -1 for text and thinking."""

    async def on_request(self, attempt: int, context_tokens: int) -> None:
        self._begin()
        await self._listener.on_request(attempt, context_tokens)

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        passed: list[Delta] = []
        for delta in deltas:
            if isinstance(delta, TextDelta | ThinkingDelta | CallDelta):
                is_same_run = self._last is None or type(self._last) is type(delta) or isinstance(delta, CallDelta)
                if not is_same_run:  # calls may alternate
                    passed += self._rest()
                slot = delta.slot if isinstance(delta, CallDelta) else -1
                if slot not in self._pieces or (isinstance(delta, CallDelta) and delta.replaces):
                    self._pieces[slot] = self._secrets.stream()
                feed = self._pieces[slot].feed
                if isinstance(delta, CallDelta):
                    passed.append(replace(delta, arguments=feed(delta.arguments)))
                else:
                    passed.append(replace(delta, text=feed(delta.text)))
                self._last = delta
            else:
                if not isinstance(delta, UsageDelta):  # usage may arrive in the middle of a word
                    passed += self._rest()
                passed.append(delta)
        await self._listener.on_deltas(passed)

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        self._begin()
        await self._listener.on_attempt_failed(self._secrets.hide_error(error), attempt, tries, delay_s)

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        self._begin()
        await self._listener.on_replaced(self._secrets.hide_error(error), model)

    async def on_notice(self, text: str, level: NoticeLevel = "warning") -> None:
        await self._listener.on_notice(self._secrets.hide(text), level)

    async def close(self) -> None:
        if rest := self._rest():
            await self._listener.on_deltas(rest)

    def _rest(self) -> list[Delta]:
        """Flushes text held back because it might have been the start of a secret."""
        rest: list[Delta] = []
        for slot, piece in self._pieces.items():
            if held := piece.close():
                kind = ThinkingDelta if isinstance(self._last, ThinkingDelta) else TextDelta
                rest.append(CallDelta(slot=slot, arguments=held) if slot >= 0 else kind(held))
        return rest


class StreamRelay:
    """The Listener of one question; saves the text, in case the answer never completes."""

    def __init__(
        self, emit: Emit, asker: ModelClient, on_growth: Callable[[Usage], None], kind: Callable[[str], ToolKind]
    ) -> None:
        """`on_growth` receives the estimated usage of the attempt so far; without a known price its cost is zero.

        `kind` looks up the kind of a tool.
        """
        self._emit, self._asker, self._on_growth, self._kind = emit, asker, on_growth, kind
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
        await self._emit(events.RequestStarted(model=choice.label, attempt=attempt, context_tokens=context_tokens))

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
                    events.CallStreamed(id=id, slot=slot, tool=tool, kind=tool_kind, fragment=first.arguments, size_bytes=size)
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
                if (text := "".join(pieces)) and kind is TextDelta:
                    self._text.append(text)
                    await self._emit(events.TextStreamed(text=text))
                elif text:
                    await self._emit(events.ThinkingStreamed(text=text))
            else:
                at += 1
        self._guard.take(deltas)
        streamed = self._estimate(input_tokens=0)
        self._on_growth(streamed if streamed.cost else replace(streamed, cost=UsageCost()))

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        self._begin()
        await self._emit(events.AttemptFailed(error=events.ErrorInfo.of(error), attempt=attempt, tries=tries, delay_s=delay_s))

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        self._begin()
        await self._emit(events.ModelReplaced(error=events.ErrorInfo.of(error), model=model))

    async def on_notice(self, text: str, level: NoticeLevel = "warning") -> None:
        await self._emit(events.Noticed(text=text, level=level))

    def _begin(self) -> None:
        self._text: list[str] = []
        self._tools: dict[int, str] = {}
        self._ids: dict[int, str] = {}
        self._sizes: dict[int, int] = {}
        self._size_bytes = self._context_tokens = 0
        self._guard = RepetitionGuard()
