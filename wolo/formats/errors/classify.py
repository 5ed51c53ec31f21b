"""What a provider's refusal means: one classifier for every status, body and error event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from wolo.errors import (
    AuthError,
    BadAnswer,
    BadRequest,
    ContentRefused,
    ContextOverflow,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Unavailable,
    Unexplained,
)
from wolo.formats.errors.error_body import Refusal, headers_within, understand
from wolo.formats.errors.error_tables import (
    ANOTHER_TRY,
    AUTH,
    BAD_KEY,
    BROKEN,
    CROWDED,
    DAILY,
    FIELDS_BY_PARAM,
    GLM_CODES,
    GLM_FINAL,
    INVALID,
    MEDIA,
    NO_MEDIA,
    NO_MEMORY,
    NO_THINKING,
    NO_TOOLS,
    NOT_PULLED,
    OPTIONAL_FIELDS,
    OVERFLOW,
    QUOTA,
    REASONING_WITH_TOOLS,
    REFUSED,
    RESULT_NAME,
    SECRETS,
    TEMPORARY_QUOTAS,
    UNKNOWN_MODEL,
    kind_of,
    says,
)
from wolo.formats.errors.retry_after import (
    LONGEST_WAIT_S,
    next_pacific_midnight,
    read_delay_s,
    read_reset,
    read_window_s,
    until,
)

Kind = type[ProviderError]

MAX_MESSAGE_CHARACTERS = 600


def classify(
    status: int,
    headers: Mapping[str, str],
    body: bytes | str | Mapping[str, Any],
    *,
    provider_hint: str = "",
    now_s: float | None = None,
) -> ProviderError:
    """Never raises. `headers` have lower-case names; `now_s` replaces the clock. What looks like a key is taken out."""
    refusal = understand(status, body)
    kind, retryable = _judge(refusal)
    delay_s = read_delay_s(headers, refusal.body, refusal.message, now_s)
    if delay_s is None and kind is RateLimited:
        delay_s = read_window_s({**headers, **headers_within(refusal.body)}, now_s)
    is_glm = refusal.code in GLM_CODES
    is_daily = kind in (RateLimited, QuotaExhausted) and not is_glm and _is_daily(refusal, delay_s)
    reset = read_reset(refusal.message, beijing=is_glm, now_s=now_s)
    if reset is not None and delay_s is None and retryable:
        delay_s = reset.seconds if reset.seconds > 0 else None
    details: dict[str, Any] = {
        "hint": _hint(kind, refusal, provider_hint),
        "status": status or None,
        "code": refusal.code or None,
        "delay_s": None if is_daily else delay_s,
        "resets_at": reset.instant if reset is not None else None,
    }
    message = _without_keys(_message(refusal))
    if retryable and delay_s is not None and delay_s > LONGEST_WAIT_S:
        details["resets_at"] = details["resets_at"] or until(delay_s, now_s)
        return QuotaExhausted(message, temporary=True, **details)
    if is_daily:
        details["resets_at"] = details["resets_at"] or next_pacific_midnight(now_s)
        return QuotaExhausted(message, temporary=True, **details)
    if kind is QuotaExhausted:
        has_end = details["resets_at"] is not None or refusal.code in TEMPORARY_QUOTAS
        return QuotaExhausted(message, temporary=has_end, **details)
    if kind is BadRequest:
        details["field"] = _named_field(refusal) or _named_media(refusal)
    error = kind(message, **details)
    return _obeying(error, headers, retryable)


def is_error(body: Mapping[str, Any]) -> bool:
    """Whether an object that is no part of an answer is a refusal."""
    if (
        body.get("error")
        or body.get("errors")
        or body.get("detail")
        or body.get("object") == "error"
        or body.get("type") == "error"
    ):
        return True
    return body.get("success") is False or ("code" in body and bool(body.get("message") or body.get("msg")))


# Judging


def _judge(refusal: Refusal) -> tuple[Kind, bool]:
    """The kind, and whether another try can help."""
    if refusal.code in GLM_CODES:
        return GLM_CODES[refusal.code]
    if re.fullmatch(GLM_FINAL, refusal.code):
        return BadRequest, False
    if found := kind_of(refusal.codes, refusal.status):
        code, kind = found
        if not (kind is QuotaExhausted and _says_when(refusal)):
            return kind, kind.retryable or code in ANOTHER_TRY
    kind = _by_words(refusal) or _by_status(refusal)
    return kind, kind.retryable


def _by_words(refusal: Refusal) -> Kind | None:
    status, words = refusal.status, refusal.words
    may_overflow = status in (0, 200, 400, 413, 422, 500)
    if may_overflow and not refusal.is_page and says(OVERFLOW, words):
        return ContextOverflow
    if status == 400 and not words.strip():
        return Unexplained
    if status in (400, 422, 500) and says(BAD_KEY, words):
        return AuthError
    if status in (0, 200, 500) and says(NO_MEMORY, words):
        return BadRequest
    if status in (0, 200, 404, 415, 500, 501) and says(NO_MEDIA, words):
        return BadRequest
    if status == 402 or (status in (0, 200, 400, 403, 429) and says(QUOTA, words)):
        return RateLimited if _says_when(refusal) else QuotaExhausted
    if not refusal.is_page and says(REFUSED, words):
        return ContentRefused
    return None


def _says_when(refusal: Refusal) -> bool:
    """A quota that is free again in a moment is a rate limit in other words (Gemini)."""
    return refusal.status == 429 and read_delay_s({}, refusal.body, refusal.message, None) is not None


def _is_daily(refusal: Refusal, delay_s: float | None) -> bool:
    """A window of a day. Google asks to try again in seconds all the same, and means the window of a minute."""
    if any("perday" in code.lower() for code in refusal.codes):
        return True
    return refusal.status == 429 and delay_s is None and says(DAILY, refusal.words)


def _by_status(refusal: Refusal) -> Kind:
    status = refusal.status
    if status in (401, 403, 407, 434):
        return AuthError
    if status == 413:
        return ContextOverflow
    if status == 429:
        return RateLimited
    if status in (408, 409, 425, 499) or status >= 500:
        return Unavailable
    if status >= 300:
        return BadRequest
    if refusal.is_page or not refusal.body:
        return BadAnswer
    return _by_words_alone(refusal.words)


def _by_words_alone(words: str) -> Kind:
    """An error inside an answer with status 200; what cannot be told is taken for the server's trouble, not ours."""
    table: tuple[tuple[str, Kind], ...] = (
        (AUTH, AuthError),
        (CROWDED, RateLimited),
        (BROKEN, Unavailable),
        (INVALID, BadRequest),
    )
    return next((kind for pattern, kind in table if says(pattern, words)), Unavailable)


def _named_field(refusal: Refusal) -> str | None:
    """The optional field that the refusal is about, if it names one."""
    if refusal.status not in (0, 200, 400, 422) or says(REASONING_WITH_TOOLS, refusal.message):
        return None
    path = re.sub(r"(?:\[\d+\]|\.\d+)+$", "", refusal.param)
    named = path.rpartition(".")[2] or path
    if named in OPTIONAL_FIELDS or named in FIELDS_BY_PARAM:
        return named
    if says(RESULT_NAME, f"{refusal.param} {refusal.message}"):
        return "name"
    return next((field for field in OPTIONAL_FIELDS if re.search(rf"(?<![\w-]){field}(?![\w-])", refusal.message)), None)


def _named_media(refusal: Refusal) -> str | None:
    """The kind of attachment that the refusal is about: it must not be sent again, or the session is lost to this model."""
    if refusal.is_page or refusal.status in (401, 403):
        return None
    return next((kind for kind, pattern in MEDIA.items() if says(pattern, refusal.words)), None)


def _obeying(error: ProviderError, headers: Mapping[str, str], retryable: bool) -> ProviderError:
    """The server's own word on whether to try again counts more than ours."""
    said = headers.get("x-should-retry", "").strip().lower()
    error.retryable = {"true": True, "false": False}.get(said, retryable)
    return error


# Words for people


def _message(refusal: Refusal) -> str:
    printable = "".join(char if char.isprintable() else " " for char in refusal.message)
    text = " ".join(printable.split())
    if len(text) > MAX_MESSAGE_CHARACTERS:
        text = text[:MAX_MESSAGE_CHARACTERS] + "…"
    if refusal.is_page:
        return f"The server answered with a web page (HTTP {refusal.status}): {text[:200] or 'an empty one'}"
    if text:
        return text
    return f"The provider refused the request without a reason (HTTP {refusal.status})."


def _without_keys(text: str) -> str:
    return re.sub(SECRETS, "[key]", text)


def _hint(kind: Kind, refusal: Refusal, provider_hint: str) -> str:
    if refusal.code == "1113":
        return "Charge the account; a Coding Plan key works on the coding endpoint only (provider zai-coding)."
    if refusal.code == "1311":
        return "Choose a model that the plan includes."
    if says(REASONING_WITH_TOOLS, refusal.message):
        return "Turn thinking off for this model; here it does not go together with tools."
    if kind is AuthError:
        return provider_hint or "Check the API key and whether it belongs to this provider."
    if refusal.code == "DeploymentNotFound":
        return "The model is the name of your deployment; the base URL is that of the resource it is in."
    if found := re.search(NOT_PULLED, refusal.message):
        return f"`ollama pull {found[1]}` fetches it; `wolo models list` and `ollama list` show what there is."
    if says(NO_MEMORY, refusal.words):
        return "Choose a smaller model, or free some memory on the machine it runs on."
    if says(NO_TOOLS, refusal.words):
        return "Choose a model that can call tools."
    if says(NO_THINKING, refusal.words):
        return "This model does not think: leave --thinking away."
    if says(UNKNOWN_MODEL, refusal.words) or refusal.code in ("1211", "model_not_found"):
        return "`wolo models list` shows the models; the name must be the server's own."
    if refusal.status in (404, 405) or refusal.is_page:
        return "Check the base URL: it ends where the API's own path begins, mostly in /v1."
    if kind is QuotaExhausted:
        return "Look at the balance and the plan of your account with this provider."
    if kind is ContentRefused:
        return "Say it differently, or use another model with --model."
    return ""
