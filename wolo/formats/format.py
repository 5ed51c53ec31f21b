"""What every wire format is: a request becomes JSON bytes, the stream's payloads become deltas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct

from wolo.errors import ProviderError
from wolo.messages.deltas import Delta
from wolo.messages.message import Message, Producer

Framing = Literal["sse", "lines"]
"""How a stream is cut into payloads: server-sent events, or one JSON document a line."""

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]


class ToolSpec(Struct, frozen=True):
    """A tool as a request offers it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema; the root is an object."""


class Request(Struct, frozen=True, kw_only=True):
    """All that a format needs to encode one request. Nothing in it depends on the clock."""

    model: str
    """The name that goes on the wire."""
    producer: Producer
    """Who will answer: blobs and reasoning of other producers are not sent."""
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    thinking: ThinkingLevel | None = None
    """None: the user said nothing, the provider's default holds."""
    max_tokens: int | None = None
    """Longest answer that was asked for; None: as long as the model writes."""
    max_output: int | None = None
    """Longest answer this model can give, if known."""
    context: int | None = None
    """The model's window in tokens, if known."""
    session_id: str = ""
    """Stays the same over a conversation: providers route by it to where the prefix is cached."""
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    json_schema: Mapping[str, Any] | None = None
    dropped_fields: frozenset[str] = frozenset()
    """Optional fields that this server has refused with a 400: they are left out."""


class Block(NamedTuple):
    """A piece of a request's prefix, in the order in which providers cache it. Moving cache marks do not count."""

    label: str
    """For people: "tools", "system", "user message 3"."""
    digest: bytes
    size_bytes: int


class Decoder(Protocol):
    """Reads one answer. Any split of the stream into payload batches gives the same deltas in the same order."""

    @property
    def is_complete(self) -> bool:
        """The provider has said how the answer ended, and nothing in it is unfinished; its usage may still follow."""
        ...

    @property
    def held_chars(self) -> int:
        """How much text was read and is not given yet: it may become a call."""
        ...

    def feed(self, payload: bytes) -> Sequence[Delta]:
        """One `data:` payload (SSE) or one line (NDJSON). Raises a ProviderError when the payload is an error object."""
        ...

    def close(self) -> Sequence[Delta]:
        """The stream has ended. Raises `Unavailable` when it ended without its terminal marker."""
        ...


class Format(Protocol):
    """One instance serves one model of one provider; it may cache what it has encoded, bytes stay the same."""

    @property
    def name(self) -> str: ...

    @property
    def framing(self) -> Framing: ...

    def path(self, model: str) -> str:
        """Appended to the base URL; may carry a query."""
        ...

    def encode(self, request: Request) -> bytes: ...

    def blocks(self) -> Sequence[Block]:
        """What the request that was encoded last consists of."""
        ...

    def decoder(self, request: Request) -> Decoder: ...

    def read_whole(self, body: bytes) -> Sequence[Delta]:
        """An answer that came as one JSON object although a stream was asked for."""
        ...

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """What this refusal means; header names are lower case."""
        ...
