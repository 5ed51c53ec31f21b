"""HTTP streaming: a request goes out on httpx2, the payloads of the answer come back as they arrive."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urljoin

from wolo.errors import BadAnswer, ConfigError, ProviderError, Unavailable
from wolo.formats.page_text import page_text
from wolo.models.address import host_of, origin, proxy_for, shown
from wolo.models.network_errors import PROXY_HINT, explain
from wolo.models.sse import BYTE_ORDER_MARK, MEBIBYTE, SseSplitter
from wolo.models.transport import Batch, Call, Refused

if TYPE_CHECKING:
    import zlib

    import httpx2

CONNECT_S = 30.0
KEEP_ALIVE_S = 90.0
"""An idle connection is kept this long: tools run between two requests of a turn."""
KEPT_CONNECTIONS = 8
LARGEST_REFUSAL_BYTES = 64 * 1024
LARGEST_ANSWER_BYTES = 256 * MEBIBYTE
LARGEST_DOCUMENT_BYTES = 64 * MEBIBYTE
DONE = b"[DONE]"
"""The last event of a Chat Completions stream."""
REST_S = 3.0
"""How long the rest of a body may take when nothing in it is needed: after the last event, or in a refusal."""
PATIENCE = 4
"""Keep-alive comments count as received bytes; after so many idle limits without an event the stream is dead all the same."""
SNIFFED_BYTES = 8
"""So many bytes tell a stream from a document."""
SHOWN_LETTERS = 200
AUTOMATIC_HEADER = 32
"""Tells zlib to recognise gzip and deflate by their first bytes."""
STREAM_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")

Shape = Literal["stream", "document", "page", "nothing"]


class HttpTransport:
    """Keeps its connections between requests; one serves a whole conversation.

    Redirects are not followed: the key belongs to the address it was given for.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._engines: dict[tuple[bool, str], httpx2.AsyncHTTPTransport] = {}
        self._reached: set[tuple[str, str, int | None]] = set()

    async def send(self, call: Call) -> AsyncGenerator[Batch, None]:
        proxy = proxy_for(call.url, self._environ)
        engine = self._engine(call.url, proxy)
        limits = {"connect": CONNECT_S, "write": call.first_byte_s or None, "read": call.first_byte_s or None, "pool": None}
        reached = origin(call.url) in self._reached
        try:
            response = await _open(engine, call, limits)
        except Exception as error:
            raise explain(error, call, proxy=proxy, answering=False, reached=reached) from error
        self._reached.add(origin(call.url))
        limits["read"] = call.idle_s or None
        try:
            async for batch in _batches(response, call):
                yield batch
        except (ProviderError, Refused):
            raise
        except Exception as error:
            raise explain(error, call, proxy=proxy, answering=True, reached=True) from error
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
        import httpx2  # noqa: PLC0415  # 60 ms, and the prompt is already on the screen

        # Reading the system's certificates takes 20 to 50 ms, and a plain connection needs none.
        context = self._trust(httpx2.create_ssl_context(trust_env=False)) if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS, keepalive_expiry=KEEP_ALIVE_S)
        try:
            return httpx2.AsyncHTTPTransport(verify=context, proxy=proxy or None, limits=limits)
        except ImportError:
            raise ConfigError(
                f"The proxy {host_of(proxy)} is a SOCKS proxy, which needs the package `socksio`.",
                hint="Install `socksio` beside wolo, name an HTTP proxy, or list the host in NO_PROXY.",
            ) from None

    def _trust(self, context: ssl.SSLContext) -> ssl.SSLContext:
        """Adds the certificates that the environment names to the system's own."""
        file, directory = self._environ.get("SSL_CERT_FILE") or None, self._environ.get("SSL_CERT_DIR") or None
        try:
            if file or directory:
                context.load_verify_locations(file, directory)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"The certificates in {file or directory} cannot be read: {error.strerror or error}.",
                hint="SSL_CERT_FILE names a file in PEM format, SSL_CERT_DIR a directory of such files.",
            ) from error
        return context


async def _open(engine: httpx2.AsyncHTTPTransport, call: Call, limits: Mapping[str, float | None]) -> httpx2.Response:
    """Sends the request and reads the head of the answer.

    A kept connection may have been closed by the server just now: then nothing was answered, and it goes out again.
    """
    import httpx2  # noqa: PLC0415  # loaded with the engine

    stale_ones = KEPT_CONNECTIONS
    while True:
        dialled = _Dialled()
        extensions: dict[str, Any] = {"timeout": limits, "trace": dialled}
        headers = {
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
        }
        request = httpx2.Request("POST", call.url, headers={**headers, **call.headers}, content=call.body, extensions=extensions)
        try:
            return await engine.handle_async_request(request)
        except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError):
            if dialled.new or not stale_ones:
                raise
            stale_ones -= 1


class _Dialled:
    """Notices whether a request opened a connection of its own."""

    new = False

    async def __call__(self, name: str, details: Mapping[str, Any]) -> None:
        if name.endswith("connect_tcp.started"):
            self.new = True


class _Body:
    """Reads the body piece by piece, and no more than an answer may hold."""

    def __init__(self, response: httpx2.Response, call: Call) -> None:
        self._pieces: AsyncIterator[bytes] = aiter(response.stream)  # type: ignore[arg-type]  # an async response has an async stream
        self._unpacker = _unpacker(response.headers.get("content-encoding", ""))
        self._packed = b""
        self._tap = call.tap
        self._left_bytes = LARGEST_ANSWER_BYTES

    async def read(self) -> bytes:
        """The next piece; empty at the end."""
        piece = await (self._unpack() if self._unpacker else anext(self._pieces, b""))
        self._left_bytes -= len(piece)
        if self._left_bytes < 0:
            raise BadAnswer(f"The answer is larger than {LARGEST_ANSWER_BYTES // MEBIBYTE} MiB; reading was stopped.")
        if self._tap and piece:
            self._tap(piece)
        return piece

    async def _unpack(self) -> bytes:
        """Never more than a mebibyte at once, however well it was packed."""
        assert self._unpacker
        while self._packed or (packed := await anext(self._pieces, b"")):
            piece = self._unpacker.decompress(self._packed or packed, MEBIBYTE)
            self._packed = self._unpacker.unconsumed_tail
            if piece:
                return piece
        return self._unpacker.flush()

    async def all(self, head: bytes) -> bytes:
        pieces, size_bytes = [head], len(head)
        while piece := await self.read():
            pieces.append(piece)
            size_bytes += len(piece)
            if size_bytes > LARGEST_DOCUMENT_BYTES:
                raise BadAnswer(f"The answer is one document of more than {LARGEST_DOCUMENT_BYTES // MEBIBYTE} MiB.")
        return b"".join(pieces)

    async def some(self, head: bytes = b"") -> bytes:
        """The beginning, for an error message: what comes soon, even if the connection then breaks."""
        taken = head
        with contextlib.suppress(TimeoutError, *_broken()):
            async with asyncio.timeout(REST_S):
                while len(taken) < LARGEST_REFUSAL_BYTES and (piece := await self.read()):
                    taken += piece
        return taken[:LARGEST_REFUSAL_BYTES]


async def _batches(response: httpx2.Response, call: Call) -> AsyncIterator[Batch]:
    if call.tap:
        call.tap(_head(response))
    body = _Body(response, call)
    if not 200 <= response.status_code < 300:
        raise await _refusal(response, call, body)
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    head, shape = await _shape(body, kind)
    match shape:
        case "stream":
            async for batch in _events(head, body, call):
                yield batch
        case "document":
            yield Batch(whole=await body.all(head))
        case "page":
            words = _words(await body.some(head))
            raise BadAnswer(
                f"{shown(call.url)} sent {kind or 'something'} where a model's answer should be: {words}.",
                hint="Check the base URL: it ends where the API's own path begins, mostly in /v1.",
                status=response.status_code,
            )
        case "nothing":
            raise Unavailable(
                f"{host_of(call.url)} sent an empty answer.", hint="Try again, or check the base URL and the model."
            )


async def _shape(body: _Body, kind: str) -> tuple[bytes, Shape]:
    """What the body is, told by how it begins: servers name the wrong content type now and then."""
    head = b""
    while piece := await body.read():
        head = (head + piece).lstrip()
        start = head.removeprefix(BYTE_ORDER_MARK).lstrip()
        if len(start) >= SNIFFED_BYTES:
            break
    start = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not start:
        return head, "nothing"
    if start.startswith((b"{", b"[")):
        return head, "document"
    if start.startswith(b"<") or not (kind == "text/event-stream" or start.startswith(STREAM_STARTS)):
        return head, "page"
    return head, "stream"


async def _events(head: bytes, body: _Body, call: Call) -> AsyncIterator[Batch]:
    splitter = SseSplitter()
    patience_s = call.idle_s * PATIENCE or inf
    last_event = monotonic()
    piece = head
    while piece:
        if payloads := splitter.feed(piece):
            yield Batch(tuple(payloads))
            if payloads[-1].startswith(DONE):
                await body.some()
                return
            last_event = monotonic()
        elif monotonic() - last_event > patience_s:
            raise Unavailable(
                f"{host_of(call.url)} kept the connection alive for {patience_s:g} s without going on with the answer."
            )
        piece = await body.read()
    if payloads := splitter.end():
        yield Batch(tuple(payloads))


async def _refusal(response: httpx2.Response, call: Call, body: _Body) -> Exception:
    status, headers = response.status_code, dict(response.headers)
    if 300 <= status < 400:
        target = shown(urljoin(call.url, headers.get("location", "")))
        return BadAnswer(
            f"{shown(call.url)} sends us on to {target}; redirects are not followed, for the key's sake.",
            hint="If you trust the new address, use it as the base URL.",
            status=status,
        )
    if status == 407:
        return BadAnswer(
            f"The proxy on the way to {host_of(call.url)} wants a name and a password.", hint=PROXY_HINT, status=status
        )
    return Refused(status, headers, await body.some(), call.url)


def _unpacker(encoding: str) -> zlib._Decompress | None:
    """For servers that compress although they were asked not to."""
    if encoding.strip().lower() in ("", "identity"):
        return None
    if encoding.strip().lower() not in ("gzip", "x-gzip", "deflate"):
        raise BadAnswer(f"The answer is compressed in a way that was not asked for: {encoding}.")
    import zlib  # noqa: PLC0415  # hardly ever needed

    return zlib.decompressobj(zlib.MAX_WBITS | AUTOMATIC_HEADER)


def _words(body: bytes) -> str:
    """The beginning of what a person would read there."""
    text = body.decode("utf-8", "replace")
    words = " ".join((page_text(text) or text).split())
    return "".join(letter for letter in words if letter.isprintable())[:SHOWN_LETTERS] or "nothing readable"


def _head(response: httpx2.Response) -> bytes:
    lines = [
        f"HTTP {response.status_code}",
        *(f"{name}: {value}" for name, value in response.headers.items() if name != "set-cookie"),
    ]
    return "\r\n".join((*lines, "", "")).encode("utf-8", "replace")


def _broken() -> tuple[type[Exception], ...]:
    import httpx2  # noqa: PLC0415  # loaded with the engine

    return (httpx2.TransportError, httpx2.DecodingError)
