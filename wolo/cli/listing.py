"""Prints listings: columns of text, and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated
from unicodedata import combining, east_asian_width

import typer

from wolo.frontends.streams import as_json, print_json_text, print_line

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def print_json(value: object) -> None:
    print_json_text(as_json(value, indent=2))


_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def width_of(text: str) -> int:
    """Width in terminal columns."""
    return len(text) if text.isascii() else sum(map(_width, text))


def cut(text: str, columns: int, *, keep_end: bool = False) -> str:
    """Shortens text that does not fit, with an ellipsis at the end (or the beginning)."""
    if width_of(text) <= columns:
        return text
    kept: list[str] = []
    room = max(columns - 1, 0)
    for character in reversed(text) if keep_end else text:
        room -= _width(character)
        if room < 0:
            break
        kept.append(character)
    return "…" + "".join(reversed(kept)) if keep_end else "".join(kept).rstrip() + "…"


def pad(text: str, columns: int, *, right: bool = False) -> str:
    blanks = " " * (columns - width_of(text))
    return blanks + text if right else text + blanks


def in_short(number: int) -> str:
    """`950`, `12.3k`, `4.0M`"""
    for size, unit in _UNITS:
        if number >= size * 0.9995:
            return f"{number / size:.3g}{unit}" if number >= 100 * size else f"{number / size:.1f}{unit}"
    return str(number)


def money(dollars: float | None) -> str:
    """`?` when a price is unknown."""
    if dollars is None:
        return "?"
    if not dollars:
        return "$0"
    return f"${dollars:,.2f}" if dollars >= 10 else f"${dollars:.4f}" if dollars >= 0.00005 else "<$0.0001"


def _width(character: str) -> int:
    if combining(character) or character in "\u200b\u200c\u200d\ufe0e\ufe0f\u2060":
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def print_described(rows: Iterable[tuple[str, str]], indent: str) -> None:
    """Prints what a question of consent is about: whole, with each character that cannot be seen as `⟨U+202E⟩`."""
    from wolo.messages.terminal_text import exact, label

    for name, value in rows:
        for line in label(name, exact(value)).split("\n"):
            print_line(indent + line)
