"""How JSON travels: a request goes out, the payloads of the answer come back in batches."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

from wolo.formats.format import Framing


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request, complete but for the wire."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    first_byte_s: float = 120.0
    """Longest silence before the first byte of the answer; 0 means no limit."""
    idle_s: float = 300.0
    """Longest silence within the stream, counted on received bytes; 0 means no limit."""
    tap: Callable[[bytes], None] | None = None
    """Given everything that is received, as it came."""
    framing: Framing = "sse"


class Batch(Struct, frozen=True):
    """The payloads (`data:` of events, or lines) that one read of the network completed, in order.

    `whole` is set instead when the server answered with one JSON document and no stream.
    """

    payloads: tuple[bytes, ...] = ()
    whole: bytes | None = None


class Refused(Exception):
    """The server answered with something other than 200; the format knows what it means."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes, url: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.headers = headers
        self.body = body
        self.url = url


class Transport(Protocol):
    def send(self, call: Call) -> AsyncGenerator[Batch, None]:
        """Raises `Refused`, or a ProviderError (`Unavailable`, `BadAnswer`) for what went wrong below HTTP.

        Leaving the iteration early closes the connection.
        """
        ...

    async def close(self) -> None: ...
