"""Direct connections to a server: one request at a time, on an asyncio transport."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import time
from collections.abc import Mapping
from math import inf
from urllib.parse import SplitResult, quote, urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from wolo.models.address import DEFAULT_PORTS
from wolo.models.headers import may_be_set
from wolo.models.http.transport import (
    PATIENCE,
    ConnectTimeout,
    FirstByteTimeout,
    HandshakeTimeout,
    HttpCall,
    InvalidRequest,
    InvalidResponse,
    NetworkFailure,
    ReadTimeout,
)

CONNECT_S = 30.0
HANDSHAKE_S = 15.0
KEEP_ALIVE_S = 90.0
"""Lifetime of idle connections, since tools run between requests."""
KEPT_CONNECTIONS = 8
HAPPY_EYEBALLS_S = 0.25
"""Head start of one address of a host before the next is tried as well (RFC 8305)."""
LARGEST_HEAD_BYTES = 100 * 1024
"""Limit of one head, and of anything else without content, such as trailers."""
AHEAD_BYTES = 1024 * 1024
"""Received bytes that may wait to be read."""
LARGE_BODY_BYTES = 128 * 1024
SHOWN_BYTES = 60
LONGEST_LABEL = 63
"""Letters between two dots of a host name (RFC 1035)."""
SWITCHING_PROTOCOLS, NO_CONTENT, NOT_MODIFIED = 101, 204, 304

Place = tuple[str, str, int]
"""Scheme, host and port."""


class DirectConnections:
    """Opens connections, and keeps them for later requests."""

    def __init__(self) -> None:
        self._idle: list[tuple[Place, float, _HttpConnection]] = []

    async def open(self, call: HttpCall, headers: Mapping[str, str], context: ssl.SSLContext | None) -> DirectResponse:
        """Sends the request and reads the head of the response. Raises NetworkFailure or OSError.

        A kept connection may have been closed by the server: then the request is sent once more, on a new one.
        """
        target = _parse(call.url)
        place = (target.scheme, target.hostname or "", target.port or DEFAULT_PORTS[target.scheme])
        host = target.netloc.removesuffix(f":{DEFAULT_PORTS[target.scheme]}")
        path = quote(target.path or "/", safe="/%:@!$&'()*+,;=~")
        query = f"?{quote(target.query, safe='/%:@!$&()*+,;=~?')}" if target.query else ""
        lines = [f"{call.method} {path}{query} HTTP/1.1", f"host: {host}"]
        # A header with other characters would change the request.
        for name, value in headers.items():
            if not (
                may_be_set(name) and value.isascii() and value.replace("\t", " ").isprintable()
            ):  # it would change the request
                raise InvalidRequest(f"unusable header {name!r}")
            lines.append(f"{name}: {value}")
        request = ("\r\n".join((*lines, f"content-length: {len(call.body)}", "", "")).encode(), call.body)
        if (kept := self._take(place)) is not None:
            try:
                return await self._ask(kept, place, request, call)
            except NetworkFailure as failure:
                if type(failure) is not NetworkFailure or kept.has_received:
                    raise
        return await self._ask(await _connect(place, context), place, request, call)

    async def close(self) -> None:
        for _, _, connection in self._idle:
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)  # sockets are closed in the next round of the loop

    async def _ask(
        self, connection: _HttpConnection, place: Place, request: tuple[bytes, bytes], call: HttpCall
    ) -> DirectResponse:
        response = DirectResponse(self, place, connection, call)
        try:
            connection.send(*request, response)
            await response.read_head()
        except BaseException:
            connection.abort()
            raise
        return response

    def _take(self, place: Place) -> _HttpConnection | None:
        """The connection used last, without those that are closed, too old or of another event loop."""
        loop, oldest = asyncio.get_running_loop(), time.monotonic() - KEEP_ALIVE_S
        usable = [each for each in self._idle if each[2].is_usable(loop) and each[1] > oldest]
        for each in self._idle:
            if each not in usable:
                each[2].abort()
        self._idle = usable
        found = next((each for each in reversed(usable) if each[0] == place), None)
        if found is None:
            return None
        usable.remove(found)
        return found[2]

    def keep(self, place: Place, connection: _HttpConnection) -> None:
        self._idle.append((place, time.monotonic(), connection))
        if len(self._idle) > KEPT_CONNECTIONS:
            self._idle.pop(0)[2].abort()


class _HttpConnection(asyncio.Protocol):
    """Hands received bytes to the current response."""

    transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._response: DirectResponse | None = None
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

    def send(self, head: bytes, body: bytes, response: DirectResponse) -> None:
        """In one write, unless copying the body takes longer than another."""
        self.has_received = False
        self._response = response
        if len(body) < LARGE_BODY_BYTES:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)

    def release(self) -> None:
        self._response = None
        self.transport.resume_reading()

    def abort(self) -> None:
        self._response = None
        if not self._loop.is_closed():
            self.transport.abort()


class DirectResponse:
    """Response on a direct connection. Pieces that were received between two reads are read as one."""

    def __init__(self, connections: DirectConnections, place: Place, connection: _HttpConnection, call: HttpCall) -> None:
        self.status = 0
        self._headers: dict[str, str] = {}
        self.headers: Mapping[str, str] = self._headers
        self._connections = connections
        self._place = place
        self._connection = connection
        self._first_byte_s = call.first_byte_s
        self._idle_s = call.idle_s
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
        return received

    def begin(self) -> None:
        self._has_begun = True

    async def close(self) -> None:
        if self._is_complete and self._may_keep and not self._pieces:
            self._connection.release()
            self._connections.keep(self._place, self._connection)
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
        status = self._parser.get_status_code()
        if status >= 200:
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


async def _connect(place: Place, context: ssl.SSLContext | None) -> _HttpConnection:
    loop = asyncio.get_running_loop()
    scheme, host, port = place
    try:
        async with asyncio.timeout(CONNECT_S):
            # An address is connected to without a race, which loses its socket if it is cancelled as it ends.
            is_address = ":" in host or host.replace(".", "").isdigit()
            _, connection = await loop.create_connection(
                lambda: _HttpConnection(loop),
                host,
                port,
                ssl=context,
                server_hostname=host if scheme == "https" else None,
                ssl_handshake_timeout=HANDSHAKE_S if scheme == "https" else None,
                happy_eyeballs_delay=None if is_address else HAPPY_EYEBALLS_S,
            )
    except TimeoutError:
        raise ConnectTimeout from None
    except ConnectionAbortedError as error:  # what asyncio raises after the limit of a handshake
        raise (HandshakeTimeout if error.errno is None else NetworkFailure) from error
    except OSError as error:
        # asyncio joins the failures of several addresses into one text without an error number.
        numbers = re.findall(r"\[Errno (\d+)\]", str(error)) if error.errno is None else []
        number = int(numbers[-1]) if numbers else 0
        raise (OSError(number, os.strerror(number)) if number else error) from error
    return connection


def _parse(url: str) -> SplitResult:
    """Raises InvalidRequest."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if not host.isascii():
            import idna  # noqa: PLC0415  # for names in other scripts only

            host = idna.encode(host, uts46=True).decode()
        is_name = all(0 < len(label) <= LONGEST_LABEL for label in host.removesuffix(".").split("."))
        if parts.scheme in DEFAULT_PORTS and is_name and url.isprintable() and " " not in url:
            netloc = f"[{host}]" if ":" in host else host
            return parts._replace(netloc=f"{netloc}:{parts.port}" if parts.port else netloc)
    except ValueError:
        pass
    raise InvalidRequest("unusable URL")
