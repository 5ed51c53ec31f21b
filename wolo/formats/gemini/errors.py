"""What Google's refusals mean where their status alone does not say it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from wolo.errors import BadRequest, ContextOverflow, ProviderError, QuotaExhausted, RateLimited
from wolo.formats.decoding.loose_json import read_object
from wolo.formats.errors.classify import classify
from wolo.formats.errors.error_patterns import MEDIA

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
"""Wordings in which a model refuses what it does not know, and the field that is left out then."""
HOST_ALONE = "For Gemini the base URL is the host alone, such as https://generativelanguage.googleapis.com."


def read_refusal(status: int, headers: Mapping[str, str], body: bytes, provider_hint: str = "") -> ProviderError:
    error = classify(status, headers, body, provider_hint=provider_hint)
    document = read_object(body) or {}
    if status in (404, 405) and not NAMES_A_MODEL.search(error.message):
        error.hint = HOST_ALONE
    if isinstance(error, BadRequest) and TOO_LARGE.search(error.message):
        return _as(ContextOverflow, error)
    if isinstance(error, QuotaExhausted):
        if error.resets_at is None and _is_of_a_minute(document):
            return _as(RateLimited, error)
        error.hint = f"The quota is used up; it resets at {error.resets_at}." if error.resets_at else error.hint
    if isinstance(error, BadRequest):
        error.field = refused_field(error.message) or (error.field if error.field in MEDIA else None)
    return error


def refused_field(message: str) -> str | None:
    """The optional field that this refusal is about, as it is called in the request."""
    if found := UNKNOWN_NAME.search(message):
        name, place = _camel(found[1]), found[2] or ""
        return "functionResponse.parts" if name == "parts" and "unction" in place else name
    return next((field for wording, field in REFUSED_FIELDS if re.search(wording, message, re.IGNORECASE)), None)


def _as(kind: type[ProviderError], error: ProviderError) -> ProviderError:
    return kind(error.message, hint=error.hint, status=error.status, code=error.code)


def _is_of_a_minute(document: Mapping[str, Any]) -> bool:
    """By the names of the quotas that are used up, such as `GenerateContentInputTokensPerModelPerMinute`."""
    error = document.get("error")
    details = error.get("details") if isinstance(error, dict) else None
    violated = [each.get("violations") for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    named = [each for violations in violated if isinstance(violations, list) for each in violations if isinstance(each, dict)]
    return any("perminute" in str(each.get("quotaId", "")).lower() for each in named)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)
