"""Time limits stretched by how busy the machine is and how slow the line is."""

from __future__ import annotations

import time

from tests.fakes.screen import Conditions

PROBE_S = 0.05


def allowed_s(seconds: float) -> float:
    """The time that a machine with nothing else to do on a fast line would be given, stretched as far as this one is busy."""
    began, worked = time.monotonic(), time.thread_time()
    while time.thread_time() - worked < PROBE_S:
        pass
    stretch = max((time.monotonic() - began) / PROBE_S, 1.0)
    return seconds * stretch + 2 * Conditions.kind.pause_s
