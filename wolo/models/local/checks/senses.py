"""Senses of words in nine languages: whether a request removes, adds, renames or asks. Their stems are in `senses.toml`."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import Final, Literal

from wolo.models.local.checks.marks import prose_of

_Change = Literal["remove", "rename", "rewrite", "move", "add", "type_hint", "at_end", "heading", "output", "command_line"]
_Thing = Literal["folder", "method", "column", "inner", "option", "plain", "deep"]
_Manner = Literal[
    "polite", "inform", "work", "count", "where", "all", "unless", "unused", "instead", "how_to", "plain", "deep", "negated"
]
Sense = _Change | _Thing | _Manner

ORDERS: Final[tuple[Sense, ...]] = ("work", "add", "remove", "rename", "move")
"""Senses of words that order a change."""
GOES: Final[tuple[Sense, ...]] = ("remove", "rename", "rewrite")
"""Senses of a request after which a name or text may be gone."""


@functools.cache
def stems() -> dict[str, tuple[str, str]]:
    """Read the patterns of each sense: of words that are separated by spaces, and of signs that are not."""
    senses = tomllib.loads(Path(__file__).with_name("senses.toml").read_text("utf-8"))
    return {sense: ("|".join(each for key, each in by.items() if key != "signs"), by["signs"]) for sense, by in senses.items()}


@functools.cache
def pattern_of(sense: Sense) -> re.Pattern[str]:
    """Compile the pattern of a sense."""
    latin, others = stems()[sense]
    return re.compile(rf"(?<!\w)(?:{latin})|{others}", re.IGNORECASE)


def means(request: str, *senses: Sense) -> bool:
    """Check for a word of one of these senses outside of quotes and names; `inform`: among the first words."""
    words = prose_of(request)
    first = " ".join(words.split()[:4])[:40]
    return any(pattern_of(sense).search(first if sense == "inform" else words) for sense in senses)


def is_order(request: str) -> bool:
    """Check whether a word for work stands before any for an answer."""
    words = prose_of(request)
    work = [match.start() for sense in ORDERS if (match := pattern_of(sense).search(words))]
    known = pattern_of("inform").search(words)
    return bool(work) and (known is None or min(work) < known.start())


def is_question(request: str) -> bool:
    """Check for a sentence that ends with a question mark, outside of quotes and code."""
    return re.search(r"\?(?=[\s)\]»”\"']|$)|[？؟]|^\s*¿", prose_of(request)) is not None
