"""The agents that a task can be given to, as the `task` tool knows them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

DEFAULT = "general"
MOST_DESCRIPTION = 240
"""Characters of what one agent says of itself; models read it with every request."""
MOST_OFFERED = 24
"""Agents that are described; of more only the names are told."""
MOST_NAMED = 100


class Offer(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    only_reads: bool = False
    """It is given no tool that changes anything."""
    is_hidden: bool = False
    """The model is not told of it; a person may name it."""


BUILTIN = (
    Offer(name=DEFAULT, description="all tools but `task`, for a task of several steps"),
    Offer(name="explore", description="only reads: to find out where and how something is done", only_reads=True),
)


def described(offers: Sequence[Offer]) -> str:
    """What the model reads; the same bytes for the same agents."""
    shown = sorted((offer for offer in offers if not offer.is_hidden), key=lambda offer: offer.name)
    lines = [f"- {offer.name}: {_short(offer.description)}".rstrip(": ") for offer in shown[:MOST_OFFERED]]
    more = [offer.name for offer in shown[MOST_OFFERED:MOST_NAMED]]
    return "\n".join(["Agents:", *lines, *([f"- and {', '.join(more)}"] if more else [])])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_DESCRIPTION else f"{line[: MOST_DESCRIPTION - 1].rstrip()}…"
