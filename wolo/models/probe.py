"""Probe a server's features with a few tiny requests, on the user's command."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import AuthError, BadRequest, ContextOverflow, ProviderError, RateLimited, Unavailable
from wolo.formats.decoding.tolerant_json import read_object
from wolo.formats.format import Format, Request, ToolSpec
from wolo.messages.deltas import Assembler
from wolo.messages.message import Message, Producer, user
from wolo.messages.parts import ImagePart, ThinkingPart, ToolPart
from wolo.models.address import display_url, join_url
from wolo.models.format_selection import WRITTEN_CALLS, format_of, redact, request_headers
from wolo.models.http.transport import HttpCall, HttpStatusError, Transport
from wolo.models.probe_cache import ProbeFinding, ProbeResult
from wolo.models.provider import Ability, ModelChoice

TRY_S = 60.0
"""Timeout of one request; small machines are slow."""
ANSWER_TOKENS = 256
"""Enough for a short answer after thinking."""
CHAT, OLLAMA = "openai-chat", "ollama"
ECHO = ToolSpec(
    name="echo",
    description="Repeats one word.",
    parameters={"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)
SCHEMA = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"], "additionalProperties": False}
RED_DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000080000000808020000004b6d29dc"
    "000000114944415478da63f8cfc08015310c2d090028ff3fc1ce77c84f0000000049454e44ae426082"
)
"""An 8×8 image; some servers refuse smaller ones."""

Tell = Callable[[ProbeFinding], None]


class ProbeResponse(Struct, frozen=True):
    """Result of one request."""

    message: Message | None = None
    payloads: tuple[bytes, ...] = ()
    error: ProviderError | None = None
    is_stream: bool = True

    @property
    def refused(self) -> bool:
        """The server refused the request itself."""
        return isinstance(self.error, BadRequest | ContextOverflow)


class Probe:
    """One run over one model; reports each finding immediately."""

    def __init__(self, choice: ModelChoice, transport: Transport, tell: Tell) -> None:
        self._choice = choice
        self._transport = transport
        self._tell = tell
        self._flags: dict[str, Any] = {}
        self._abilities: list[Ability] = []
        self._format = ""
        self._findings: list[ProbeFinding] = []

    async def run(self, context: int | None = None) -> ProbeResult:
        """`context` is the window reported by the server. Raises ProviderError if the model never answers."""
        plain = await self._first_answer()
        self._look_at(plain)
        await self._try_tools()
        await self._try_images()
        if self._choice.format == CHAT:
            await self._try_roles_and_limits()
            await self._try_schema()
        self._report(
            "context window", None if context is None else True, "not reported" if context is None else f"{context:,} tokens"
        )
        return ProbeResult(
            base_url=display_url(self._choice.base_url),
            model=self._choice.model.id,
            probed=datetime.now(UTC).isoformat(timespec="seconds"),
            format=self._format,
            dialect=self._flags,
            abilities=tuple(self._abilities),
            context=context,
            findings=tuple(self._findings),
        )

    # Requests

    async def _ask(
        self,
        words: str = "Answer with the word OK.",
        *,
        tools: tuple[ToolSpec, ...] = (),
        history: tuple[Message, ...] | None = None,
        flags: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | None = None,
        system: str = "You are brief.",
    ) -> ProbeResponse:
        """`flags` change the dialect for this request, `extra` adds body fields."""
        choice = self._with_flags({**self._flags, **(flags or {})})
        format = format_of(choice)
        request = Request(
            model=choice.model.id,
            producer=Producer(provider=choice.provider.name, format=format.name, model=choice.model.id),
            messages=history or (user(words),),
            system=system,
            tools=tools,
            max_tokens=ANSWER_TOKENS,
            json_schema=schema,
        )
        body = format.encode(request)
        if extra:
            body = msgspec.json.encode({**msgspec.json.decode(body), **extra})
        call = HttpCall(
            url=join_url(choice.base_url, format.path(choice.model.id), choice.provider.query),
            body=body,
            headers=request_headers(choice),
            framing=format.framing,
            first_byte_s=TRY_S,
            idle_s=TRY_S,
        )
        heard = await self._send(format, request, call)
        if heard.error is not None:
            redact(heard.error, choice)
        return heard

    async def _send(self, format: Format, request: Request, call: HttpCall) -> ProbeResponse:
        payloads: list[bytes] = []
        assembler, decoder, is_stream = Assembler(), format.decoder(request), True
        try:
            async with asyncio.timeout(TRY_S), contextlib.aclosing(self._transport.send(call)) as batches:
                async for batch in batches:
                    if batch.whole is not None:
                        is_stream = False
                        payloads.append(batch.whole)
                        assembler.add(format.read_whole(batch.whole))
                    for payload in batch.payloads:
                        payloads.append(payload)
                        assembler.add(decoder.feed(payload))
            if is_stream:
                assembler.add(decoder.close())
        except HttpStatusError as refused:
            return ProbeResponse(error=format.read_error(refused.status, refused.headers, refused.body))
        except TimeoutError:
            return ProbeResponse(error=Unavailable(f"No whole answer within {TRY_S:g} s."))
        except ProviderError as error:
            return ProbeResponse(error=error, payloads=tuple(payloads), is_stream=is_stream)
        return ProbeResponse(assembler.message(producer=request.producer), tuple(payloads), is_stream=is_stream)

    def _with_flags(self, flags: Mapping[str, Any]) -> ModelChoice:
        model = self._choice.model
        return replace(self._choice, model=replace(model, dialect={**model.dialect, **flags}))

    def _report(self, what: str, works: bool | None, words: str = "") -> None:
        finding = ProbeFinding(what, works, words)
        self._findings.append(finding)
        self._tell(finding)

    # Probes

    async def _first_answer(self) -> ProbeResponse:
        """Get a plain answer, changing flags until the server accepts the request."""
        for flags in ({}, {"usage_option": False}, {"system_role": "user"}, {"max_tokens_field": "max_completion_tokens"}):
            if flags and self._choice.format != CHAT:
                break
            heard = await self._ask(flags=flags)
            if heard.error is None:
                self._flags |= flags
                return heard
            if not heard.refused:
                raise heard.error
            first = heard.error
        raise first

    def _look_at(self, plain: ProbeResponse) -> None:
        assert plain.message is not None
        self._report("answers", True, "as a stream" if plain.is_stream else "in one document, not as a stream")
        thinking = plain.message.of(ThinkingPart)
        if thinking:
            self._abilities.append("thinking")
            names = sorted({part.field for part in thinking})
            self._report("reasoning", True, f"in {' and '.join(names)}")
        else:
            self._report("reasoning", None, "none; it may need a thinking level")
        usage = plain.message.usage
        self._report("token counts", usage is not None, "" if usage else "not reported; wolo estimates them")
        cached = any(b"cached" in payload or b"cache_" in payload for payload in plain.payloads)
        self._report("cache counts", cached, "" if cached else "not reported")

    async def _try_tools(self) -> None:
        """Ask for two calls, to detect parallel calls."""
        asked = "Use the tool echo twice, at the same time: once with the word red, once with the word blue."
        looks_for_text = {WRITTEN_CALLS: True} if self._choice.format in (CHAT, OLLAMA) else {}
        heard = await self._ask(asked, tools=(ECHO,), flags=looks_for_text)
        calls = [call for call in heard.message.calls if call.tool == ECHO.name] if heard.message else []
        if heard.refused or (not calls and self._choice.format == CHAT and not await self._calls_when_forced()):
            self._report("tools", False, "calls will be written as text instead" if self._choice.format == CHAT else "")
            self._format = "xml" if self._choice.format == CHAT else ""
            return
        if heard.error:
            self._report("tools", None, heard.error.message)
            return
        self._abilities.append("tools")
        as_text = bool(looks_for_text and calls) and not any(b"tool_calls" in payload for payload in heard.payloads)
        self._flags |= looks_for_text if as_text else {}
        self._report("tools", True, "as text in the answer" if as_text else "")
        self._report("parallel calls", len(calls) > 1 or None, "" if len(calls) > 1 else "one at a time")
        if calls and heard.message:
            await self._try_results(heard.message)

    async def _calls_when_forced(self) -> bool:
        """Some models call tools only when forced."""
        heard = await self._ask("Use the tool echo with the word red.", tools=(ECHO,), extra={"tool_choice": "required"})
        called = heard.message is not None and any(call.tool == ECHO.name for call in heard.message.calls)
        self._report("tool choice", called, "required" if called else "cannot be forced")
        return called

    async def _try_results(self, answer: Message) -> None:
        done = [replace(call, status="completed", outcome="ok", output=str(call.input.get("word", ""))) for call in answer.calls]
        history = (user("Use the tool echo."), replace(answer, parts=_answered(answer, done)))
        heard = await self._ask(tools=(ECHO,), history=history)
        if heard.refused and self._choice.format == CHAT:
            for flags in ({"content_null_ok": False}, {"tool_result_name": False}, {"id_policy": "mistral"}):
                heard = await self._ask(tools=(ECHO,), history=history, flags=flags)
                if not heard.refused:
                    self._flags |= flags
                    break
        self._report("results of calls", heard.error is None, heard.error.message if heard.error else "")

    async def _try_images(self) -> None:
        picture = ImagePart(media_type="image/png", data=RED_DOT)
        heard = await self._ask(history=(user("Which colour is this? One word.", picture),), flags={"images": True})
        if heard.error is not None and not heard.refused and not _may_mean_unsupported(heard.error):
            self._report("images", None, heard.error.message)
            return
        takes = heard.error is None
        if takes:
            self._abilities.append("images")
        self._flags["images"] = takes
        self._report("images", takes)

    async def _try_roles_and_limits(self) -> None:
        developer = await self._ask(flags={"system_role": "developer"})
        self._report("developer role", developer.error is None)
        newer = await self._ask(flags={"max_tokens_field": "max_completion_tokens"})
        name = self._flags.get("max_tokens_field", "max_tokens")
        self._report("limit field", True, name if newer.error or name != "max_tokens" else "max_tokens and max_completion_tokens")

    async def _try_schema(self) -> None:
        asked = "Which colour is the sky? Answer as JSON with the key colour."
        heard = await self._ask(asked, schema=SCHEMA, flags={"response_format": "json_schema"})
        document = read_object(heard.message.text.encode()) if heard.message else None
        works = document is not None and isinstance(document.get("colour"), str)
        if heard.refused:
            self._flags["response_format"] = "none"
        self._report("JSON schema", works, "" if works else "refused" if heard.refused else "accepted, but not followed")


def _answered(answer: Message, done: list[ToolPart]) -> tuple[Any, ...]:
    by_id = {part.id: part for part in done}
    return tuple(by_id.get(part.id, part) for part in answer.parts)


def _may_mean_unsupported(error: ProviderError) -> bool:
    """Servers may crash on images instead of refusing them; key and rate limit errors are different."""
    return not isinstance(error, AuthError | RateLimited)
