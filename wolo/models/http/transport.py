"""The transport interface: one request, and its payloads in batches; and the wire log."""

from __future__ import annotations

import codecs
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct, field

from wolo.errors import ConfigError
from wolo.formats.format import Framing
from wolo.messages.secret_values import StreamRedactor, ValueRedactor
from wolo.places import make_private

PATIENCE = 4
"""Number of time limits during which interim responses and keep-alive comments are accepted without an event."""


class HttpCall(Struct, frozen=True):
    """One HTTP request."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    first_byte_s: float = 120.0
    """Timeout until the first event, begun again by interim responses and keep-alive comments; 0: none."""
    idle_s: float = 300.0
    """Timeout between bytes after the first event; 0: none."""
    tap: Callable[[bytes], None] | None = None
    """Receives all bytes unchanged."""
    on_demand: bool = False
    """Between two reads the kernel holds what comes: it wakes nobody."""
    framing: Framing = "sse"
    method: Literal["POST", "GET", "PUT"] = "POST"
    is_alone: bool = False
    """On a connection of its own, which is not kept."""


class Batch(Struct, frozen=True):
    """Payloads (SSE `data:` or lines) completed by one network read, in order.

    `whole` is set instead for a response that is one JSON document.
    """

    payloads: tuple[bytes, ...] = ()
    whole: bytes | None = None


class Response(Protocol):
    """Response whose head was read."""

    status: int
    headers: Mapping[str, str]
    """Lower-case names; values of repeated headers are joined by commas."""

    async def read(self) -> bytes:
        """Everything received since the last call; empty at the end. Raises NetworkFailure."""

    def begin(self) -> None:
        """The first event came: from now on `idle_s` limits the silence."""

    async def close(self) -> None:
        """Keeps the connection if the body was read to its end, else closes it."""


class NetworkFailure(Exception):
    """The connection was lost; its subclasses are the other failures."""


class ConnectTimeout(NetworkFailure): ...


class HandshakeTimeout(NetworkFailure):
    """The server took the connection, and never finished the TLS handshake."""


class ReadTimeout(NetworkFailure): ...


class FirstByteTimeout(ReadTimeout):
    """No event came in time, with or without a head."""


class ProxyFailure(NetworkFailure): ...


class InvalidRequest(NetworkFailure):
    """A URL or header cannot be sent."""


class InvalidResponse(NetworkFailure):
    """The server did not speak HTTP."""


class HttpStatusError(Exception):
    """Response with a status other than 2xx; the format interprets it."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes, url: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.headers, self.body, self.url = status, headers, body, url


class Transport(Protocol):
    def send(self, call: HttpCall) -> AsyncGenerator[Batch, None]:
        """Raises `HttpStatusError`, or a ProviderError (`Unavailable`, `BadAnswer`) for network errors.

        Closing the iterator closes the connection.
        """

    async def close(self) -> None: ...


class WireLog:
    """Writes numbered request and response files; several runs can share a directory."""

    def __init__(self, directory: Path, secrets: Callable[[], ValueRedactor] = ValueRedactor) -> None:
        """`secrets` returns the redactor for everything known so far."""
        with _writing_to(directory):
            make_private(directory)
        self._directory, self._secrets = directory, secrets
        self._number = 0

    def begin(self, body: bytes) -> Exchange:
        """Write the request; the result receives the response."""
        with _writing_to(self._directory):
            descriptor = -1
            while descriptor < 0:
                self._number += 1
                with contextlib.suppress(FileExistsError):
                    descriptor = self._create("request.json")
            with os.fdopen(descriptor, "wb") as file:
                file.write(self._secrets().data(body))
            return Exchange(self._directory, self._create("response.txt"), self._secrets().stream())

    def _create(self, ending: str) -> int:
        return os.open(self._directory / f"{self._number:04}-{ending}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


class Exchange:
    """Writes one response as it arrives."""

    def __init__(self, directory: Path, descriptor: int, redactor: StreamRedactor) -> None:
        self._directory = directory
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        self._redactor = redactor
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def __call__(self, received: bytes) -> None:
        self._write(self._redactor.feed(self._decoder.decode(received)))

    def close(self) -> None:
        with self._file:
            self._write(self._redactor.feed(self._decoder.decode(b"", True)) + self._redactor.close())

    def _write(self, text: str) -> None:
        with _writing_to(self._directory):
            self._file.write(text.encode("utf-8", "surrogateescape"))


@contextlib.contextmanager
def _writing_to(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"Requests cannot be written to {directory}: {error.strerror}."
        raise ConfigError(message, hint="Name another directory with --debug-wire, or leave it out.") from error
