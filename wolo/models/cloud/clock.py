"""Compares the clock of this machine with a server's, which refuses signatures of another time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

TOLERATED_S: Final = 240
"""AWS and Google refuse signatures that are more than five minutes off."""


def clock_hint(headers: Mapping[str, str]) -> str:
    """How far this clock is from the response's `date`; empty if it is right or unknown. Header names are lower case."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  # for refusals only

    try:
        skew_s = time.time() - parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return ""
    if abs(skew_s) < TOLERATED_S:
        return ""
    direction = "ahead of" if skew_s > 0 else "behind"
    return f"The clock of this machine is {abs(skew_s) / 60:,.0f} minutes {direction} the server's; set it."
