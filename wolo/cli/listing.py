"""Options, prints and questions that several subcommands share: listings, JSON, consents."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.errors import UsageError
from wolo.frontends.streams import as_json, print_json_text, print_line, print_message
from wolo.frontends.wrapping import cells

if TYPE_CHECKING:
    from wolo.places import Site

Trust = Annotated[bool, typer.Option("--trust", help="Read project files of this folder, for this run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def print_json(value: object) -> None:
    print_json_text(as_json(value, indent=2))


_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def cut(text: str, columns: int, *, keep_end: bool = False) -> str:
    """Shortens text that does not fit, with an ellipsis at the end (or the beginning)."""
    if cells(text) <= columns:
        return text
    kept: list[str] = []
    room = max(columns - 1, 0)
    for character in reversed(text) if keep_end else text:
        room -= cells(character)
        if room < 0:
            break
        kept.append(character)
    return "…" + "".join(reversed(kept)) if keep_end else "".join(kept).rstrip() + "…"


def pad(text: str, columns: int, *, right: bool = False) -> str:
    blanks = " " * (columns - cells(text))
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


def print_described(rows: Iterable[tuple[str, str]], indent: str) -> None:
    """Prints what a question of consent is about: whole, with each character that cannot be seen as `⟨U+202E⟩`."""
    from wolo.messages.terminal_text import exact, label

    for name, value in rows:
        for line in label(name, exact(value)).split("\n"):
            print_line(indent + line)


def print_untrusted(site: Site, reading: str) -> None:
    """Says where the folder is not trusted that `reading` is left out until it is."""
    from wolo.config import consents

    if consents.trust_in(site.places, site.root, site.notices) != "trusted":
        print_message(f"This folder is not trusted: a run {reading} with --trust, or once you trust the folder at a terminal.")


def read_object(text: str, example: str) -> dict[str, Any]:
    """The value of --input. Raises UsageError for what is no JSON object."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--input is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError("--input is not a JSON object.", hint=f"--input '{example}'")
    return value
