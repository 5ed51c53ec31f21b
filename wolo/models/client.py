"""The HTTP model client: requests, streamed responses and retries."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from wolo.errors import BadAnswer, BadRequest, ContextOverflow, ProviderError, RateLimited, Unavailable, Unexplained, Unreachable
from wolo.formats.format import Format, Request, ThinkingLevel
from wolo.messages.deltas import Assembler, CallDelta, Delta, join, size_of
from wolo.messages.message import Message, Usage, common_prefix_length
from wolo.messages.parts import MediaPart, ToolPart
from wolo.messages.secret_values import ValueRedactor
from wolo.models import retry
from wolo.models.address import display_url, join_url
from wolo.models.capabilities import AttachmentNotices, join_names, names_of
from wolo.models.format_selection import API_NAMES, format_of, key_of, redact
from wolo.models.headers import HeaderSettings, introduce, request_headers
from wolo.models.http.transport import PATIENCE, Exchange, HttpCall, HttpStatusError, Transport, WireLog
from wolo.models.limit_wait import clock_time, limit_end
from wolo.models.prompt_cache import PrefixWatch, find_miss
from wolo.models.protocol import MUST_BE_SENT, Listener, ModelQuestion, producer_of, request_for
from wolo.models.provider import MEDIA, ModelChoice, cost_of
from wolo.models.tokens import ROLE_TOKENS, TokenEstimate, estimate_message

log = logging.getLogger(__name__)

IDLE_S = 300.0
FIRST_BYTE_S = 120.0
LAST_WORDS_S = 5.0
"""Time to wait for usage after a complete response."""
SCHEMA_FIELDS = ("response_format", "output_config")
"""Optional fields that a server may name when it means the schema of the answer."""
WRONG_PLACE = frozenset({404, 405})
"""Statuses that suggest a wrong base URL, which is then shown."""
CUT_OFF_SHARE = 0.5
"""A server that counted less than this share of the tokens sent has truncated the prompt."""
CUT_OFF_TOKENS = 3_000
"""Smaller prompts are estimated too imprecisely."""


NEAR_SHARE = 0.7
"""Share of the window above which an unexplained error may mean a prompt that is too long."""


MOST_BYTES = 4_000_000
MOST_CALLS = 2_000
"""Maximum calls per response."""
KEEP_ALIVES = (b'"ping"', b'"keepalive"')
"""Keep-alive events, accepted as long as keep-alive comments."""
READ_EVERY_S = 0.05
"""For a user who watches: the screen is drawn less often than tokens come, and each reading costs as much as many tokens."""
_KIND_BYTES = 80
"""The event type appears within this many bytes."""


class ClientOptions(msgspec.Struct, frozen=True):
    """Options of a conversation, and dependencies that tests replace."""

    headers: HeaderSettings = HeaderSettings()
    retries: retry.RetrySettings = retry.RetrySettings()
    attended: bool = False
    """A user can stop the retries."""
    has_fallback: bool = False
    """Another model answers if this one gives up."""
    project: str = ""
    """Name of the working directory."""
    max_answer_bytes: int = MOST_BYTES
    wire_log: Path | None = None
    limiter: str = ""
    """Socket of a limiter that several processes share."""
    secrets: Callable[[], ValueRedactor] | None = None
    """Values to redact from the log; None: the key."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = retry.system_random


class HttpModelClient:
    """One model for one conversation. Owns its transport, and remembers what the server refused."""

    def __init__(self, choice: ModelChoice, format: Format, transport: Transport, options: ClientOptions | None = None) -> None:
        self.choice, self._format, self._transport = choice, format, transport
        self._options = options or ClientOptions()
        self._producer = producer_of(choice, format.name)
        secrets = self._options.secrets or partial(key_of, choice)
        self._log = WireLog(self._options.wire_log, secrets) if self._options.wire_log else None
        self._shared = (
            retry.SharedLimiter(self._options.limiter, choice.base_url, choice.api_key, self._options.sleep)
            if self._options.limiter
            else None
        )
        self._estimate = TokenEstimate()
        self._prefixes = PrefixWatch()
        self._dropped: frozenset[str] = frozenset()
        self._refused_schema: Mapping[str, Any] | None = None
        self._warned_of_truncation = False
        self._attachment_notices: AttachmentNotices | None = None
        self._without_media: tuple[Message, ...] = ()
        """The last messages that had no attachments."""

    def think(self, level: ThinkingLevel) -> None:
        self.choice = replace(self.choice, thinking=level)

    async def close(self) -> None:
        await self._transport.close()

    async def ask(self, question: ModelQuestion, listener: Listener) -> Message:
        attempt, first_failure, options = 1, None, self._options
        if question.json_schema is not None and question.json_schema == self._refused_schema:
            question = replace(question, json_schema=None)
        new = question.messages[common_prefix_length(self._without_media, question.messages) :]
        new_parts = (part for message in new for part in message.parts)
        if any(isinstance(part, MediaPart) or (isinstance(part, ToolPart) and part.output_parts) for part in new_parts):
            self._attachment_notices = self._attachment_notices or AttachmentNotices()
            if notice := self._attachment_notices.notice(self.choice, question.messages):
                await listener.on_notice(notice)
        else:
            self._without_media = question.messages
        limiter = retry.limiter_of(self.choice.base_url, self.choice.api_key)
        while True:
            try:
                # A first attempt waits while another agent is rate limited; a retry has waited already.
                wait_s = limiter.wait_s(options.clock()) if attempt == 1 else 0.0
                if wait_s:
                    await listener.on_notice(f"Waiting {wait_s:.0f} s: another request with this key was rate limited.", "info")
                await limiter.enter(options.sleep, wait_s)
                try:
                    message = await self._attempt(question, listener, attempt)
                finally:
                    limiter.leave()
                limiter.on_answer()
                return message
            except ProviderError as error:
                redact(error, self.choice)
                if asked := await self._drop_schema(error, question, listener):
                    question = asked
                    continue
                if await self._drop_field(error, question, listener):
                    continue
                now = options.clock()
                first_failure = now if first_failure is None else first_failure
                spent_s = now - first_failure
                next_wait_s = retry.next_wait_s(
                    error,
                    attempt,
                    spent_s,
                    options.retries,
                    options.random,
                    attended=options.attended,
                    has_fallback=options.has_fallback,
                )
                if next_wait_s is None:
                    await self._report_limit(error)
                    if isinstance(error, Unreachable):
                        _name_address(error, self.choice)
                    raise
                if isinstance(error, RateLimited):
                    limiter.on_rate_limit(now, next_wait_s)
                    if self._shared:
                        await self._shared.report_refusal(next_wait_s)
                tries = retry.tries_for(error, options.retries, has_fallback=options.has_fallback)
                await listener.on_attempt_failed(error, attempt, tries, next_wait_s)
            await options.sleep(next_wait_s)
            attempt += 1

    async def _report_limit(self, error: ProviderError) -> None:
        """In a batch the key sleeps for all tasks; a script learns how to wait."""
        now = time.time()
        if (end_at := limit_end(error, now)) is None or end_at <= now:
            return
        if self._shared:
            await self._shared.report_end(end_at - now)
        elif not self._options.attended:
            error.hint = f"{error.hint} --wait-for-reset waits until {clock_time(end_at, now)}.".strip()

    async def _attempt(self, question: ModelQuestion, listener: Listener, attempt: int) -> Message:
        request = self._request(question)
        body = self._format.encode(request)
        blocks = self._format.blocks()
        prompt_tokens = self._estimate.request(question.messages, system=question.system, tools=question.tools)
        if self._shared:
            await self._shared.enter(prompt_tokens, listener)
        await listener.on_request(attempt, prompt_tokens)
        log.debug("request %d to %s, about %d tokens", attempt, self.choice.model.id, prompt_tokens)
        exchange = self._log.begin(body) if self._log else None
        try:
            assembler = await self._receive(request, self._call(question, body, exchange), listener)
        except HttpStatusError as refused:
            if self._shared:
                self._shared.learn(refused.headers)
            error = self._format.read_error(refused.status, refused.headers, refused.body)
            window = self.choice.model.context
            if isinstance(error, Unexplained) and window and prompt_tokens >= window * NEAR_SHARE:
                error = ContextOverflow(error.message, hint=error.hint, status=error.status)
            if refused.status in WRONG_PLACE or refused.body.lstrip().startswith(b"<"):
                from wolo.formats.errors.classify import CHECK_BASE_URL  # noqa: PLC0415  # most answers are no errors

                error.message = f"{display_url(refused.url)}: {error.message}"
                if error.hint == CHECK_BASE_URL:
                    error.hint = (
                        f"{CHECK_BASE_URL} Wolo asked for {API_NAMES[self.choice.format]} there; --api names another API."
                    )
            raise error from None
        finally:
            if exchange:
                exchange.close()
        message = self._with_usage(assembler.message(producer=self._producer), prompt_tokens)
        if self._shared:
            await self._shared.report_usage(message.usage, prompt_tokens)
        message = self._prefixes.remember(message, question.messages, blocks)
        if miss := find_miss(message, question.messages, self.choice.model.price):
            await listener.on_notice(miss.sentence, "info")
        await self._warn_if_truncated(message, prompt_tokens, listener)
        return message

    async def _receive(self, request: Request, call: HttpCall, listener: Listener) -> Assembler:
        limits = StreamLimits(self._options.max_answer_bytes, call.idle_s, self._options.clock)
        whole = False
        async with contextlib.aclosing(self._transport.send(call)) as batches:
            batch = await anext(batches, None)
            assembler, decoder = Assembler(), self._format.decoder(request)
            while batch:
                if batch.whole is not None:
                    whole = True
                    deltas: list[Delta] = list(self._format.read_whole(batch.whole))
                else:
                    deltas = join(decoder.feed(*batch.payloads))
                limits.take(batch.payloads, deltas, decoder.held_chars)
                if deltas:
                    assembler.add(deltas)
                    await listener.on_deltas(assembler.with_part_ids(deltas))
                # None at the end. After a complete response, a broken or idle connection also counts as the end.
                if not decoder.is_complete:
                    if self._options.attended:
                        await self._options.sleep(READ_EVERY_S)
                    batch = await anext(batches, None)
                else:
                    try:
                        async with asyncio.timeout(LAST_WORDS_S - limits.since_end_s()):
                            batch = await anext(batches, None)
                    except (TimeoutError, Unavailable):
                        batch = None
        if not whole and (last := decoder.close()):
            assembler.add(last)
            await listener.on_deltas(assembler.with_part_ids(last))
        return assembler

    def _request(self, question: ModelQuestion) -> Request:
        return request_for(self.choice, self._producer, question, self._dropped)

    def _call(self, question: ModelQuestion, body: bytes, exchange: Exchange | None) -> HttpCall:
        choice, settings = self.choice, self._options.retries
        headers = request_headers(choice) | introduce(
            self._options.headers, project=self._options.project, session_id=question.session_id, prompt_id=question.prompt_id
        )
        idle_s = settings.idle_s if settings.idle_s is not None else 0.0 if choice.provider.loopback else IDLE_S
        if (first_byte_s := settings.first_byte_s) is None:
            first_byte_s = min(FIRST_BYTE_S, idle_s) if idle_s and not choice.provider.loopback else idle_s
        return HttpCall(
            url=join_url(choice.base_url, self._format.path(choice.model.id), choice.provider.query),
            body=body,
            framing=self._format.framing,
            headers=headers,
            first_byte_s=first_byte_s,
            idle_s=idle_s,
            tap=exchange,
            on_demand=self._options.attended,
        )

    async def _drop_schema(self, error: ProviderError, question: ModelQuestion, listener: Listener) -> ModelQuestion | None:
        """Returns the question without the schema of its answer, if the request that had it was refused as such."""
        is_refusal = isinstance(error, BadRequest) and not isinstance(error, ContextOverflow)
        if not is_refusal or question.json_schema is None or error.field not in (None, *SCHEMA_FIELDS):
            return None
        asked = replace(question, json_schema=None)
        if self._format.encode(self._request(asked)) == self._format.encode(self._request(question)):
            return None
        self._refused_schema = question.json_schema
        await listener.on_notice(
            f"{self.choice.label} refuses to enforce the schema of the answer, which is only asked for: {error}"
        )
        return asked

    async def _drop_field(self, error: ProviderError, question: ModelQuestion, listener: Listener) -> bool:
        if not error.field or error.field in self._dropped:
            return False
        if error.field in MEDIA and any(
            each.id == question.prompt_id and MUST_BE_SENT in each.metadata for each in question.messages
        ):
            names = join_names(names_of(question.messages, error.field)) or "what the model does not take"
            error.hint = f"{error.hint} --ignore-unsupported sends the prompt without {names}.".strip()
            return False
        sent, before = self._format.encode(self._request(question)), (self._dropped, self.choice, self._format)
        self._dropped |= {error.field}
        if error.field in MEDIA:  # disabled through the dialect, so the history is encoded again
            model = self.choice.model
            self.choice = replace(self.choice, model=replace(model, dialect={**model.dialect, error.field: False}))
            self._format = format_of(self.choice)
        if self._format.encode(self._request(question)) == sent:
            self._dropped, self.choice, self._format = before
            return False
        what = f"{error.field}; they are" if error.field in MEDIA else f"the field `{error.field}`; it is"
        names = f": {join_names(names_of(question.messages, error.field))}" if error.field in MEDIA else ""
        await listener.on_notice(f"{self.choice.label} refuses {what} omitted from now on{names}.")
        return True

    def _with_usage(self, message: Message, prompt_tokens: int) -> Message:
        usage = message.usage or Usage()
        if not usage.prompt_tokens:
            usage = replace(usage, input_tokens=prompt_tokens, estimated=True)
        if not usage.output_tokens and message.parts:
            usage = replace(usage, output_tokens=max(1, estimate_message(message) - ROLE_TOKENS), estimated=True)
        cost = usage.cost or cost_of(usage, self.choice.model.price)
        return replace(message, usage=replace(usage, cost=cost))

    async def _warn_if_truncated(self, message: Message, prompt_tokens: int, listener: Listener) -> None:
        usage = message.usage
        provider = self.choice.provider
        may_cut = provider.loopback or self.choice.base_url != provider.base_url  # hosted services refuse long prompts
        if usage is None or usage.estimated or self._warned_of_truncation or prompt_tokens < CUT_OFF_TOKENS or not may_cut:
            return
        if usage.prompt_tokens < prompt_tokens * CUT_OFF_SHARE:
            self._warned_of_truncation = True
            await listener.on_notice(
                f"The server read only {usage.prompt_tokens:,} of about {prompt_tokens:,} prompt tokens: it cuts off the "
                "beginning, instructions and tools included. Give it a larger context "
                "(Ollama: OLLAMA_CONTEXT_LENGTH, llama.cpp: -c, LM Studio: context length)."
            )


def _name_address(error: Unreachable, choice: ModelChoice) -> None:
    provider = choice.provider
    is_given = choice.base_url != provider.base_url or provider.name == "custom"
    where = "--base-url or WOLO_BASE_URL" if is_given else f"providers.{provider.name}.base_url"
    if provider.base_url_env and not is_given:
        where = f"{provider.base_url_env} or {where}"
    error.hint = f"{choice.label} was contacted at {display_url(choice.base_url)} ({where}). {error.hint}".rstrip()


class StreamLimits:
    """Limits one response. Only text, reasoning and calls count; other events are silence."""

    def __init__(self, max_bytes: int, idle_s: float, clock: Callable[[], float]) -> None:
        """`idle_s` 0: no limit."""
        self._max_bytes, self._idle_s, self._clock = max_bytes, idle_s, clock
        self._delta_bytes = 0
        self._slots: set[int] = set()
        self._size_bytes = 0
        self._grown = clock()
        """Time of the last growth."""
        self._ended: float | None = None

    def since_end_s(self) -> float:
        """Seconds since the complete response last grew; call only after its end."""
        if self._ended is None:
            self._ended = self._clock()
        return self._clock() - max(self._ended, self._grown)

    def take(self, payloads: Sequence[bytes], deltas: Sequence[Delta], held_chars: int) -> None:
        """Raises BadAnswer for too much text or too many calls, Unavailable for too long silence."""
        self._slots.update(delta.slot for delta in deltas if isinstance(delta, CallDelta))
        self._delta_bytes += size_of(deltas)
        size_bytes = self._delta_bytes + held_chars
        if size_bytes > self._max_bytes:
            raise BadAnswer(
                f"The answer is longer than {self._max_bytes:,} bytes; it was stopped.",
                hint="Ask for less at a time, or raise limits.max_answer_bytes.",
            )
        if len(self._slots) > MOST_CALLS:
            raise BadAnswer(f"The answer makes more than {MOST_CALLS:,} calls; it was stopped.", hint="Ask for less at a time.")
        if size_bytes != self._size_bytes:
            self._size_bytes, self._grown = size_bytes, self._clock()
        elif self._idle_s and (silence_s := self._clock() - self._grown) > self._idle_s:
            is_kept_alive = any(mark in payload[:_KIND_BYTES] for payload in payloads for mark in KEEP_ALIVES)
            if not is_kept_alive or silence_s > self._idle_s * PATIENCE:
                raise Unavailable(f"The model sent nothing but empty events for {silence_s:.0f} s.")
