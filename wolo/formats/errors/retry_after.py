"""Reads how long a provider asks clients to wait."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

from wolo.errors import LONGEST_WAIT_S

LONGEST_BELIEVED_S = 366 * 86400.0

_RESET = r"reset(?:s|ting)?\s+(?:at|on|after)\s+(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?)\s*(Z|UTC|[+-]\d\d:?\d\d)?"
_AGAIN_IN = r"(?:try again|retry|wait)\D{0,20}?\b(?:in|after|for)\s+((?:\d+(?:\.\d+)?\s*(?:ms|[hms])[a-z]*\s*)+)"
_SPAN = r"(\d+(?:\.\d+)?)\s*(ms|[dhms])"
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
                if (is_used_up := _number(remaining) == 0) or seconds <= LONGEST_WAIT_S:
                    windows.append((not is_used_up, min(seconds, LONGEST_BELIEVED_S)))
    return min(windows)[1] if windows else None


def next_pacific_midnight(now_s: float | None) -> str:
    """Google's daily quota resets then; winter time is used so that it is never too early."""
    now = time.time() if now_s is None else now_s
    day_s = 86400.0
    return until((8 * 3600 - now) % day_s or day_s, now_s)


def read_reset(message: str, *, beijing: bool, now_s: float | None) -> Reset | None:
    """Reset time stated in the message, if any. GLM reports Beijing time without an offset."""
    match = re.search(_RESET, message, re.IGNORECASE)
    if match is None:
        return None
    try:
        stated = datetime.fromisoformat(match[1].replace(" ", "T"))
    except ValueError:
        return None
    zone = timezone(timedelta(hours=8)) if beijing else UTC
    if match[2] and match[2].upper() not in ("Z", "UTC"):
        offset = timedelta(hours=int(match[2][1:3]), minutes=int(match[2][-2:]))
        zone = timezone(-offset if match[2][0] == "-" else offset)
    elif match[2]:
        zone = UTC
    instant = stated.replace(tzinfo=zone)
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
    if again := re.search(_AGAIN_IN, message, re.IGNORECASE):
        yield sum(float(number) * _UNITS_S[unit.lower()] for number, unit in re.findall(_SPAN, again[1], re.IGNORECASE))


def _window_s(written: str, now_s: float) -> float | None:
    number = _number(written)
    if number is not None:
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
