"""Asking a model: the question the loop puts, and the answer it gets. HTTP models and tiny embedded ones both serve it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from wolo.errors import ProviderError
from wolo.formats.format import Request, ThinkingLevel, ToolSpec
from wolo.messages.deltas import Delta
from wolo.messages.message import Message, Producer
from wolo.messages.parts import MediaPart
from wolo.models.provider import Choice

NoticeLevel = Literal["info", "warning"]
"""`info` is shown to those who asked for more (`-v`)."""


MUST_BE_SENT = "must_be_sent"
"""Under this name the metadata of a prompt say that it is not sent without its attachments."""


def has_media(message: Message) -> bool:
    return any(isinstance(part, MediaPart) for part in message.parts)


class Question(Struct, frozen=True, kw_only=True):
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    session_id: str = ""
    prompt_id: str = ""
    """Id of the user message this turn answers."""
    max_tokens: int | None = None


def request_for(choice: Choice, producer: Producer, question: Question, dropped_fields: frozenset[str] = frozenset()) -> Request:
    """What a format is handed to encode."""
    return Request(
        model=choice.model.id,
        producer=producer,
        messages=question.messages,
        system=question.system,
        tools=question.tools,
        thinking=choice.thinking,
        max_tokens=question.max_tokens,
        max_output=choice.model.max_output,
        context=choice.model.context,
        session_id=question.session_id,
        dropped_fields=dropped_fields,
    )


def producer_of(choice: Choice, format: str) -> Producer:
    return Producer(provider=choice.provider.name, format=format, model=choice.model.id)


class Listener(Protocol):
    """Told what happens while the answer comes. Awaited, in order."""

    async def on_request(self, attempt: int, context_tokens: int) -> None: ...

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        """The deltas of one network read; called at most once a read."""
        ...

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        """What was streamed since the last `on_request` is void. Another attempt follows after `delay_s`."""
        ...

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        """`model` answers from here on, because the one before gave up with `error`; what was streamed is void."""
        ...

    async def on_notice(self, text: str, level: NoticeLevel = "warning") -> None:
        """A dropped field, a truncated context: something a person should know once."""
        ...


class Asker(Protocol):
    @property
    def choice(self) -> Choice:
        """Who answers now."""
        ...

    def think(self, level: ThinkingLevel) -> None:
        """How much, from the next request on."""
        ...

    async def ask(self, question: Question, listener: Listener) -> Message:
        """The whole answer, from one unbroken attempt: `finished`, with usage, cost and producer; its calls are pending.

        A call whose arguments cannot be read is already failed (`outcome="invalid"`). Raises the last ProviderError when
        no attempt succeeded. CancelledError closes the connection and passes through.
        """
        ...

    async def close(self) -> None: ...
