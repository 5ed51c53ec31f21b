"""What a server says of its tools, read so that one strange tool costs no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from wolo.messages.terminal_text import clean

MOST_TOOLS = 256
"""Of one server, in one list or in many."""
MOST_DESCRIPTION_CHARS = 4000


class Listed(Struct, frozen=True):
    """A tool, by the server's own name."""

    name: str
    description: str
    parameters: Mapping[str, Any]


def read_listed(entries: Iterable[object]) -> tuple[Listed, ...]:
    """In the order of their names; what is no tool is passed over, and so is a second one of the same name."""
    found: dict[str, Listed] = {}
    for entry in entries:
        if isinstance(entry, Mapping) and isinstance(name := entry.get("name"), str) and name.strip():
            schema = entry.get("inputSchema")
            parameters = schema if isinstance(schema, Mapping) else {}
            found.setdefault(name, Listed(name, _description(entry), parameters))
    return tuple(found[name] for name in sorted(found))[:MOST_TOOLS]


def _description(entry: Mapping[str, Any]) -> str:
    said = entry.get("description") or entry.get("title") or entry["name"]
    text = clean(said if isinstance(said, str) else str(entry["name"])).strip()
    return text if len(text) <= MOST_DESCRIPTION_CHARS else f"{text[: MOST_DESCRIPTION_CHARS - 1].rstrip()}…"
