"""Waiting for something another process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(happened: Callable[[], bool], timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < end, f"it did not happen within {timeout_s} s"
        time.sleep(0.02)
