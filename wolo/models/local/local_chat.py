"""Completions of a small model in the dialect of its server: messages in, streamed text out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from wolo.errors import AuthError, BadAnswer, ContextOverflow, ProviderError, Unavailable
from wolo.models.headers import request_headers
from wolo.models.http.transport import HttpCall, HttpStatusError, Transport
from wolo.models.local.driving import root_of
from wolo.models.probe_cache import ServerFacts
from wolo.models.provider import ModelChoice

TEMPERATURES: Final = (0.0, 0.4, 0.8)
"""By attempt; at temperature 0 another seed would repeat the text."""
REPEATED_CHARS: Final = 240
LONGEST_REPEATED: Final = 60
BAD_REQUEST: Final = 400
LOADING: Final = 503
CHECKED_PIECES: Final = 16

Turn = tuple[str, str]
"""Role and text."""


class Sampling(Struct, frozen=True, kw_only=True):
    max_tokens: int
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    """Schema that the server enforces as a grammar."""
    attempt: int = 1
    """The seed; later attempts use another temperature as well."""
    shun_repeats: bool = False
    """Penalise repetition; for prose only, since code repeats itself."""

    @property
    def temperature(self) -> float:
        return TEMPERATURES[min(self.attempt, len(TEMPERATURES)) - 1]


class Completion(Struct, frozen=True, kw_only=True):
    text: str
    cut_off: bool
    """The response reached `max_tokens`."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens still cached by the server."""
    output_tokens: int = 0


EMBEDDED: Final = "the embedded model"
WINDOW_TOKENS: Final = 8192
"""Context asked of Ollama, whose default is too small for a file and its change."""


class ChatServer(Struct, frozen=True, kw_only=True):
    """A server, with what its dialect depends on."""

    url: str
    """Root, without `/v1`."""
    headers: Mapping[str, str]
    model: str = ""
    label: str = EMBEDDED
    facts: ServerFacts = ServerFacts(kind="llama.cpp")

    @property
    def continues(self) -> bool:
        """It continues a final assistant message. Elsewhere the model has to begin by itself."""
        return self.facts.kind in ("llama.cpp", "ollama", "vllm")


def server_of(choice: ModelChoice, facts: ServerFacts) -> ChatServer:
    headers, label = request_headers(choice), EMBEDDED if choice.provider.name == "local" else choice.label
    return ChatServer(url=root_of(choice.base_url), headers=headers, model=choice.model.id, label=label, facts=facts)


class LocalChat:
    """Client for one model."""

    def __init__(self, transport: Transport, server: ChatServer) -> None:
        self._transport = transport
        self.server = server
        self.takes_schema = True
        """False once the server refused a schema."""

    async def complete(
        self, turns: Sequence[Turn], sampling: Sampling, on_text: Callable[[str], Awaitable[None]] | None = None
    ) -> Completion:
        """Complete a chat; a final assistant turn is continued, and may be repeated in the result.

        Raises ProviderError. Cancelling closes the connection and frees the model.
        """
        if not self.takes_schema:
            sampling = msgspec.structs.replace(sampling, schema=None)
        try:
            return await self._complete(turns, sampling, on_text)
        except BadAnswer as error:
            if sampling.schema is None or error.status != BAD_REQUEST:
                raise
            self.takes_schema = False
            return await self._complete(turns, msgspec.structs.replace(sampling, schema=None), on_text)

    async def _complete(
        self, turns: Sequence[Turn], sampling: Sampling, on_text: Callable[[str], Awaitable[None]] | None
    ) -> Completion:
        pieces: list[str] = []
        finish, usage = "", _Usage()
        async with contextlib.aclosing(self._chunks(self._call(turns, sampling))) as chunks:
            async for chunk in chunks:
                finish, usage = chunk.finish or finish, chunk.counts or usage
                pieces.append(chunk.text)
                if on_text and chunk.text:
                    await on_text(chunk.text)
                if len(pieces) % CHECKED_PIECES == 0 and repeats("".join(pieces[-REPEATED_CHARS:])):
                    finish = "length"
                    break
        if not finish:
            raise Unavailable(f"{sentence(self.server.label)} stopped in the middle of its response.")
        return Completion(
            text="".join(pieces),
            cut_off=finish == "length",
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else 0,
            output_tokens=usage.completion_tokens,
        )

    def _call(self, turns: Sequence[Turn], sampling: Sampling) -> HttpCall:
        server = self.server
        if turns[-1][0] == "assistant" and not server.continues:
            turns = turns[:-1]
        is_ollama = server.facts.kind == "ollama"
        body = _for_ollama(server, turns, sampling) if is_ollama else _for_chat(server, turns, sampling)
        path = "/api/chat" if is_ollama else "/v1/chat/completions"
        return HttpCall(
            url=f"{server.url}{path}",
            body=json.dumps(body).encode(),
            headers=server.headers,
            first_byte_s=0.0,
            idle_s=0.0,
            framing="lines" if is_ollama else "sse",
        )

    async def _chunks(self, call: HttpCall) -> AsyncGenerator[_Chunk, None]:
        try:
            async with contextlib.aclosing(self._transport.send(call)) as batches:
                async for batch in batches:
                    for payload in batch.payloads if batch.whole is None else (batch.whole,):
                        yield self._decode(payload)
        except HttpStatusError as refused:
            try:
                fault = _decoder.decode(refused.body).error or _ServerError()
            except msgspec.MsgspecError:
                fault = _ServerError()
            raise self._provider_error(fault, refused.status) from None

    def _decode(self, payload: bytes) -> _Chunk:
        """Raises a ProviderError for error events."""
        if payload == b"[DONE]":
            return _Chunk()
        try:
            chunk = _decoder.decode(payload)
        except msgspec.MsgspecError as error:
            raise BadAnswer(f"The server of {self.server.label} sent something unreadable: {error}.") from error
        if chunk.error:
            raise self._provider_error(chunk.error)
        return chunk

    def _provider_error(self, fault: _ServerError | str, status: int | None = None) -> ProviderError:
        fault = _ServerError(message=fault) if isinstance(fault, str) else fault
        label = self.server.label
        if fault.type == "exceed_context_size_error":
            return ContextOverflow(f"The request is too long for {label}.", hint="Ask for less, or use a larger model.")
        reason = fault.message or (f"HTTP {status}" if status else "no reason given")
        if status in (401, 403):
            return AuthError(f"The server of {label} refused the key: {reason}", status=status)
        if status == LOADING:
            return Unavailable(f"The server of {label} is not ready: {reason}", hint="Try again when the model is loaded.")
        return BadAnswer(f"The server of {label} refused: {reason}", status=status)


def sentence(label: str) -> str:
    """Begin a sentence with a label, which keeps the spelling of a model."""
    return label.capitalize() if label == EMBEDDED else label


def _for_chat(server: ChatServer, turns: Sequence[Turn], sampling: Sampling) -> dict[str, Any]:
    facts = server.facts
    body: dict[str, Any] = {
        "messages": [{"role": role, "content": text} for role, text in turns],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "seed": sampling.attempt,
    }
    if server.model:
        body["model"] = server.model
    if stop := _stops(server, sampling):
        body["stop"] = stop
    if sampling.schema:
        form = {"name": "answer", "strict": True, "schema": sampling.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    if sampling.shun_repeats and facts.kind == "llama.cpp":
        body["dry_multiplier"] = 0.8
    if facts.kind == "vllm" and turns[-1][0] == "assistant":
        body |= {"add_generation_prompt": False, "continue_final_message": True}
    if facts.thinks or facts.kind == "vllm":
        body["chat_template_kwargs"] = {"enable_thinking": False}
    return body


def _for_ollama(server: ChatServer, turns: Sequence[Turn], sampling: Sampling) -> dict[str, Any]:
    options = {
        "temperature": sampling.temperature,
        "seed": sampling.attempt,
        "num_predict": sampling.max_tokens,
        "num_ctx": min(WINDOW_TOKENS, server.facts.context or WINDOW_TOKENS),
    }
    body: dict[str, Any] = {
        "model": server.model,
        "messages": [{"role": role, "content": text} for role, text in turns],
        "stream": True,
        "options": {**options, "stop": stop} if (stop := _stops(server, sampling)) else options,
    }
    if sampling.schema:
        body["format"] = sampling.schema
    if server.facts.thinks:
        body["think"] = False
    return body


def _stops(server: ChatServer, sampling: Sampling) -> list[str]:
    """Without a given start, the end of a code block cannot be told from its beginning."""
    return [stop for stop in sampling.stop if server.continues or not stop.strip().startswith(("```", "~~~"))]


def repeats(text: str) -> bool:
    """Check whether the end of a text is one short piece over and over."""
    end = text[-REPEATED_CHARS:]
    return len(end) == REPEATED_CHARS and any(end[unit:] == end[:-unit] for unit in range(1, LONGEST_REPEATED + 1))


class _Cached(Struct):
    cached_tokens: int = 0


class _Usage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Cached | None = None


class _CompletionText(Struct):
    content: str | None = None


class _Choice(Struct):
    delta: _CompletionText | None = None
    message: _CompletionText | None = None
    finish_reason: str | None = None


class _ServerError(Struct):
    message: str = ""
    type: str | None = ""


class _Chunk(Struct):
    """A chunk of Chat Completions, or a line of Ollama."""

    choices: list[_Choice] = field(default_factory=list)
    usage: _Usage | None = None
    error: _ServerError | str | None = None
    message: _CompletionText | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None

    @property
    def text(self) -> str:
        parts = [self.message, *(choice.delta or choice.message for choice in self.choices)]
        return "".join(part.content or "" for part in parts if part)

    @property
    def finish(self) -> str:
        if self.done:
            return self.done_reason or "stop"
        return next((choice.finish_reason for choice in self.choices if choice.finish_reason), "")

    @property
    def counts(self) -> _Usage | None:
        if self.done:
            return _Usage(prompt_tokens=self.prompt_eval_count or 0, completion_tokens=self.eval_count or 0)
        return self.usage


_decoder = msgspec.json.Decoder(_Chunk)
