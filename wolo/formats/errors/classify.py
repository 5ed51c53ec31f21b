"""Classifies provider errors by status, codes and wording, and reads how long clients are asked to wait."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

from wolo import errors
from wolo.formats.errors import error_tables
from wolo.formats.errors.error_body import ErrorResponse, headers_within, parse_error

Kind = type[errors.ProviderError]

CHECK_BASE_URL = "Check the base URL."
"""The client adds the API that it asked for."""
MAX_MESSAGE_CHARACTERS = 600


def classify(
    status: int,
    headers: Mapping[str, str],
    body: bytes | str | Mapping[str, Any],
    *,
    provider_hint: str = "",
    now_s: float | None = None,
) -> errors.ProviderError:
    """Never raises. Header names are lower case; `now_s` replaces the clock. Keys are redacted from messages."""
    response = parse_error(status, body)
    kind, retryable = _kind_and_retryable(response)
    delay_s = read_delay_s(headers, response.body, response.message, now_s)
    if delay_s is None and kind is errors.RateLimited:
        delay_s = read_window_s({**headers, **headers_within(response.body)}, now_s)
    is_glm = response.code in error_tables.GLM_CODES
    # Google's suggested delay refers to the minute window and is ignored.
    is_per_day = any("perday" in code.lower() for code in response.codes) or (
        response.status == 429 and delay_s is None and error_tables.matches(error_tables.DAILY, response.words)
    )
    is_daily = kind in (errors.RateLimited, errors.QuotaExhausted) and not is_glm and is_per_day
    reset = read_reset(response.message, beijing=is_glm, now_s=now_s)
    if reset is not None and delay_s is None and retryable:
        delay_s = reset.seconds if reset.seconds > 0 else None
    details: dict[str, Any] = {
        "hint": _hint(kind, response, provider_hint),
        "status": status or None,
        "code": response.code or None,
        "delay_s": None if is_daily else delay_s,
        "resets_at": reset.instant if reset is not None else None,
    }
    message = re.sub(error_tables.SECRETS, "[key]", _message(response))
    if retryable and delay_s is not None and delay_s > errors.LONGEST_WAIT_S:
        details["resets_at"] = details["resets_at"] or until(delay_s, now_s)
        return errors.QuotaExhausted(message, temporary=True, **details)
    if is_daily:
        details["resets_at"] = details["resets_at"] or next_pacific_midnight(now_s)
        return errors.QuotaExhausted(message, temporary=True, **details)
    if kind is errors.QuotaExhausted:
        has_end = details["resets_at"] is not None or response.code in error_tables.TEMPORARY_QUOTAS
        return errors.QuotaExhausted(message, temporary=has_end, **details)
    if kind is errors.BadRequest:
        details["field"] = _named_field(response)
    error = kind(message, **details)
    # The server's own decision overrides ours.
    should_retry = headers.get("x-should-retry", "").strip().lower()
    error.retryable = {"true": True, "false": False}.get(should_retry, retryable)
    return error


# Classification


def _kind_and_retryable(response: ErrorResponse) -> tuple[Kind, bool]:
    if response.code in error_tables.GLM_CODES:
        return error_tables.GLM_CODES[response.code]
    if re.fullmatch(error_tables.GLM_FINAL, response.code):
        return errors.BadRequest, False
    if found := error_tables.kind_of(response.codes, response.status):
        code, kind = found
        if not (kind is errors.QuotaExhausted and _has_retry_delay(response)):
            return kind, kind.retryable or code in error_tables.RETRYABLE_CODES
    kind = _by_words(response) or _by_status(response)
    return kind, kind.retryable


def _by_words(response: ErrorResponse) -> Kind | None:
    status, words = response.status, response.words
    may_overflow = status in (0, 200, 400, 413, 422, 500)
    if may_overflow and not response.is_page and error_tables.matches(error_tables.OVERFLOW, words):
        return errors.ContextOverflow
    if status == 400 and not words.strip():
        return errors.Unexplained
    if status in (400, 422, 500) and error_tables.matches(error_tables.BAD_KEY, words):
        return errors.AuthError
    if status in (0, 200, 500) and error_tables.matches(error_tables.NO_MEMORY, words):
        return errors.BadRequest
    if status in (0, 200, 404, 415, 500, 501) and error_tables.matches(error_tables.NO_MEDIA, words):
        return errors.BadRequest
    if status == 402 or (status in (0, 200, 400, 403, 429) and error_tables.matches(error_tables.QUOTA, words)):
        return errors.RateLimited if _has_retry_delay(response) else errors.QuotaExhausted
    if not response.is_page and error_tables.matches(error_tables.REFUSED, words):
        return errors.ContentRefused
    return None


def _has_retry_delay(response: ErrorResponse) -> bool:
    """A quota that is free again shortly is a rate limit (Gemini)."""
    return response.status == 429 and read_delay_s({}, response.body, response.message, None) is not None


def _by_status(response: ErrorResponse) -> Kind:
    if (status := response.status) in (401, 403, 407, 434):
        return errors.AuthError
    if status == 413:
        return errors.ContextOverflow
    if status == 429:
        return errors.RateLimited
    if status in (408, 409, 425, 499) or status >= 500:
        return errors.Unavailable
    if status >= 300:
        return errors.BadRequest
    if response.is_page or not response.body:
        return errors.BadAnswer
    # Error inside a response with status 200; unknown ones count as server failures.
    table: tuple[tuple[str, Kind], ...] = (
        (error_tables.AUTH, errors.AuthError),
        (error_tables.RATE_LIMITED, errors.RateLimited),
        (error_tables.SERVER_FAILED, errors.Unavailable),
        (error_tables.INVALID, errors.BadRequest),
    )
    return next((kind for pattern, kind in table if error_tables.matches(pattern, response.words)), errors.Unavailable)


def _named_field(response: ErrorResponse) -> str | None:
    """Optional field, or kind of attachment, that the error refuses; sent again it would block the session for this model."""
    if response.status in (0, 200, 400, 422) and not error_tables.matches(error_tables.REASONING_WITH_TOOLS, response.message):
        path = re.sub(r"(?:\[\d+\]|\.\d+)+$", "", response.param)
        name = path.rpartition(".")[2] or path
        if name in error_tables.OPTIONAL_FIELDS or name in error_tables.FIELDS_BY_PARAM:
            return name
        if error_tables.matches(error_tables.RESULT_NAME, f"{response.param} {response.message}"):
            return "name"
        for field in error_tables.OPTIONAL_FIELDS:
            if re.search(rf"(?<![\w-]){field}(?![\w-])", response.message):
                return field
    if response.is_page or response.status in (401, 403):
        return None
    return next((kind for kind, pattern in error_tables.MEDIA.items() if error_tables.matches(pattern, response.words)), None)


# Messages and hints


def _message(response: ErrorResponse) -> str:
    printable = "".join(char if char.isprintable() else " " for char in response.message)
    text = " ".join(printable.split())
    if len(text) > MAX_MESSAGE_CHARACTERS:
        text = text[:MAX_MESSAGE_CHARACTERS] + "…"
    if response.is_page:
        return f"The server answered with a web page (HTTP {response.status}): {text[:200] or 'an empty one'}"
    if text:
        return text
    return f"The provider refused the request without a reason (HTTP {response.status})."


def _hint(kind: Kind, response: ErrorResponse, provider_hint: str) -> str:
    if response.code == "1113":
        return "Add credit to the account; a Coding Plan key works on the coding endpoint only (provider zai-coding)."
    if response.code == "1311":
        return "Choose a model that the plan includes."
    if error_tables.matches(error_tables.REASONING_WITH_TOOLS, response.message):
        return "Turn thinking off for this model; it cannot be combined with tools."
    if kind is errors.AuthError:
        return provider_hint or "Check the API key and whether it belongs to this provider."
    if response.code == "DeploymentNotFound":
        return "The model is the name of your deployment; the base URL is that of the resource it is in."
    if found := re.search(error_tables.NOT_PULLED, response.message):
        return f"`ollama pull {found[1]}` fetches it; `wolo models list` and `ollama list` list the available models."
    if error_tables.matches(error_tables.NO_MEMORY, response.words):
        return "Choose a smaller model, or free some memory on the machine it runs on."
    if error_tables.matches(error_tables.NO_TOOLS, response.words):
        return "Choose a model that can call tools."
    if error_tables.matches(error_tables.NO_THINKING, response.words):
        return "This model does not think: omit --thinking."
    if error_tables.matches(error_tables.UNKNOWN_MODEL, response.words) or response.code in ("1211", "model_not_found"):
        return "`wolo models list` shows the models; the name must be the server's own."
    if response.status in (404, 405) or response.is_page:
        return CHECK_BASE_URL
    if kind is errors.QuotaExhausted:
        return "Check the balance and plan of your account with this provider."
    if kind is errors.ContentRefused:
        return "Rephrase the prompt, or use another model with --model."
    return ""


LONGEST_BELIEVED_S = 366 * 86400.0

_RESET = r"reset(?:s|ting)?\s+(?:at|on|after)\s+(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?)\s*(Z|UTC|[+-]\d\d:?\d\d)?"
_AGAIN_IN = r"(?:try again|retry|wait)\D{0,20}?\b(?:in|after|for)\s+((?:\d+(?:\.\d+)?\s*(?:ms|[hms])[a-z]*\s*)+)"
_SPAN = r"(\d+(?:\.\d+)?)\s*(ms|[dhms])"
_FIRST_YEAR, _LAST_YEAR = 1971, 9998
"""The years that are whole in every time zone and not before the epoch."""
_EPOCH_S, _EPOCH_MS = 1e9, 1e11
"""Larger numbers are timestamps."""
_HTTP_DATE = r"(\d{1,2})[ -]([A-Z][a-z]{2})[ -](\d{2,4}) (\d\d):(\d\d):(\d\d)"
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_UNITS_S = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class Reset(NamedTuple):
    instant: str
    """ISO 8601 with offset."""
    seconds: float
    """From now on."""


def read_delay_s(headers: Mapping[str, str], body: Mapping[str, Any], message: str, now_s: float | None) -> float | None:
    """First positive delay found; other values are ignored."""
    for found in _delays_s(headers, body, message, time.time() if now_s is None else now_s):
        if found is not None and math.isfinite(found) and found > 0:
            return min(found, LONGEST_BELIEVED_S)
    return None


def read_window_s(headers: Mapping[str, str], now_s: float | None) -> float | None:
    """Seconds until an exhausted rate limit window resets, from rate limit headers.

    Values are spans (`6m0s`), timestamps or numbers. An exhausted window wins, else the nearest. If none is reported as
    exhausted, distant resets are ignored: they say when a window is full again, not when the next request may come.
    """
    now = time.time() if now_s is None else now_s
    windows: list[tuple[bool, float]] = []
    for name, value in headers.items():
        if "ratelimit" in name and "reset" in name:
            seconds = _window_s(value.strip(), now)
            if seconds is not None and math.isfinite(seconds) and seconds > 0:
                remaining = headers.get(name.replace("reset", "remaining"), "").strip()
                if (is_used_up := _number(remaining) == 0) or seconds <= errors.LONGEST_WAIT_S:
                    windows.append((not is_used_up, min(seconds, LONGEST_BELIEVED_S)))
    return min(windows)[1] if windows else None


def next_pacific_midnight(now_s: float | None) -> str:
    """Google's daily quota resets then; winter time is used so that it is never too early."""
    now = time.time() if now_s is None else now_s
    day_s = 86400.0
    return until((8 * 3600 - now) % day_s or day_s, now_s)


def read_reset(message: str, *, beijing: bool, now_s: float | None) -> Reset | None:
    """Reset time stated in the message, if any; None if no clock can show it. GLM reports Beijing time without an offset."""
    if (match := re.search(_RESET, message, re.IGNORECASE)) is None:
        return None
    zone = timezone(timedelta(hours=8)) if beijing else UTC
    try:
        if match[2] and match[2].upper() not in ("Z", "UTC"):
            offset = timedelta(hours=int(match[2][1:3]), minutes=int(match[2][-2:]))
            zone = timezone(-offset if match[2][0] == "-" else offset)
        elif match[2]:
            zone = UTC
        instant = datetime.fromisoformat(match[1].replace(" ", "T")).replace(tzinfo=zone)
    except ValueError:
        return None
    if not _FIRST_YEAR <= instant.year <= _LAST_YEAR:
        return None
    seconds = instant.timestamp() - (time.time() if now_s is None else now_s)
    return Reset(instant.isoformat(timespec="seconds"), seconds)


def until(delay_s: float, now_s: float | None) -> str:
    instant = (time.time() if now_s is None else now_s) + delay_s
    return datetime.fromtimestamp(instant, UTC).isoformat(timespec="seconds")


def _delays_s(headers: Mapping[str, str], body: Mapping[str, Any], message: str, now_s: float) -> Iterator[float | None]:
    after = headers.get("retry-after", "").strip()
    milliseconds = _number(headers.get("retry-after-ms", ""))
    yield None if milliseconds is None else milliseconds / 1000
    yield _number(after)
    yield _seconds_to(after, now_s)
    error = body.get("error")
    details = error.get("details") if isinstance(error, Mapping) else None
    delays = (each.get("retryDelay") for each in details or () if isinstance(each, Mapping)) if isinstance(details, list) else ()
    google = next((delay for delay in delays if isinstance(delay, str)), "")  # such as "34.4s"
    yield _number(google.removesuffix("s"))
    for name in ("resets_in_seconds", "resets_at", "reset_at"):  # ChatGPT's usage limits, and gateways
        yield _window_s(str(error.get(name, "")), now_s) if isinstance(error, Mapping) else None
    if again := re.search(_AGAIN_IN, message, re.IGNORECASE):
        yield sum(float(number) * _UNITS_S[unit.lower()] for number, unit in re.findall(_SPAN, again[1], re.IGNORECASE))


def _window_s(written: str, now_s: float) -> float | None:
    if (number := _number(written)) is not None:
        if number > _EPOCH_MS:
            return number / 1000 - now_s
        return number - now_s if number > _EPOCH_S else number
    if re.fullmatch(rf"(?:{_SPAN}\s*)+", written, re.IGNORECASE):
        return sum(float(amount) * _UNITS_S[unit.lower()] for amount, unit in re.findall(_SPAN, written, re.IGNORECASE))
    try:
        instant = datetime.fromisoformat(written)
    except ValueError:
        return None
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp() - now_s


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _seconds_to(http_date: str, now_s: float) -> float | None:
    match = re.search(_HTTP_DATE, http_date)
    if match is None or match[2] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(match[at]) for at in (1, 3, 4, 5, 6))
    try:
        instant = datetime(year if year > 99 else 2000 + year, _MONTHS.index(match[2]) + 1, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return instant.timestamp() - now_s
