"""What a record says under a name, whatever stands there in truth."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from wolo.messages.unicode import whole

MILLISECONDS_FROM = 1e11
"""No agent is older than 1973, and none keeps times beyond the year 5138: a larger number counts milliseconds."""


def text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    return whole(value) if isinstance(value, str) else ""


def number(record: Mapping[str, Any], name: str) -> int:
    """Counts only: never negative."""
    value = record.get(name)
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MILLISECONDS_FROM
    return int(value) if is_count and value is not None else 0


def amount(record: Mapping[str, Any], name: str) -> float:
    value = record.get(name)
    return float(value) if isinstance(value, int | float) and 0 <= value < MILLISECONDS_FROM else 0.0


def record(of: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = of.get(name)
    return value if isinstance(value, dict) else {}


def records(of: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = of.get(name)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def content(of: Mapping[str, Any], name: str = "content") -> list[dict[str, Any]]:
    """Blocks of content; plain text is one."""
    value = of.get(name)
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if isinstance(value, list):
        return [
            {"type": "text", "text": each} if isinstance(each, str) else each for each in value if isinstance(each, str | dict)
        ]
    return []


def when(value: object) -> float:
    """Unix seconds of a time in any of the usual spellings; 0 when it is none."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError, OSError):
            return 0.0
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MILLISECONDS_FROM * 1000:
        return value / 1000 if value >= MILLISECONDS_FROM else float(value)
    return 0.0
