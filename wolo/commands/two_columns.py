"""Formats pairs of a name and a description, one line each."""

from __future__ import annotations

from collections.abc import Sequence

LEAST_CHARS = 24
"""Width of a description, even in a narrower window."""


def rows(pairs: Sequence[tuple[str, str]], columns: int) -> list[str]:
    width = max((len(name) for name, _ in pairs), default=0)
    room = max(columns - 1 - width - 2, LEAST_CHARS)
    return [f"{name:<{width}}  {shorten(words, room)}" for name, words in pairs]


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
