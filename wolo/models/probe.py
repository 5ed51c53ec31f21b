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
from wolo.formats.format import Format, Request, ToolSpec
from wolo.formats.tolerant_json import read_object
from wolo.messages.deltas import Assembler
from wolo.messages.message import Message, Producer, user
from wolo.messages.parts import ImagePart, ThinkingPart
from wolo.models import address, format_selection, headers, probe_cache, provider
from wolo.models.http.transport import HttpCall, HttpStatusError, Transport

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

OnFinding = Callable[[probe_cache.ProbeFinding], None]


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

    def __init__(self, choice: provider.ModelChoice, transport: Transport, on_finding: OnFinding) -> None:
        self._choice, self._transport, self._on_finding = choice, transport, on_finding
        self._flags: dict[str, Any] = {}
        self._abilities: list[provider.Ability] = []
        self._format = ""
        self._findings: list[probe_cache.ProbeFinding] = []

    async def run(self, context: int | None = None) -> probe_cache.ProbeResult:
        """`context` is the window reported by the server. Raises ProviderError if the model never answers."""
        plain = await self._first_answer()
        assert plain.message is not None
        self._report("answers", True, "as a stream" if plain.is_stream else "in one document, not as a stream")
        if thinking := plain.message.of(ThinkingPart):
            self._abilities.append("thinking")
            names = sorted({part.field for part in thinking})
            self._report("reasoning", True, f"in {' and '.join(names)}")
        else:
            self._report("reasoning", None, "none; it may need a thinking level")
        usage = plain.message.usage
        self._report("token counts", usage is not None, "" if usage else "not reported; wolo estimates them")
        cached = any(b"cached" in payload or b"cache_" in payload for payload in plain.payloads)
        self._report("cache counts", cached, "" if cached else "not reported")
        await self._try_tools()
        await self._try_images()
        if self._choice.format == CHAT:
            developer = await self._ask(flags={"system_role": "developer"})
            self._report("developer role", developer.error is None)
            newer = await self._ask(flags={"max_tokens_field": "max_completion_tokens"})
            name = self._flags.get("max_tokens_field", "max_tokens")
            takes_both = newer.error is None and name == "max_tokens"
            self._report("limit field", True, "max_tokens and max_completion_tokens" if takes_both else name)
            asked = "Which colour is the sky? Answer as JSON with the key colour."
            response = await self._ask(asked, schema=SCHEMA, flags={"response_format": "json_schema"})
            document = read_object(response.message.text.encode()) if response.message else None
            works = document is not None and isinstance(document.get("colour"), str)
            if response.refused:
                self._flags["response_format"] = "none"
            self._report("JSON schema", works, "" if works else "refused" if response.refused else "accepted, but not followed")
        self._report(
            "context window", None if context is None else True, "not reported" if context is None else f"{context:,} tokens"
        )
        return probe_cache.ProbeResult(
            base_url=address.display_url(self._choice.base_url),
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
        prompt: str = "Answer with the word OK.",
        *,
        tools: tuple[ToolSpec, ...] = (),
        history: tuple[Message, ...] | None = None,
        flags: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | None = None,
        system: str = "You are brief.",
    ) -> ProbeResponse:
        """`flags` change the dialect for this request, `extra` adds body fields."""
        model = self._choice.model
        dialect = {**model.dialect, **self._flags, **(flags or {})}
        choice = replace(self._choice, model=replace(model, dialect=dialect))
        format = format_selection.format_of(choice)
        request = Request(
            model=choice.model.id,
            producer=Producer(provider=choice.provider.name, format=format.name, model=choice.model.id),
            messages=history or (user(prompt),),
            system=system,
            tools=tools,
            max_tokens=ANSWER_TOKENS,
            json_schema=schema,
        )
        body = format.encode(request)
        if extra:
            body = msgspec.json.encode({**msgspec.json.decode(body), **extra})
        call = HttpCall(
            url=address.join_url(choice.base_url, format.path(choice.model.id), choice.provider.query),
            body=body,
            headers=headers.request_headers(choice),
            framing=format.framing,
            first_byte_s=TRY_S,
            idle_s=TRY_S,
        )
        response = await self._send(format, request, call)
        if response.error is not None:
            format_selection.redact(response.error, choice)
        return response

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

    def _report(self, what: str, works: bool | None, detail: str = "") -> None:
        finding = probe_cache.ProbeFinding(what, works, detail)
        self._findings.append(finding)
        self._on_finding(finding)

    # Probes

    async def _first_answer(self) -> ProbeResponse:
        for flags in ({}, {"usage_option": False}, {"system_role": "user"}, {"max_tokens_field": "max_completion_tokens"}):
            if flags and self._choice.format != CHAT:
                break
            response = await self._ask(flags=flags)
            if response.error is None:
                self._flags |= flags
                return response
            if not response.refused:
                raise response.error
            first = response.error
        raise first

    async def _try_tools(self) -> None:
        """Ask for two calls, to detect parallel calls."""
        asked = "Use the tool echo twice, at the same time: once with the word red, once with the word blue."
        looks_for_text = {format_selection.WRITTEN_CALLS: True} if self._choice.format in (CHAT, OLLAMA) else {}
        response = await self._ask(asked, tools=(ECHO,), flags=looks_for_text)
        calls = [call for call in response.message.calls if call.tool == ECHO.name] if response.message else []
        if response.refused or (not calls and self._choice.format == CHAT and not await self._calls_when_forced()):
            self._report("tools", False, "calls will be written as text instead" if self._choice.format == CHAT else "")
            self._format = "xml" if self._choice.format == CHAT else ""
            return
        if response.error:
            self._report("tools", None, response.error.message)
            return
        self._abilities.append("tools")
        as_text = bool(looks_for_text and calls) and not any(b"tool_calls" in payload for payload in response.payloads)
        self._flags |= looks_for_text if as_text else {}
        self._report("tools", True, "as text in the answer" if as_text else "")
        self._report("parallel calls", len(calls) > 1 or None, "" if len(calls) > 1 else "one at a time")
        if calls and response.message:
            await self._try_results(response.message)

    async def _calls_when_forced(self) -> bool:
        """Some models call tools only when forced."""
        response = await self._ask("Use the tool echo with the word red.", tools=(ECHO,), extra={"tool_choice": "required"})
        called = response.message is not None and any(call.tool == ECHO.name for call in response.message.calls)
        self._report("tool choice", called, "required" if called else "cannot be forced")
        return called

    async def _try_results(self, answer: Message) -> None:
        done = [replace(call, status="completed", outcome="ok", output=str(call.input.get("word", ""))) for call in answer.calls]
        by_id = {part.id: part for part in done}
        parts = tuple(by_id.get(part.id, part) for part in answer.parts)
        history = (user("Use the tool echo."), replace(answer, parts=parts))
        response = await self._ask(tools=(ECHO,), history=history)
        if response.refused and self._choice.format == CHAT:
            for flags in ({"content_null_ok": False}, {"tool_result_name": False}, {"id_policy": "mistral"}):
                response = await self._ask(tools=(ECHO,), history=history, flags=flags)
                if not response.refused:
                    self._flags |= flags
                    break
        self._report("results of calls", response.error is None, response.error.message if response.error else "")

    async def _try_images(self) -> None:
        picture = ImagePart(media_type="image/png", data=RED_DOT)
        response = await self._ask(history=(user("Which colour is this? One word.", picture),), flags={"images": True})
        # A server may crash on images instead of refusing them.
        if response.error is not None and not response.refused and isinstance(response.error, AuthError | RateLimited):
            self._report("images", None, response.error.message)
            return
        takes = response.error is None
        if takes:
            self._abilities.append("images")
        self._flags["images"] = takes
        self._report("images", takes)
