"""Finds living processes by a word on their command line."""

from __future__ import annotations

import time
from pathlib import Path


def alive(word: str) -> list[int]:
    """Zombies have no command line, so they do not count."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if word.encode() in words:
                found.append(int(entry.name))
    return found


def gone(word: str, limit_s: float = 30) -> bool:
    """True as soon as none is left; a killed process takes a moment to go."""
    deadline = time.monotonic() + limit_s
    while alive(word):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def unique_seconds() -> str:
    """A number of seconds for `sleep` that no other process has."""
    return f"7{time.monotonic_ns() % 10**9}"
