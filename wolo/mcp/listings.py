"""Tools, prompts and resources as listed by servers, and the cache of these lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from wolo.messages.terminal_text import clean, clean_line
from wolo.places import make_private
from wolo.workspace.files.unfinished import write_whole

MOST_TOOLS = 1_000
"""Maximum tools per server."""
MOST_DESCRIPTION_CHARS = 4000


class ListedTool(Struct, frozen=True):
    """A tool by the server's own name."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    is_cut: bool = False
    """The description was longer."""


def read_listed(entries: Iterable[object]) -> tuple[ListedTool, ...]:
    """Sorted by name; invalid and duplicate entries are skipped."""
    tools: dict[str, ListedTool] = {}
    for entry in entries:
        if isinstance(entry, Mapping) and isinstance(name := entry.get("name"), str) and name.strip():
            schema = entry.get("inputSchema")
            parameters = schema if isinstance(schema, Mapping) else {}
            said = entry.get("description") or entry.get("title") or name
            text = clean(said if isinstance(said, str) else name).strip()
            is_cut = len(text) > MOST_DESCRIPTION_CHARS
            tools.setdefault(
                name, ListedTool(name, f"{text[: MOST_DESCRIPTION_CHARS - 1].rstrip()}…" if is_cut else text, parameters, is_cut)
            )
    return tuple(tools[name] for name in sorted(tools))[:MOST_TOOLS]


MOST_PROMPTS = 500
MOST_RESOURCES = 2_000
"""Maximum per server, templates included."""
_LONGEST_LINE = 300


class PromptArgument(Struct, frozen=True):
    name: str
    description: str = ""
    required: bool = False


class ListedPrompt(Struct, frozen=True):
    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class ListedResource(Struct, frozen=True):
    """A resource, or a template whose URI has `{variables}`."""

    uri: str
    name: str = ""
    description: str = ""
    media_type: str = ""
    is_template: bool = False


class ServerListing(Struct, frozen=True, kw_only=True):
    """Everything that a server offers."""

    tools: tuple[ListedTool, ...] = ()
    prompts: tuple[ListedPrompt, ...] = ()
    resources: tuple[ListedResource, ...] = ()
    instructions: str = ""
    notices: tuple[str, ...] = ()
    """About entries that were skipped, for the user."""

    @property
    def is_empty(self) -> bool:
        return not (self.tools or self.prompts or self.resources)


def read_prompts(entries: Iterable[object]) -> tuple[ListedPrompt, ...]:
    """Sorted by name; invalid and duplicate entries are skipped."""
    prompts: dict[str, ListedPrompt] = {}
    for entry in entries:
        if isinstance(entry, Mapping) and isinstance(name := entry.get("name"), str) and name.strip():
            arguments = entry.get("arguments")
            read = tuple(map(_argument, arguments)) if isinstance(arguments, list) else ()
            said = _line(entry.get("description")) or _line(entry.get("title"))
            prompts.setdefault(name, ListedPrompt(name, said, tuple(each for each in read if each.name)))
    return tuple(prompts[name] for name in sorted(prompts))[:MOST_PROMPTS]


def _argument(entry: object) -> PromptArgument:
    if not isinstance(entry, Mapping):
        return PromptArgument("")
    return PromptArgument(_line(entry.get("name")), _line(entry.get("description")), entry.get("required") is True)


def read_resources(entries: Iterable[object], templates: Iterable[object] = ()) -> tuple[ListedResource, ...]:
    """Resources first, then templates, each in the order of the server; invalid and duplicate entries are skipped."""
    resources: dict[str, ListedResource] = {}
    for entry, key in (*((each, "uri") for each in entries), *((each, "uriTemplate") for each in templates)):
        if isinstance(entry, Mapping) and isinstance(uri := entry.get(key), str) and uri.strip():
            name = _line(entry.get("title")) or _line(entry.get("name"))
            resources.setdefault(
                uri,
                ListedResource(uri, name, _line(entry.get("description")), _line(entry.get("mimeType")), key == "uriTemplate"),
            )
    return tuple(resources.values())[:MOST_RESOURCES]


def _line(value: object) -> str:
    return clean_line(" ".join(value.split()))[:_LONGEST_LINE] if isinstance(value, str) else ""


_MOST_BYTES = 8 * 1024 * 1024


class CachedListing(Struct, frozen=True):
    """Result of the last start of a server."""

    listing: ServerListing
    failed: bool = False
    """It failed; the first turn does not wait for it again."""
    why: str = ""
    """Failure reason for the user."""
    started_at: float = 0.0
    """Unix time of a start that has not ended yet."""


class CachedListings:
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
        with suppress(OSError, TypeError, ValueError, RecursionError):
            make_private(self._folder)
            write_whole(path, msgspec.json.encode(remembered), durable=False)

    def forget(self, fingerprint: str) -> None:
        with suppress(OSError):
            self._path(fingerprint).unlink(missing_ok=True)

    def _path(self, fingerprint: str) -> Path:
        return self._folder / f"{fingerprint}.json"
