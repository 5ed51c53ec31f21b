"""Completions of the embedded model: messages in, streamed text out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from wolo.errors import BadAnswer, ContextOverflow, ProviderError, Unavailable
from wolo.models.http.transport import Call, HttpStatusError, Transport

FIRST_SEED = 1
SECOND_SEED = 2
SECOND_TEMPERATURE = 0.4
"""At temperature 0 another seed would repeat the text."""

Turn = tuple[str, str]
"""Role and text."""


class Sampling(Struct, frozen=True, kw_only=True):
    max_tokens: int
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    """Schema that the server enforces as a grammar."""
    retry: bool = False
    """Second attempt: use another seed and temperature."""
    shun_repeats: bool = False
    """Penalise repetition; for prose only, since code repeats itself."""


class Completion(Struct, frozen=True, kw_only=True):
    text: str
    cut_off: bool
    """The response reached `max_tokens`."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens still cached by the server."""
    output_tokens: int = 0


class LocalChat:
    """Client for the one model of its server."""

    def __init__(self, transport: Transport, url: str, key: str) -> None:
        self._transport = transport
        self._url = f"{url}/v1/chat/completions"
        self._headers = {"authorization": f"Bearer {key}"}

    async def complete(
        self, turns: Sequence[Turn], sampling: Sampling, on_text: Callable[[str], Awaitable[None]] | None = None
    ) -> Completion:
        """Complete a chat; a final assistant turn is continued, and repeated in the result.

        Raises ProviderError. Cancelling closes the connection and frees the model.
        """
        call = Call(url=self._url, body=_encode(turns, sampling), headers=self._headers, first_byte_s=0.0, idle_s=0.0)
        pieces: list[str] = []
        finish, usage = "", _Usage()
        async with contextlib.aclosing(self._chunks(call)) as chunks:
            async for chunk in chunks:
                finish, usage = chunk.finish or finish, chunk.usage or usage
                pieces.append(chunk.text)
                if on_text and chunk.text:
                    await on_text(chunk.text)
        if not finish:
            raise Unavailable("The embedded model stopped in the middle of its response.")
        return Completion(
            text="".join(pieces),
            cut_off=finish == "length",
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.prompt_tokens_details.cached_tokens,
            output_tokens=usage.completion_tokens,
        )

    async def _chunks(self, call: Call) -> AsyncGenerator[_Chunk, None]:
        try:
            async with contextlib.aclosing(self._transport.send(call)) as batches:
                async for batch in batches:
                    for payload in batch.payloads:
                        yield _decode(payload)
        except HttpStatusError as refused:
            raise _error_from(refused) from None


def _encode(turns: Sequence[Turn], sampling: Sampling) -> bytes:
    body: dict[str, Any] = {
        "messages": [{"role": role, "content": text} for role, text in turns],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": sampling.max_tokens,
        "temperature": SECOND_TEMPERATURE if sampling.retry else 0.0,
        "seed": SECOND_SEED if sampling.retry else FIRST_SEED,
    }
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if sampling.schema:
        form = {"name": "answer", "strict": True, "schema": sampling.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    if sampling.shun_repeats:
        body["dry_multiplier"] = 0.8
    return json.dumps(body).encode()


class _Cached(Struct):
    cached_tokens: int = 0


class _Usage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Cached = field(default_factory=_Cached)


class _Delta(Struct):
    content: str | None = None


class _Choice(Struct):
    delta: _Delta = field(default_factory=_Delta)
    finish_reason: str | None = None


class _ServerError(Struct):
    message: str = ""
    type: str = ""


class _Chunk(Struct):
    choices: list[_Choice] = field(default_factory=list)
    usage: _Usage | None = None
    error: _ServerError | None = None

    @property
    def text(self) -> str:
        return "".join(choice.delta.content or "" for choice in self.choices)

    @property
    def finish(self) -> str:
        return next((choice.finish_reason for choice in self.choices if choice.finish_reason), "")


_decoder = msgspec.json.Decoder(_Chunk)


def _decode(payload: bytes) -> _Chunk:
    """Raises a ProviderError for error events."""
    if payload == b"[DONE]":
        return _Chunk()
    try:
        chunk = _decoder.decode(payload)
    except msgspec.MsgspecError as error:
        raise BadAnswer(f"The embedded model's server sent something unreadable: {error}.") from error
    if chunk.error:
        raise _provider_error(chunk.error)
    return chunk


def _error_from(refused: HttpStatusError) -> ProviderError:
    try:
        fault = _decoder.decode(refused.body).error or _ServerError()
    except msgspec.MsgspecError:
        fault = _ServerError()
    return _provider_error(fault, refused.status)


def _provider_error(fault: _ServerError, status: int | None = None) -> ProviderError:
    if fault.type == "exceed_context_size_error":
        return ContextOverflow("The request is too long for the embedded model.", hint="Ask for less, or use a larger model.")
    said = fault.message or (f"HTTP {status}" if status else "no reason given")
    return BadAnswer(f"The embedded model's server refused: {said}", status=status)
