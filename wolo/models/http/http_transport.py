"""HTTP transport on httpx2, with streamed responses and TLS certificates."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from wolo.errors import ConfigError, WoloError
from wolo.formats.format import Framing
from wolo.models.address import host_of, proxy_for
from wolo.models.http.http_body import read_batches
from wolo.models.http.network_errors import describe_network_error
from wolo.models.http.transport import Batch, Call, HttpStatusError

if TYPE_CHECKING:
    import httpx2


CONNECT_S = 30.0
KEEP_ALIVE_S = 90.0
"""Lifetime of idle connections, since tools run between requests."""
KEPT_CONNECTIONS = 8
ACCEPT: Mapping[Framing, str] = {
    "sse": "text/event-stream, application/json",
    "lines": "application/x-ndjson, application/json",
}


class HttpTransport:
    """Reuses connections within a conversation.

    Redirects are not followed, because the key belongs to the given address.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._engines: dict[tuple[bool, str], httpx2.AsyncHTTPTransport] = {}

    async def send(self, call: Call) -> AsyncGenerator[Batch, None]:
        proxy = proxy_for(call.url, self._environ)
        engine = self._engine(call.url, proxy)
        limits = {"connect": CONNECT_S, "write": call.first_byte_s or None, "read": call.first_byte_s or None, "pool": None}
        try:
            response = await _open(engine, call, limits)
        except Exception as error:
            raise describe_network_error(error, call, proxy=proxy, answering=False) from error
        limits["read"] = call.idle_s or None
        try:
            async for batch in await read_batches(response, call):
                yield batch
        except (WoloError, HttpStatusError):
            raise
        except Exception as error:
            raise describe_network_error(error, call, proxy=proxy, answering=True) from error
        finally:
            await response.stream.aclose()  # type: ignore[union-attr]  # an async response has an async stream

    async def close(self) -> None:
        for engine in self._engines.values():
            await engine.aclose()
        self._engines.clear()

    def _engine(self, url: str, proxy: str) -> httpx2.AsyncHTTPTransport:
        secure = url.startswith("https:")
        engine = self._engines.get((secure, proxy))
        if engine is None:
            engine = self._engines[secure, proxy] = self._new_engine(secure or proxy.startswith("https:"), proxy)
        return engine

    def _new_engine(self, secure: bool, proxy: str) -> httpx2.AsyncHTTPTransport:
        import httpx2  # noqa: PLC0415  # 60 ms, delayed until after the first prompt is shown

        # A plain connection needs no certificates.
        context = ssl_context(self._environ) if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS, keepalive_expiry=KEEP_ALIVE_S)
        try:
            return httpx2.AsyncHTTPTransport(verify=context, proxy=proxy or None, limits=limits)
        except ImportError:
            raise ConfigError(
                f"The proxy {host_of(proxy)} is a SOCKS proxy, which needs the package `socksio`.",
                hint="Install `socksio` with wolo, name an HTTP proxy, or list the host in NO_PROXY.",
            ) from None


async def _open(engine: httpx2.AsyncHTTPTransport, call: Call, limits: Mapping[str, float | None]) -> httpx2.Response:
    """Send the request and read the response head.

    The server may have closed a reused connection: then the request is sent again.
    """
    import httpx2  # noqa: PLC0415  # loaded with the engine

    stale_ones = KEPT_CONNECTIONS
    while True:
        trace = _ConnectionTrace()
        extensions: dict[str, Any] = {"timeout": limits, "trace": trace}
        headers = {
            "accept": ACCEPT[call.framing],
            "accept-encoding": "identity",
            "content-type": "application/json",
        }
        request = httpx2.Request("POST", call.url, headers={**headers, **call.headers}, content=call.body, extensions=extensions)
        try:
            return await engine.handle_async_request(request)
        except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError):
            if trace.new or not stale_ones:
                raise
            stale_ones -= 1


class _ConnectionTrace:
    """Detects whether a request opened a new connection."""

    new = False

    async def __call__(self, name: str, details: Mapping[str, Any]) -> None:
        if name.endswith("connect_tcp.started"):
            self.new = True


def ssl_context(environ: Mapping[str, str]) -> ssl.SSLContext:
    """Verifying TLS context with the system's certificates and SSL_CERT_FILE or SSL_CERT_DIR. Takes 20 to 50 ms. Raises
    ConfigError."""
    import httpx2  # noqa: PLC0415  # 60 ms, delayed until after the first prompt is shown

    context = httpx2.create_ssl_context(trust_env=False)
    file, directory = environ.get("SSL_CERT_FILE") or None, environ.get("SSL_CERT_DIR") or None
    try:
        if file or directory:
            context.load_verify_locations(file, directory)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"The certificates in {file or directory} cannot be read: {error.strerror or error}.",
            hint="SSL_CERT_FILE names a file in PEM format, SSL_CERT_DIR a directory of such files.",
        ) from error
    return context
