"""The interface of wire formats: requests become JSON bytes, payloads become deltas; and the system prompt of all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from wolo.errors import ProviderError
from wolo.messages.deltas import Delta
from wolo.messages.message import Message, Producer

Framing = Literal["sse", "lines"]
"""Stream framing: server-sent events, or one JSON document per line."""

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]

NAME = "Wolo"
MOST_SEARCHES = 3
"""By the provider itself, for one request that wants the web to be searched; where it can be told so."""


class ToolSpec(Struct, frozen=True):
    """A tool as offered to the model."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema with an object at the root."""


class Request(Struct, frozen=True, kw_only=True):
    """Everything a format needs to encode one request; independent of the clock."""

    model: str
    """Name sent to the server."""
    producer: Producer
    """The answering model; blobs and reasoning of other producers are not sent."""
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    thinking: ThinkingLevel | None = None
    """None: not set by the user, so the provider's default applies."""
    max_tokens: int | None = None
    """Requested output limit; None: no limit."""
    max_output: int | None = None
    """Maximum output of this model, if known."""
    context: int | None = None
    """Context window in tokens, if known."""
    session_id: str = ""
    """Constant within a conversation; providers use it to route to cached prefixes."""
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    json_schema: Mapping[str, Any] | None = None
    web_search: bool = False
    """The provider searches the web itself, where its dialect has that; the answer then carries the pages."""
    dropped_fields: frozenset[str] = frozenset()
    """Optional fields that this server has refused; they are omitted."""


class Block(Struct, frozen=True):
    """A piece of the request prefix in caching order, without moving cache marks."""

    label: str
    """Display name: "tools", "system", "user message 3"."""
    digest: bytes
    size_bytes: int


class Blocks(Struct, frozen=True):
    """Blocks of one request."""

    head: tuple[Block, ...]
    messages: list[Block]
    """Shared with later requests, which append to it; those that change an earlier block make another list."""
    count: int
    """Number of `messages` that belong to this request."""


class Decoder(Protocol):
    """Decodes one response. Deltas do not depend on how payloads are batched."""

    @property
    def is_complete(self) -> bool:
        """The provider reported the finish and nothing is incomplete; usage may still follow."""

    @property
    def held_chars(self) -> int:
        """Characters read but not emitted yet because they may become a call."""

    def feed(self, *payloads: bytes) -> Sequence[Delta]:
        """Decode SSE `data:` payloads or NDJSON lines. Raises a ProviderError for error objects."""

    def close(self) -> Sequence[Delta]:
        """End of stream. Raises `Unavailable` without its terminal marker."""


class Format(Protocol):
    """One instance serves one model of one provider; caching must not change the bytes."""

    @property
    def name(self) -> str: ...

    @property
    def framing(self) -> Framing: ...

    def path(self, model: str) -> str:
        """Path appended to the base URL; may contain a query."""

    def encode(self, request: Request) -> bytes: ...

    def blocks(self) -> Blocks:
        """Blocks of the last encoded request."""

    def decoder(self, request: Request) -> Decoder: ...

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        """Decode a response that is one JSON object instead of a stream, to the last encoded request."""

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """Classify an error response; header names are lower case."""


def default_prompt() -> str:
    return Path(__file__).with_name("default_prompt.md").read_text(encoding="utf-8").strip()


def with_display_name(text: str, display_name: str) -> str:
    """Replace the word "Wolo" by the display name."""
    return re.sub(rf"\b{NAME}\b", lambda _: display_name, text)
