"""HTTP transport: sends requests on direct connections, which it keeps, or through a proxy."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast
from urllib.parse import SplitResult, quote, urlsplit

from wolo.errors import WoloError
from wolo.formats.format import Framing
from wolo.models.address import DEFAULT_PORTS, proxy_for
from wolo.models.headers import may_be_set
from wolo.models.http import response_body, tls, transport
from wolo.models.http.direct_connection import CONNECT_S, KEEP_ALIVE_S, DirectConnection, DirectResponse, Place

if TYPE_CHECKING:
    import ssl

    from wolo.models.http.proxied_connection import ProxiedConnections

ACCEPT: Mapping[Framing, str] = {"sse": "text/event-stream, application/json", "lines": "application/x-ndjson, application/json"}

LARGEST_FETCHED_BYTES = 1 << 20


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

    def connect(self, url: str) -> None:
        """Begins to connect for the next request, which gets the errors. Does nothing where a proxy is used."""
        if not proxy_for(url, self._environ):
            self._direct.connect(url, self._trusting)

    async def send(self, call: transport.HttpCall) -> AsyncGenerator[transport.Batch, None]:
        proxy = proxy_for(call.url, self._environ)
        with _describe_errors(call, proxy, answering=False):
            response = await self._open(call, proxy)
        try:
            with _describe_errors(call, proxy, answering=True):
                async for batch in await response_body.read_batches(response, call):
                    yield batch
        finally:
            await response.close()

    async def fetch(self, call: transport.HttpCall) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of any kind, whatever the status; redirects are not followed. Raises ProviderError."""
        with _describe_errors(call, proxy := proxy_for(call.url, self._environ), answering=False):
            response = await self._open(call, proxy)
            try:
                body = b""
                while len(body) < LARGEST_FETCHED_BYTES and (piece := await response.read()):
                    body += piece
                return response.status, response.headers, body
            finally:
                await response.close()

    async def close(self) -> None:
        await self._direct.close()
        for connections in self._proxied.values():
            await connections.close()
        self._proxied.clear()

    async def _open(self, call: transport.HttpCall, proxy: str) -> transport.Response:
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

            self._proxied[proxy, is_secure] = ProxiedConnections(proxy, await self._trusting() if is_secure else None)
        return await self._proxied[proxy, is_secure].open(call, headers)

    async def _trusting(self) -> ssl.SSLContext:
        self._certificates = self._certificates or tls.load_certificates("https:", self._environ)
        assert self._certificates is not None
        return await asyncio.wrap_future(self._certificates)


@contextmanager
def _describe_errors(call: transport.HttpCall, proxy: str, *, answering: bool) -> Iterator[None]:
    try:
        yield
    except (WoloError, transport.HttpStatusError):
        raise
    except Exception as error:
        from wolo.models.http.network_errors import describe_network_error  # noqa: PLC0415  # most requests have an answer

        raise describe_network_error(error, call, proxy=proxy, answering=answering) from error


HANDSHAKE_S = 15.0
HAPPY_EYEBALLS_S = 0.25
"""Head start of one address of a host before the next is tried as well (RFC 8305)."""
LONGEST_LABEL = 63
"""Letters between two dots of a host name (RFC 1035)."""


class DirectConnections:
    """Opens connections, and keeps them for later requests."""

    def __init__(self) -> None:
        self._idle: list[DirectConnection] = []
        self._connecting: dict[Place, asyncio.Task[None]] = {}

    def connect(self, url: str, load_context: Callable[[], Awaitable[ssl.SSLContext]]) -> None:
        """The connection joins the idle ones. Does nothing if there are some."""

        async def connect(place: Place) -> None:
            context = await load_context() if place[0] == "https" else None
            (await _connect(DirectConnection(place, self._idle), context)).release()

        if not (self._idle or self._connecting):
            place = _place_of(_parse(url))
            task = self._connecting[place] = asyncio.create_task(connect(place))
            task.add_done_callback(lambda task: task.cancelled() or task.exception())  # there may be no request

    async def open(self, call: transport.HttpCall, headers: Mapping[str, str], context: ssl.SSLContext | None) -> DirectResponse:
        """Sends the request and reads the head of the response. Raises NetworkFailure or OSError.

        A kept connection may have been closed by the server: then the request is sent once more, on a new one.
        """
        target = _parse(call.url)
        place = _place_of(target)
        host = target.netloc.removesuffix(f":{DEFAULT_PORTS[target.scheme]}")
        path = quote(target.path or "/", safe="/%:@!$&'()*+,;=~")
        query = f"?{quote(target.query, safe='/%:@!$&()*+,;=~?')}" if target.query else ""
        lines = [f"{call.method} {path}{query} HTTP/1.1", f"host: {host}"]
        # A header with other characters would change the request.
        for name, value in headers.items():
            if not (may_be_set(name) and value.isascii() and value.replace("\t", " ").isprintable()):
                raise transport.InvalidRequest(f"unusable header {name!r}")
            lines.append(f"{name}: {value}")
        head = "\r\n".join((*lines, f"content-length: {len(call.body)}", "", "")).encode()
        # The connection used last, without those that are closed, too old or of another event loop
        loop, oldest = asyncio.get_running_loop(), time.monotonic() - KEEP_ALIVE_S
        task = None if call.is_alone else self._connecting.pop(place, None)
        if task and task.get_loop() is loop:
            await task
        for each in [each for each in self._idle if not each.is_usable(loop) or each.idle_since <= oldest]:
            self._idle.remove(each)
            each.abort()
        kept = next((each for each in reversed(self._idle) if each.place == place and not call.is_alone), None)
        if kept is not None:
            self._idle.remove(kept)
            was_asked = kept.was_asked
            try:
                return await kept.ask(head, call)
            except transport.NetworkFailure as failure:
                if type(failure) is not transport.NetworkFailure or kept.has_received or not was_asked:
                    raise
        return await (await _connect(DirectConnection(place, self._idle), context)).ask(head, call)

    async def close(self) -> None:
        for task in self._connecting.values():
            if task.get_loop() is asyncio.get_running_loop():
                task.cancel()
                await asyncio.wait([task])
        self._connecting.clear()
        for connection in self._idle:
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)  # sockets are closed in the next round of the loop


async def _connect(connection: DirectConnection, context: ssl.SSLContext | None) -> DirectConnection:
    scheme, host, port = connection.place
    # As text it loads the tables of IDNA; truststore, on other systems, takes nothing else.
    name = cast("str", host.encode()) if sys.platform == "linux" else host
    try:
        async with asyncio.timeout(CONNECT_S):
            # An address is connected to without a race, which loses its socket if it is cancelled as it ends.
            is_address = ":" in host or host.replace(".", "").isdigit()
            await asyncio.get_running_loop().create_connection(
                lambda: connection,
                host,
                port,
                ssl=context,
                server_hostname=name if scheme == "https" else None,
                ssl_handshake_timeout=HANDSHAKE_S if scheme == "https" else None,
                happy_eyeballs_delay=None if is_address else HAPPY_EYEBALLS_S,
            )
    except TimeoutError:
        raise transport.ConnectTimeout from None
    except ConnectionAbortedError as error:  # what asyncio raises after the limit of a handshake
        raise (transport.HandshakeTimeout if error.errno is None else transport.NetworkFailure) from error
    except OSError as error:
        # asyncio joins the failures of several addresses into one text without an error number.
        numbers = re.findall(r"\[Errno (\d+)\]", str(error)) if error.errno is None else []
        number = int(numbers[-1]) if numbers else 0
        raise (OSError(number, os.strerror(number)) if number else error) from error
    return connection


def _place_of(target: SplitResult) -> Place:
    return target.scheme, target.hostname or "", target.port or DEFAULT_PORTS[target.scheme]


def _parse(url: str) -> SplitResult:
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
    raise transport.InvalidRequest("unusable URL")
