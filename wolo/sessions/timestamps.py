"""Formats points in time for JSON and for users."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def iso(then: float) -> str:
    """Returns ISO 8601 in UTC."""
    return datetime.fromtimestamp(then, UTC).isoformat(timespec="seconds")


def age(then: float) -> str:
    seconds = max(time.time() - then, 0)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"
