"""Connections through a proxy, by httpx2."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import Any

import httpx2

from wolo.models.http import transport
from wolo.models.http.direct_connection import AHEAD_BYTES, CONNECT_S, KEEP_ALIVE_S, KEPT_CONNECTIONS

DISCONNECTED = ("disconnected", "peer closed")
"""httpx wordings for a connection closed early, which it reports as a protocol error."""


class ProxiedConnections:
    """Keeps connections for later requests."""

    def __init__(self, proxy: str, context: SSLContext | None) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS, keepalive_expiry=KEEP_ALIVE_S)
        self._engine = httpx2.AsyncHTTPTransport(verify=context or SSLContext(PROTOCOL_TLS_CLIENT), proxy=proxy, limits=limits)

    async def open(self, call: transport.HttpCall, headers: Mapping[str, str]) -> ProxiedResponse:
        """Send the request and read the response head. Raises NetworkFailure.

        The server may have closed a reused connection: then the request is sent again.
        """
        stale_ones = KEPT_CONNECTIONS
        while True:
            trace = _ConnectionTrace()
            limits = {"connect": CONNECT_S, "write": call.first_byte_s or None, "read": call.first_byte_s or None, "pool": None}
            extensions: dict[str, Any] = {"timeout": limits, "trace": trace}
            try:
                request = httpx2.Request(call.method, call.url, headers=headers, content=call.body, extensions=extensions)
                response = await self._engine.handle_async_request(request)
            except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError) as error:
                if trace.is_new or not stale_ones:
                    raise network_failure(error) from error
                stale_ones -= 1
            except httpx2.ConnectTimeout as error:
                raise (transport.HandshakeTimeout if trace.is_securing else transport.ConnectTimeout) from error
            except Exception as error:
                raise network_failure(error) from error
            else:
                return ProxiedResponse(response, partial(limits.update, read=call.idle_s or None))

    async def close(self) -> None:
        await self._engine.aclose()


class ProxiedResponse:
    """Response read ahead by a task.

    Servers send each event in its own chunk; processing chunks one by one would dominate the cost of reading.
    """

    def __init__(self, response: httpx2.Response, set_idle_limit: Callable[[], None]) -> None:
        self._set_idle_limit = set_idle_limit
        self._has_begun = False
        self.status = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers)
        self._stream = response.stream
        self._pieces: list[bytes] = []
        self._size_bytes = 0
        self._failure: Exception | None = None
        self._has_ended = False
        self._something = asyncio.Event()
        self._room = asyncio.Event()
        self._task = asyncio.create_task(self._fill())

    async def read(self) -> bytes:
        if not self._pieces and not self._has_ended:
            self._something.clear()
            await self._something.wait()
        if not self._pieces and self._failure:
            failure = network_failure(self._failure)
            is_late = isinstance(failure, transport.ReadTimeout) and not self._has_begun
            raise transport.FirstByteTimeout if is_late else failure from self._failure
        received = b"".join(self._pieces)
        self._pieces.clear()
        self._size_bytes = 0
        self._room.set()
        return received

    def begin(self) -> None:
        self._has_begun = True
        self._set_idle_limit()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})
        await self._stream.aclose()  # type: ignore[union-attr]  # an async response has an async stream

    async def _fill(self) -> None:
        stream: AsyncIterator[bytes] = aiter(self._stream)  # type: ignore[arg-type]  # as above
        try:
            async for piece in stream:
                self._pieces.append(piece)
                self._size_bytes += len(piece)
                self._something.set()
                if self._size_bytes > AHEAD_BYTES:
                    self._room.clear()
                    await self._room.wait()
        except Exception as error:
            self._failure = error
        finally:
            self._has_ended = True
            self._something.set()


def network_failure(error: Exception) -> transport.NetworkFailure:
    """The failure that an error of httpx2 stands for, caused by it."""
    match error:
        case httpx2.ConnectTimeout():
            failure: transport.NetworkFailure = transport.ConnectTimeout()
        case httpx2.TimeoutException():
            failure = transport.ReadTimeout()
        case httpx2.ProxyError():
            failure = transport.ProxyFailure(str(error))
        case httpx2.LocalProtocolError() | httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            failure = transport.InvalidRequest()
        case httpx2.RemoteProtocolError() if not any(words in str(error) for words in DISCONNECTED):
            failure = transport.InvalidResponse(str(error))
        case _:
            failure = transport.NetworkFailure(str(error))
    failure.__cause__ = error
    return failure


class _ConnectionTrace:
    """Detects whether a request opened a new connection, and began a TLS handshake."""

    is_new = False
    is_securing = False

    async def __call__(self, name: str, details: Mapping[str, Any]) -> None:
        if name.endswith("connect_tcp.started"):
            self.is_new = True
        self.is_securing = self.is_securing or name.endswith("start_tls.started")
