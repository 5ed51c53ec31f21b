"""HTTP transport: direct connections, or httpx2 through a proxy."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING

from wolo.errors import WoloError
from wolo.formats.format import Framing
from wolo.models.address import proxy_for
from wolo.models.http.direct_connection import DirectConnections
from wolo.models.http.http_body import read_batches
from wolo.models.http.network_errors import describe_network_error
from wolo.models.http.tls import load_certificates
from wolo.models.http.transport import Batch, HttpCall, HttpStatusError, Response

if TYPE_CHECKING:
    from wolo.models.http.proxied_connection import ProxiedConnections

ACCEPT: Mapping[Framing, str] = {
    "sse": "text/event-stream, application/json",
    "lines": "application/x-ndjson, application/json",
}


class HttpTransport:
    """Reuses connections within a conversation.

    Redirects are not followed, because the key belongs to the given address.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, certificates: Future[ssl.SSLContext] | None = None) -> None:
        """`certificates` is a TLS context that is already being built."""
        self._environ = os.environ if environ is None else environ
        self._direct = DirectConnections()
        self._proxied: dict[tuple[str, bool], ProxiedConnections] = {}
        self._certificates = certificates

    async def send(self, call: HttpCall) -> AsyncGenerator[Batch, None]:
        proxy = proxy_for(call.url, self._environ)
        try:
            response = await self._open(call, proxy)
        except WoloError:
            raise
        except Exception as error:
            raise describe_network_error(error, call, proxy=proxy, answering=False) from error
        try:
            async for batch in await read_batches(response, call):
                yield batch
        except (WoloError, HttpStatusError):
            raise
        except Exception as error:
            raise describe_network_error(error, call, proxy=proxy, answering=True) from error
        finally:
            await response.close()

    async def close(self) -> None:
        await self._direct.close()
        for connections in self._proxied.values():
            await connections.close()
        self._proxied.clear()

    async def _open(self, call: HttpCall, proxy: str) -> Response:
        headers = {
            "accept": ACCEPT[call.framing],
            "accept-encoding": "identity",
            "content-type": "application/json",
            **call.headers,
        }
        is_secure = call.url.startswith("https:")
        if not proxy:
            return await self._direct.open(call, headers, await self._trusting() if is_secure else None)
        is_secure = is_secure or proxy.startswith("https:")
        if (proxy, is_secure) not in self._proxied:
            from wolo.models.http.proxied_connection import ProxiedConnections  # noqa: PLC0415  # loads httpx2

            # A plain connection needs no certificates.
            context = await self._trusting() if is_secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._proxied[proxy, is_secure] = ProxiedConnections(proxy, context)
        return await self._proxied[proxy, is_secure].open(call, headers)

    async def _trusting(self) -> ssl.SSLContext:
        """Raises ConfigError."""
        self._certificates = self._certificates or load_certificates("https:", self._environ)
        assert self._certificates is not None
        return await asyncio.wrap_future(self._certificates)
