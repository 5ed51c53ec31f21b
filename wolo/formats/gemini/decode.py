"""Decode Gemini responses: stream chunks become deltas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from wolo.errors import BadRequest, ContextOverflow, ProviderError, QuotaExhausted, RateLimited
from wolo.formats import response_end
from wolo.formats.gemini.chunks import GeminiOpenCalls, GeminiPart, GeminiReader, split_list
from wolo.formats.gemini.encode import THOUGHT_SIGNATURE, own_names
from wolo.formats.tolerant_json import EMPTY_JSON, list_at, mapping_at, read_json, read_object, short_text, token_count
from wolo.messages.deltas import BreakDelta, Delta, FinishDelta, TextDelta, TextMark, ThinkingDelta, UsageDelta
from wolo.messages.message import FinishReason, Usage
from wolo.messages.parts import Blob

if TYPE_CHECKING:
    from wolo.formats.web_findings import WebFindings

THOUGHT = "thought"
"""Field name of reasoning parts."""
UNSPECIFIED = ("", "FINISH_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED")
SHOWN_CHARACTERS = 200

FINISHES: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "ESCALATION"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "PUP_LIMITED_DISABLED"),
        ),
        "refused",
    ),
    **dict.fromkeys(
        (
            *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"),
            *("MALFORMED_RESPONSE", "OTHER", "IMAGE_OTHER", "NO_IMAGE"),
        ),
        "error",
    ),
}


class GeminiDecoder:
    """Decodes one response. There is no final event: the response is complete when its candidate has a finish reason."""

    held_chars = 0
    findings: WebFindings | None = None

    def __init__(self, tools: Iterable[str], provider_hint: str = "") -> None:
        """`tools` are the names offered."""
        self._events = GeminiReader()
        self._calls = GeminiOpenCalls(own_names(tools))
        self._hint = provider_hint
        self._candidate: int | None = None
        self._is_writing = False
        """The last text part may continue; a signature must not attach to it."""
        self._finish = ""
        self._finish_message = ""
        self._blocked = ""
        self._usage = b""
        self._id = self._model = b""

    @property
    def is_complete(self) -> bool:
        return bool(self._finish or self._blocked) and not self._calls.is_open

    def feed(self, *payloads: bytes) -> Sequence[Delta]:
        """Skips invalid JSON. Raises a ProviderError for error objects."""
        deltas: list[Delta] = []
        for payload in payloads:
            items = split_list(payload) if payload[:1] == b"[" else None
            for item in (payload,) if items is None else items:
                deltas += self._feed_one(item)
        return deltas

    def close(self) -> Sequence[Delta]:
        """Raises Unavailable when the response is incomplete or ended for a transient reason."""
        if not self._finish and not self._blocked:
            raise response_end.ended_early_error(self._events.skipped)
        reason: FinishReason = "refused"
        if self._finish:
            known, told = FINISHES.get(self._finish.upper()), self._finish_message[:SHOWN_CHARACTERS]
            reason = response_end.resolve_finish(self._finish, known, has_calls=bool(self._calls), explanation=told)
        if self._calls.is_open and reason == "tool_calls":
            raise response_end.ended_early_error(self._events.skipped, "in the middle of a call")
        deltas: list[Delta] = [*self._calls.close()]
        if self._usage and (usage := read_usage(self._usage)) is not None:
            deltas.append(UsageDelta(usage))
        deltas += [self.findings.mark()] if self.findings is not None else ()
        word = self._finish or self._blocked
        explanation = ": ".join(filter(None, (word, self._finish_message[:SHOWN_CHARACTERS])))
        id, model = (short_text(read_json(each)) if each else "" for each in (self._id, self._model))
        deltas.append(FinishDelta(reason, word, explanation if reason == "refused" else "", id, model))
        return deltas

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        """Accepts a single response, or the list that streaming without `alt=sse` returns."""
        if split_list(body) is None and read_object(body) is None:
            raise response_end.bad_body_error(body)
        deltas = [*self.feed(body.strip())]
        if not (self._finish or self._blocked or deltas):
            raise response_end.no_message_error()
        return [*deltas, *self.close()]

    def _feed_one(self, payload: bytes) -> Sequence[Delta]:
        if (event := self._events.read(payload)) is None:
            return ()
        if event.error and bytes(event.error) not in EMPTY_JSON:
            raise read_refusal(200, {}, payload, self._hint)
        if event.response_id and not self._id:
            self._id = bytes(event.response_id)
        if event.model_version and not self._model:
            self._model = bytes(event.model_version)
        if event.usage_metadata and (usage := bytes(event.usage_metadata)) not in EMPTY_JSON:
            self._usage = usage
        if event.prompt_feedback is not None and event.prompt_feedback.block_reason not in (None, *UNSPECIFIED):
            self._blocked = event.prompt_feedback.block_reason or ""
            self._finish_message = event.prompt_feedback.block_reason_message or ""
        deltas: list[Delta] = []
        for candidate in event.candidates or ():
            if self._candidate is None:
                self._candidate = candidate.index
            if candidate.index == self._candidate or candidate.index is None:
                for part in candidate.content.parts or () if candidate.content is not None else ():
                    self._read_part(part, deltas)
                if candidate.grounding_metadata and self.findings is not None:
                    grounding = read_object(bytes(candidate.grounding_metadata)) or {}
                    queries, chunks = grounding.get("webSearchQueries"), grounding.get("groundingChunks")
                    self.findings.num_searches = max(self.findings.num_searches, len(queries) if isinstance(queries, list) else 0)
                    for chunk in chunks if isinstance(chunks, list) else ():
                        self.findings.add(chunk.get("web") if isinstance(chunk, dict) else None, url="uri")
                if candidate.finish_reason and candidate.finish_reason not in UNSPECIFIED:
                    self._finish = candidate.finish_reason
                    self._finish_message = candidate.finish_message or ""
        if not event.candidates and not event.usage_metadata and response_end.is_error(read_object(payload) or {}):
            raise read_refusal(200, {}, payload, self._hint)
        return deltas

    def _read_part(self, part: GeminiPart, deltas: list[Delta]) -> None:
        signature = part.thought_signature
        if not signature and part.function_call is None:
            if part.text:
                deltas.append(ThinkingDelta(part.text, THOUGHT) if part.thought else TextDelta(part.text))
                self._is_writing = True
            return
        blobs = (Blob(THOUGHT_SIGNATURE, signature),) if signature else ()
        if part.function_call is not None:
            deltas += self._calls.add(part.function_call, blobs)
            self._is_writing = False
        elif part.text is not None or part.thought:
            if self._is_writing:
                deltas.append(BreakDelta())
            if part.thought:
                deltas.append(ThinkingDelta(part.text or "", THOUGHT, blobs))
            else:
                deltas += [TextDelta(part.text)] if part.text else []
                deltas.append(TextMark(blobs=blobs))
            deltas.append(BreakDelta())
            self._is_writing = False


def read_usage(raw: bytes) -> Usage | None:
    """None when there is no usage. Prompt counts include cached tokens; thoughts are counted separately from candidates."""
    usage = read_json(raw)
    if not isinstance(usage, dict):
        return None
    prompt = token_count(usage.get("promptTokenCount")) + token_count(usage.get("toolUsePromptTokenCount"))
    cached = min(token_count(usage.get("cachedContentTokenCount")), prompt)
    thoughts = token_count(usage.get("thoughtsTokenCount"))
    return Usage(
        input_tokens=prompt - cached,
        output_tokens=token_count(usage.get("candidatesTokenCount")) + thoughts,
        cache_read_tokens=cached,
        reasoning_tokens=thoughts,
    )


TOO_LARGE = re.compile(r"payload size exceeds the limit", re.IGNORECASE)
NAMES_A_MODEL = re.compile(r"\bmodels?[/ ]\S", re.IGNORECASE)
UNKNOWN_NAME = re.compile(r"Unknown name \"(\w+)\"(?: at '([^']*)')?")
REFUSED_FIELDS: tuple[tuple[str, str], ...] = (
    (
        r"thought[ _]?signature.{0,80}(?:not valid|invalid|corrupt|decod)|(?:invalid|corrupt).{0,40}thought[ _]?signature",
        "thoughtSignature",
    ),
    (r"thinking[ _]?level", "thinkingLevel"),
    (r"thinking[ _]?budget|budget \d+ is invalid", "thinkingBudget"),
    (r"include[ _]?thoughts|thinking is not (?:supported|enabled)|does not support thinking", "thinkingConfig"),
    (r"(?:developer|system)[ _]instructions? (?:is|are) not (?:enabled|supported)", "systemInstruction"),
    (r"response mime type.{0,60}unsupported|json mode is not (?:enabled|supported)", "responseJsonSchema"),
)
"""Wordings with which a model refuses a feature, and the field to drop."""
HOST_ALONE = "For Gemini the base URL is the host alone, such as https://generativelanguage.googleapis.com."


def read_refusal(status: int, headers: Mapping[str, str], body: bytes, provider_hint: str = "") -> ProviderError:
    error = response_end.response_error(status, headers, body, provider_hint=provider_hint)
    document = read_object(body) or {}
    if status in (404, 405) and not NAMES_A_MODEL.search(error.message):
        error.hint = HOST_ALONE
    if isinstance(error, BadRequest) and TOO_LARGE.search(error.message):
        return _convert(ContextOverflow, error)
    if isinstance(error, QuotaExhausted):
        # Quotas have names such as `GenerateContentInputTokensPerModelPerMinute`.
        quotas = (
            each.get("quotaId")
            for detail in list_at(mapping_at(document, "error"), "details", dict)
            for each in list_at(detail, "violations", dict)
        )
        if error.resets_at is None and any("perminute" in str(quota).lower() for quota in quotas):
            return _convert(RateLimited, error)
        error.hint = f"The quota is used up; it resets at {error.resets_at}." if error.resets_at else error.hint
    if isinstance(error, BadRequest):
        from wolo.formats.errors.error_tables import MEDIA  # noqa: PLC0415  # for failed requests only

        refused = next((field for wording, field in REFUSED_FIELDS if re.search(wording, error.message, re.IGNORECASE)), None)
        if unknown := UNKNOWN_NAME.search(error.message):
            first, *rest = unknown[1].split("_")
            refused = first + "".join(word[:1].upper() + word[1:] for word in rest)  # as the API spells it
            refused = "functionResponse.parts" if refused == "parts" and "unction" in (unknown[2] or "") else refused
        error.field = refused or (error.field if error.field in MEDIA else None)
    return error


def _convert(kind: type[ProviderError], error: ProviderError) -> ProviderError:
    return kind(error.message, hint=error.hint, status=error.status, code=error.code)
