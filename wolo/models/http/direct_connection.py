"""A direct connection to a server: one request at a time, on an asyncio transport."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from math import inf

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from wolo.models.http.transport import PATIENCE, FirstByteTimeout, HttpCall, InvalidResponse, NetworkFailure, ReadTimeout

CONNECT_S = 30.0
KEEP_ALIVE_S = 90.0
"""Lifetime of idle connections, since tools run between requests."""
KEPT_CONNECTIONS = 8
LARGEST_HEAD_BYTES = 100 * 1024
"""Limit of one head, and of anything else without content, such as trailers."""
AHEAD_BYTES = 1024 * 1024
"""Received bytes that may wait to be read."""
LARGE_BODY_BYTES = 128 * 1024
SHOWN_BYTES = 60
SWITCHING_PROTOCOLS, NO_CONTENT, NOT_MODIFIED = 101, 204, 304

Place = tuple[str, str, int]
"""Scheme, host and port."""


class DirectConnection(asyncio.Protocol):
    """One connection to a server, used by one response at a time."""

    transport: asyncio.Transport

    def __init__(self, place: Place, idle: list[DirectConnection]) -> None:
        """After a whole response it joins the connections that are `idle`, oldest first."""
        self.place = place
        self.idle_since = 0.0
        self._idle = idle
        self._loop = asyncio.get_running_loop()
        self._response: DirectResponse | None = None
        self.was_asked = False
        self.has_received = False
        """Since the last request."""
        self.is_writing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=1)  # to know when all is written; with 0, TLS transports never resume

    def data_received(self, data: bytes) -> None:
        self.has_received = True
        if self._response is None:
            self.abort()  # nothing was asked
        else:
            self._response.feed(data)

    def eof_received(self) -> None:
        if self._response is not None:
            self._response.end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._response is not None:
            self._response.end(exc)

    def pause_writing(self) -> None:
        self.is_writing = True

    def resume_writing(self) -> None:
        self.is_writing = False
        if self._response is not None:
            self._response.wake()

    def is_usable(self, loop: asyncio.AbstractEventLoop) -> bool:
        return self._loop is loop and not self.transport.is_closing()

    async def ask(self, head: bytes, call: HttpCall) -> DirectResponse:
        """Sends the request and reads the head of the response."""
        response = self._response = DirectResponse(self, call)
        self.was_asked, self.has_received = True, False
        try:
            if len(call.body) < LARGE_BODY_BYTES:  # beyond, copying takes longer than a second write
                self.transport.write(head + call.body)
            else:
                self.transport.write(head)
                self.transport.write(call.body)
            await response.read_head()
        except BaseException:
            self.abort()
            raise
        return response

    def release(self) -> None:
        self._response = None
        self.transport.resume_reading()
        self.idle_since = time.monotonic()
        self._idle.append(self)
        if len(self._idle) > KEPT_CONNECTIONS:
            self._idle.pop(0).abort()

    def abort(self) -> None:
        self._response = None
        if not self._loop.is_closed():
            self.transport.abort()


class DirectResponse:
    """Response on a direct connection. Pieces that were received between two reads are read as one."""

    def __init__(self, connection: DirectConnection, call: HttpCall) -> None:
        self.status = 0
        self._headers: dict[str, str] = {}
        self.headers: Mapping[str, str] = self._headers
        self._connection = connection
        self._first_byte_s = call.first_byte_s
        self._idle_s = call.idle_s
        # what a TLS transport has received is lost when the server breaks off while it is paused
        self._on_demand = call.on_demand and connection.place[0] == "http"
        self._pieces: list[bytes] = []
        self.on_body = self._pieces.append
        """Called by the parser."""
        self._parser = HttpResponseParser(self)
        # Some servers send both lengths (RFC 9112, section 6.3: the encoding counts), folded headers and spaces after sizes.
        self._parser.set_dangerous_leniencies(
            lenient_chunked_length=True,
            lenient_headers=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._waiter: asyncio.Future[None] | None = None
        self._waiting_bytes = 0
        self._empty_bytes = 0
        """Bytes received since the last content."""
        self._interim_count = 0
        self._deadline = inf
        """Of the first event."""
        self._is_alone = call.is_alone
        self._is_head_read = self._has_begun = self._is_complete = self._may_keep = False
        self._failure: Exception | None = None

    async def read_head(self) -> None:
        """The time limit begins again with each interim response, but not for ever, and once the request is written."""
        progress, is_writing = None, None
        while not self._is_head_read:
            if self._failure:
                raise self._failure
            now, limit_s = time.monotonic(), self._first_byte_s or inf
            if is_writing != (is_writing := self._connection.is_writing):
                end = now + limit_s * PATIENCE
            if progress != (progress := (is_writing, self._interim_count)):
                self._deadline = min(now + limit_s, end)
            await self._wait(self._deadline - now, FirstByteTimeout)

    async def read(self) -> bytes:
        if self._on_demand:
            self._connection.transport.resume_reading()
        while not self._pieces:
            if self._failure:
                raise self._failure
            if self._is_complete:
                return b""
            if self._has_begun:
                await self._wait(self._idle_s or inf, ReadTimeout)
            else:
                await self._wait(self._deadline - time.monotonic(), FirstByteTimeout)
        if not self._has_begun:
            self._deadline = time.monotonic() + (self._first_byte_s or inf)
        pieces = self._pieces
        received = b"".join(pieces) if len(pieces) > 1 else pieces[0]
        pieces.clear()
        if self._waiting_bytes > AHEAD_BYTES:
            self._connection.transport.resume_reading()
        self._waiting_bytes = 0
        if self._on_demand and not self._is_complete:
            self._connection.transport.pause_reading()
        return received

    def begin(self) -> None:
        self._has_begun = True

    async def close(self) -> None:
        if self._is_complete and self._may_keep and not (self._pieces or self._is_alone):
            self._connection.release()
        else:
            self._connection.abort()

    def feed(self, data: bytes) -> None:
        before = len(self._pieces)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if isinstance(error.__context__, KeyboardInterrupt | SystemExit):  # a signal while the parser called back
                raise error.__context__ from None
            self._may_keep = False
            if not self._is_complete:  # otherwise surplus bytes after the response
                has_begun = self._is_head_read or self._headers or data.startswith(b"HTTP/")
                shown = "" if has_begun else f": {data[:SHOWN_BYTES].decode('latin-1')!r}"
                self._fail(InvalidResponse(f"{error}{shown}"))
        if len(self._pieces) > before:
            self._empty_bytes = 0
            self._waiting_bytes += len(data)
            if self._waiting_bytes > AHEAD_BYTES:
                self._connection.transport.pause_reading()
        else:
            self._empty_bytes += len(data)
            if self._empty_bytes > LARGEST_HEAD_BYTES and not self._is_complete:
                self._fail(InvalidResponse("the header is too long"))
        self.wake()

    def end(self, cause: Exception | None) -> None:
        """The server closed the connection, or it broke."""
        self._may_keep = False
        if not (self._is_complete or self._failure):
            encoding = self.headers.get("transfer-encoding", "").rpartition(",")[2].strip().lower()
            ends_with_connection = encoding != "chunked" and ("content-length" not in self.headers or bool(encoding))
            if cause is None and self._is_head_read and ends_with_connection:
                self._is_complete = True
            else:
                failure = NetworkFailure()
                failure.__cause__ = cause
                self._failure = failure
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Called by the parser:

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_head_read:
            key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
            self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        if (status := self._parser.get_status_code()) >= 200:
            self.status = status
            self._is_head_read = True
        elif status == SWITCHING_PROTOCOLS:
            self._fail(InvalidResponse("it switches to another protocol"))

    def on_message_begin(self) -> None:
        if self._is_complete:
            raise InvalidResponse("a second response")  # stops the parser

    def on_message_complete(self) -> None:
        if self._is_head_read:
            self._is_complete = True
            both = "content-length" in self.headers and "transfer-encoding" in self.headers
            self._may_keep = self._parser.should_keep_alive() and not both and not self._connection.is_writing
        else:
            self._interim_count += 1
            self._headers.clear()

    # Until here.

    async def _wait(self, limit_s: float, failure: type[ReadTimeout]) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(limit_s if limit_s < inf else None):
                await self._waiter
        except TimeoutError:
            raise failure from None
        finally:
            self._waiter = None

    def _fail(self, failure: NetworkFailure) -> None:
        self._failure = self._failure or failure
