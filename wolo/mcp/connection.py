"""The connection interface, and the answers of servers; `sdk.py` implements it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from wolo.mcp.listed_tools import ListedTool
from wolo.messages.media import audio, image
from wolo.messages.parts import MediaPart


class ConnectionLost(Exception):
    """The connection is lost. `may_have_run`: the server may have started the call."""

    def __init__(self, why: str, *, may_have_run: bool = True) -> None:
        super().__init__(why)
        self.may_have_run = may_have_run


class RequestRejected(Exception):
    """The server refused, timed out or sent invalid data; the connection is still open."""


class Connection(Protocol):
    ended: asyncio.Event
    """The connection has ended."""
    changed: asyncio.Event
    """The server's tools have changed."""

    @property
    def instructions(self) -> str:
        """The server's instructions for its tools; may be empty."""
        ...

    async def tools(self) -> tuple[ListedTool, ...]:
        """Raises ConnectionLost and RequestRejected."""
        ...

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float, show: Callable[[str], None]) -> ToolAnswer:
        """Raises ConnectionLost and RequestRejected. Cancellation notifies the server."""
        ...


MOST_MEDIA_BYTES = 20 * 1024 * 1024


class ToolAnswer(NamedTuple):
    text: str
    media: tuple[MediaPart, ...] = ()
    is_error: bool = False


def read_answer(result: Mapping[str, Any]) -> ToolAnswer:
    """Structured content is used only without text, since servers repeat it in both."""
    texts: list[str] = []
    media: list[MediaPart] = []
    for block in result.get("content") or ():
        for said in _read(block):
            if isinstance(said, str):
                texts.append(said)
            else:
                media.append(said)
    structured = result.get("structuredContent")
    if structured is not None and not any(text.strip() for text in texts):
        texts.append(json.dumps(structured, ensure_ascii=False, indent=1))
    return ToolAnswer("\n".join(texts), tuple(media), bool(result.get("isError")))


def _read(block: Mapping[str, Any]) -> Iterator[str | MediaPart]:
    match block.get("type"):
        case "text":
            yield str(block.get("text", ""))
        case "image" | "audio" as kind:
            yield _medium(kind, str(block.get("data", "")), str(block.get("mimeType", "")))
        case "resource":
            yield from _resource(block.get("resource") or {})
        case "resource_link":
            named = " ".join(str(block[key]) for key in ("name", "description") if block.get(key))
            yield f"[a link to {block.get('uri', '')} {named}]"
        case other:
            yield f"[a part of the kind {other}, which is not understood]"


def _resource(resource: Mapping[str, Any]) -> Iterator[str | MediaPart]:
    uri, kind = resource.get("uri", ""), str(resource.get("mimeType") or "")
    if isinstance(text := resource.get("text"), str):
        yield f"[{uri}]\n{text}"
    elif kind.startswith(("image/", "audio/")):
        yield _medium(kind.partition("/")[0], str(resource.get("blob", "")), kind)
    else:
        yield f"[{uri}: {kind or 'binary'}, about {len(str(resource.get('blob', ''))) * 3 // 4:,} bytes, not shown]"


def _medium(kind: str, data: str, media_type: str) -> str | MediaPart:
    if len(data) * 3 // 4 > MOST_MEDIA_BYTES:
        return f"[{kind} of more than {MOST_MEDIA_BYTES // 1024 // 1024} MB, not shown]"
    source = f"data:{media_type};base64,{data}" if media_type else data
    try:
        part = image(source) if kind == "image" else audio(source)
    except ValueError:
        return f"[{kind} that cannot be read]"
    return part if part.data else f"[{kind} that holds nothing]"
