"""The model client protocol, and clients that wrap another: opened lazily, or with a fallback."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import ContextOverflow, ProviderError
from wolo.formats.format import Request, ThinkingLevel, ToolSpec
from wolo.messages.deltas import Delta
from wolo.messages.message import Message, Producer
from wolo.messages.parts import MediaPart
from wolo.models.provider import ModelChoice

NoticeLevel = Literal["info", "warning"]
"""`info` is shown only with `-v`."""


MUST_BE_SENT = "must_be_sent"
"""Metadata key of prompts that must not be sent without their attachments."""
ANSWER_SCHEMA = "answer_schema"
"""Metadata key of prompts for a typed answer: `schema` for the server, and `is_last`: sent also where tools are offered."""


def has_media(message: Message) -> bool:
    return any(isinstance(part, MediaPart) for part in message.parts)


class ModelQuestion(Struct, frozen=True, kw_only=True):
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    session_id: str = ""
    prompt_id: str = ""
    """Id of the user message of this turn."""
    max_tokens: int | None = None
    json_schema: Mapping[str, Any] | None = None
    """The server may answer nothing else."""
    web_search: bool = False
    """The provider may search the web for the answer."""


def request_for(
    choice: ModelChoice, producer: Producer, question: ModelQuestion, dropped_fields: frozenset[str] = frozenset()
) -> Request:
    """Build the request that a format encodes."""
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
        temperature=choice.temperature,
        json_schema=question.json_schema,
        web_search=question.web_search,
        dropped_fields=dropped_fields,
    )


def producer_of(choice: ModelChoice, format: str) -> Producer:
    return Producer(provider=choice.provider.name, format=format, model=choice.model.id)


class Listener(Protocol):
    """Receives progress of a response; calls are awaited in order."""

    async def on_request(self, attempt: int, context_tokens: int) -> None: ...

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        """Deltas of one network read; at most one call per read."""

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        """Discard deltas since the last `on_request`. The next attempt follows after `delay_s`."""

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        """`model` answers from now on because the previous one failed with `error`; discard its deltas."""

    async def on_notice(self, text: str, level: NoticeLevel = "warning") -> None:
        """Information for the user, such as a dropped field; sent once."""


class ModelClient(Protocol):
    @property
    def choice(self) -> ModelChoice:
        """The model that currently answers."""

    def think(self, level: ThinkingLevel) -> None:
        """Set the thinking level from the next request on."""

    async def ask(self, question: ModelQuestion, listener: Listener) -> Message:
        """The whole response from one attempt: `finished`, with usage, cost and producer, and pending calls.

        Calls with unreadable arguments have already failed (`outcome="invalid"`). Raises the last ProviderError when every
        attempt failed. CancelledError closes the connection.
        """

    async def close(self) -> None: ...


class LazyModelClient:
    """Opens the wrapped client at its first question."""

    def __init__(self, choice: ModelChoice, open_it: Callable[..., ModelClient]) -> None:
        """`open_it` takes the choice."""
        self._choice, self._open = choice, open_it
        self._client: ModelClient | None = None

    @property
    def choice(self) -> ModelChoice:
        return self._client.choice if self._client else self._choice

    def think(self, level: ThinkingLevel) -> None:
        if self._client:
            self._client.think(level)
        self._choice = replace(self._choice, thinking=level)

    def open(self) -> ModelClient:
        self._client = self._client or self._open(self._choice)
        return self._client

    def ask(self, question: ModelQuestion, listener: Listener) -> Coroutine[Any, Any, Message]:
        return self.open().ask(question, listener)

    async def close(self) -> None:
        if self._client:
            await self._client.close()


TEMPORARY = 75
"""Exit status of transient failures, which another model avoids, unlike a wrong key or a bad request."""


class FallbackModelClient:
    """Uses a second client for the rest of a turn when the first is unavailable."""

    def __init__(
        self, first: ModelClient, second: ModelChoice, open_second: Callable[[], ModelClient], *, after_any_error: bool = False
    ) -> None:
        """`after_any_error`: also after errors that retries do not cure."""
        self._after_any_error, self._first, self._second_choice = after_any_error, first, second
        self._open_second = open_second
        self._second: ModelClient | None = None
        self._failure: ProviderError | None = None
        """Failure of the first client in this turn."""
        self._prompt_id = ""
        self._level: ThinkingLevel | None = None

    @property
    def choice(self) -> ModelChoice:
        if self._failure is None:
            return self._first.choice
        return self._second.choice if self._second else self._second_choice

    def think(self, level: ThinkingLevel) -> None:
        self._level = level
        for client in filter(None, (self._first, self._second)):
            client.think(level)

    async def ask(self, question: ModelQuestion, listener: Listener) -> Message:
        if not question.prompt_id or question.prompt_id != self._prompt_id:
            self._failure, self._prompt_id = None, question.prompt_id
        if self._failure is None:
            try:
                return await self._first.ask(question, listener)
            except ProviderError as error:
                if error.exit_code != TEMPORARY and not self._after_any_error:
                    raise
                self._failure = error
            await listener.on_replaced(self._failure, self.choice.label)
        if self._second is None:
            self._second = self._open_second()
            if self._level is not None:
                self._second.think(self._level)
        try:
            return await self._second.ask(question, listener)
        except ContextOverflow:
            raise  # only a shorter prompt helps
        except ProviderError as error:
            failure = self._failure
            message = f"{failure.message} {self.choice.label} was asked instead: {error.message}"
            failure.message, failure.args, failure.hint = message, (message,), error.hint or failure.hint
            raise failure from error

    async def close(self) -> None:
        await self._first.close()
        if self._second is not None:
            await self._second.close()
