"""Tools as listed by servers, and their cache."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from wolo.messages.terminal_text import clean
from wolo.places import make_private

MOST_TOOLS = 256
"""Maximum tools per server."""
MOST_DESCRIPTION_CHARS = 4000


class ListedTool(Struct, frozen=True):
    """A tool by the server's own name."""

    name: str
    description: str
    parameters: Mapping[str, Any]


def read_listed(entries: Iterable[object]) -> tuple[ListedTool, ...]:
    """Sorted by name; invalid and duplicate entries are skipped."""
    found: dict[str, ListedTool] = {}
    for entry in entries:
        if isinstance(entry, Mapping) and isinstance(name := entry.get("name"), str) and name.strip():
            schema = entry.get("inputSchema")
            parameters = schema if isinstance(schema, Mapping) else {}
            found.setdefault(name, ListedTool(name, _description(entry), parameters))
    return tuple(found[name] for name in sorted(found))[:MOST_TOOLS]


def _description(entry: Mapping[str, Any]) -> str:
    said = entry.get("description") or entry.get("title") or entry["name"]
    text = clean(said if isinstance(said, str) else str(entry["name"])).strip()
    return text if len(text) <= MOST_DESCRIPTION_CHARS else f"{text[: MOST_DESCRIPTION_CHARS - 1].rstrip()}…"


_MOST_BYTES = 8 * 1024 * 1024


class CachedListing(Struct, frozen=True):
    """Result of the last start of a server."""

    tools: tuple[ListedTool, ...] = ()
    failed: bool = False
    """It failed; the first turn does not wait for it again."""
    why: str = ""
    """Failure reason for the user."""
    instructions: str = ""
    """The server's instructions for its tools."""


class CachedTools:
    """One file per server fingerprint. Unreadable files count as missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, fingerprint: str) -> CachedListing | None:
        try:
            path = self._path(fingerprint)
            return msgspec.json.decode(path.read_bytes(), type=CachedListing) if path.stat().st_size <= _MOST_BYTES else None
        except (OSError, msgspec.DecodeError, RecursionError):
            return None

    def write(self, fingerprint: str, remembered: CachedListing) -> None:
        path = self._path(fingerprint)
        beside = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        with suppress(OSError, TypeError, ValueError, RecursionError):
            make_private(self._folder)
            try:
                beside.write_bytes(msgspec.json.encode(remembered))
                beside.chmod(0o600)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)

    def _path(self, fingerprint: str) -> Path:
        return self._folder / f"{fingerprint}.json"
