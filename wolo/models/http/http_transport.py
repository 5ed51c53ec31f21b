"""HTTP transport: sends requests on direct connections or through a proxy, and reads streams, lines or one document."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Literal
from urllib.parse import urljoin

from wolo.errors import BadAnswer, Unavailable, WoloError
from wolo.formats.format import Framing
from wolo.messages.deltas import CallDelta, Delta, size_of
from wolo.models.address import display_url, host_of, proxy_for
from wolo.models.http.direct_connection import DirectConnections
from wolo.models.http.network_errors import PROXY_HINT, describe_network_error
from wolo.models.http.stream_framing import BYTE_ORDER_MARK, MEBIBYTE, LineSplitter, SseSplitter
from wolo.models.http.tls import load_certificates
from wolo.models.http.transport import PATIENCE, Batch, HttpCall, HttpStatusError, InvalidResponse, NetworkFailure, Response

if TYPE_CHECKING:
    import zlib

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


LARGEST_REFUSAL_BYTES = 64 * 1024
LARGEST_ANSWER_BYTES = 256 * MEBIBYTE
LARGEST_DOCUMENT_BYTES = 64 * MEBIBYTE
DONE = b"[DONE]"
"""Final event of a Chat Completions stream."""
REST_S = 3.0
"""Time to read the unneeded rest of a body."""
SNIFFED_BYTES = 8
"""Bytes needed to tell a stream from a document."""
STREAM_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
SHOWN_LETTERS = 200
AUTOMATIC_HEADER = 32
"""Makes zlib detect gzip and deflate."""

LINES_KINDS = ("application/x-ndjson", "application/jsonl", "application/json-lines", "application/x-jsonlines")

Shape = Literal["stream", "lines", "document", "page", "nothing"]


async def read_batches(response: Response, call: HttpCall) -> AsyncIterator[Batch]:
    """Detect the kind of body. Raises for everything that is not a model response."""
    if call.tap:
        shown_headers = (f"{name}: {value}" for name, value in response.headers.items() if name != "set-cookie")
        call.tap("\r\n".join((f"HTTP {response.status}", *shown_headers, "", "")).encode("utf-8", "replace"))
    if not 200 <= response.status < 300:
        raise await _refusal(response, call)
    body = _Body(response, call)
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    head, shape = await _shape(body, kind)
    if call.framing == "lines" and (head.startswith(b"{") or (shape == "page" and kind in LINES_KINDS)):
        shape = "lines"
    if shape in ("stream", "lines"):
        return _payloads(head, body, call, SseSplitter() if shape == "stream" else LineSplitter())
    if shape == "document":
        body.begin()
        return _document(head, body)
    if shape == "nothing":
        raise Unavailable(f"{host_of(call.url)} sent an empty answer.", hint="Try again, or check the base URL and the model.")
    words = _words(await body.some(head))
    raise BadAnswer(
        f"{display_url(call.url)} sent {kind or 'something'} where a model's answer should be: {words}.",
        hint="Check the base URL: it usually ends in /v1.",
        status=response.status,
    )


class _Body:
    """Reads the body in pieces, up to a size limit."""

    def __init__(self, response: Response, call: HttpCall) -> None:
        self._receive, self.begin = response.read, response.begin
        self._encoding = response.headers.get("content-encoding", "").strip().lower()
        self._unpacker = _unpacker(self._encoding)
        self._packed = b""
        self._has_unpacked = False
        self._tap = call.tap
        self._left_bytes = LARGEST_ANSWER_BYTES

    async def read(self) -> bytes:
        """The next piece; empty at the end."""
        piece = await (self._unpack() if self._unpacker else self._receive())
        self._left_bytes -= len(piece)
        if self._left_bytes < 0:
            raise BadAnswer(f"The answer is larger than {LARGEST_ANSWER_BYTES // MEBIBYTE} MiB; reading was stopped.")
        if self._tap:
            self._tap(piece)
        return piece

    async def _unpack(self) -> bytes:
        """At most one mebibyte at a time, whatever the compression ratio."""
        while packed := self._packed or await self._receive():
            if piece := self._decompress(packed):
                return piece
        return b""

    def _decompress(self, packed: bytes) -> bytes:
        """A gzip body may consist of several members (RFC 1952), and `deflate` may lack its header (as many servers send it)."""
        import zlib  # noqa: PLC0415  # as below

        assert self._unpacker
        if self._unpacker.eof:
            packed = packed.lstrip(b"\0")  # padding
            self._unpacker = _unpacker(self._encoding)
            assert self._unpacker
        try:
            piece = self._unpacker.decompress(packed, MEBIBYTE)
        except zlib.error as error:
            if self._encoding != "deflate" or self._has_unpacked:
                raise InvalidResponse("the compressed body is damaged") from error
            self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
            self._has_unpacked = True
            return self._decompress(packed)
        self._has_unpacked = True
        self._packed = self._unpacker.unconsumed_tail or self._unpacker.unused_data
        return piece

    async def all(self, head: bytes) -> bytes:
        pieces, size_bytes = [head], len(head)
        while piece := await self.read():
            pieces.append(piece)
            size_bytes += len(piece)
            if size_bytes > LARGEST_DOCUMENT_BYTES:
                raise BadAnswer(f"The answer is one document of more than {LARGEST_DOCUMENT_BYTES // MEBIBYTE} MiB.")
        return b"".join(pieces)

    async def some(self, head: bytes = b"") -> bytes:
        """Beginning of the body for an error message, even if the connection breaks."""
        taken = head
        with contextlib.suppress(TimeoutError, NetworkFailure):
            async with asyncio.timeout(REST_S):
                while len(taken) < LARGEST_REFUSAL_BYTES and (piece := await self.read()):
                    taken += piece
        return taken[:LARGEST_REFUSAL_BYTES]


async def _shape(body: _Body, kind: str) -> tuple[bytes, Shape]:
    """Detect the kind of body by its first bytes, since content types may be wrong."""
    head = b""
    while piece := await body.read():
        head = (head + piece).lstrip()
        if len(head.removeprefix(BYTE_ORDER_MARK)) >= SNIFFED_BYTES:
            break
    start = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not start:
        return head, "nothing"
    if start.startswith((b"{", b"[")):
        return start, "document"
    if start.startswith(b"<") or not (kind == "text/event-stream" or start.startswith(STREAM_STARTS)):
        return head, "page"
    return head, "stream"


async def _payloads(head: bytes, body: _Body, call: HttpCall, splitter: SseSplitter | LineSplitter) -> AsyncIterator[Batch]:
    patience_s = call.idle_s * PATIENCE or inf
    last_event = monotonic()
    piece = head
    while piece:
        if payloads := splitter.feed(piece):
            end = next((at for at, payload in enumerate(payloads, 1) if payload.startswith(DONE)), None)
            yield Batch(tuple(payloads[:end]))
            if end is not None:
                # To its end, so that the connection can be reused.
                with contextlib.suppress(TimeoutError, BadAnswer, NetworkFailure):
                    async with asyncio.timeout(REST_S):
                        while await body.read():
                            pass
                return
            last_event = monotonic()
            body.begin()
        elif monotonic() - last_event > patience_s:
            raise Unavailable(f"{host_of(call.url)} kept the connection alive for {patience_s:g} s without sending data.")
        piece = await body.read()
    if payloads := splitter.end():
        yield Batch(tuple(payloads))


async def _document(head: bytes, body: _Body) -> AsyncIterator[Batch]:
    yield Batch(whole=await body.all(head))


async def _refusal(response: Response, call: HttpCall) -> Exception:
    status, headers = response.status, response.headers
    if 300 <= status < 400:
        target = display_url(urljoin(call.url, headers.get("location", "")))
        return BadAnswer(
            f"{display_url(call.url)} redirects to {target}; redirects are not followed, to protect the key.",
            hint="If you trust the new address, use it as the base URL.",
            status=status,
        )
    if status == 407:
        message = f"The proxy for {host_of(call.url)} requires a user name and password."
        return BadAnswer(message, hint=PROXY_HINT, status=status)
    body = b""
    with contextlib.suppress(BadAnswer):  # of an unknown compression the status is known
        body = await _Body(response, call).some()
    return HttpStatusError(status, headers, body, call.url)


def _unpacker(encoding: str) -> zlib._Decompress | None:
    """Decompressor for servers that compress although asked not to."""
    if encoding in ("", "identity"):
        return None
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise BadAnswer(f"The answer is compressed in a way that was not asked for: {encoding}.")
    import zlib  # noqa: PLC0415  # rarely needed

    return zlib.decompressobj(zlib.MAX_WBITS | AUTOMATIC_HEADER)


def _words(body: bytes) -> str:
    """Readable beginning of a body."""
    from wolo.formats.errors.error_body import html_text  # noqa: PLC0415  # for unreadable answers only

    text = body.decode("utf-8", "replace")
    words = " ".join((html_text(text) or text).split())
    return "".join(letter for letter in words if letter.isprintable())[:SHOWN_LETTERS] or "nothing readable"


MOST_BYTES = 4_000_000
MOST_CALLS = 2_000
"""Maximum calls per response."""
KEEP_ALIVES = (b'"ping"', b'"keepalive"')
"""Keep-alive events, accepted as long as keep-alive comments."""
_KIND_BYTES = 80
"""The event type appears within this many bytes."""


class StreamLimits:
    """Limits one response. Only text, reasoning and calls count; other events are silence."""

    def __init__(self, max_bytes: int, idle_s: float, clock: Callable[[], float]) -> None:
        """`idle_s` 0: no limit."""
        self._max_bytes = max_bytes
        self._idle_s = idle_s
        self._clock = clock
        self._delta_bytes = 0
        self._slots: set[int] = set()
        self._size_bytes = 0
        self._grown = clock()
        """Time of the last growth."""
        self._ended: float | None = None

    def since_end_s(self) -> float:
        """Seconds since the complete response last grew; call only after its end."""
        if self._ended is None:
            self._ended = self._clock()
        return self._clock() - max(self._ended, self._grown)

    def take(self, payloads: Sequence[bytes], deltas: Sequence[Delta], held_chars: int) -> None:
        """Raises BadAnswer for too much text or too many calls, Unavailable for too long silence."""
        self._delta_bytes += size_of(deltas)
        size_bytes = self._delta_bytes + held_chars
        if size_bytes > self._max_bytes:
            raise BadAnswer(
                f"The answer is longer than {self._max_bytes:,} bytes; it was stopped.",
                hint="Ask for less at a time, or raise limits.max_answer_bytes.",
            )
        self._slots.update(delta.slot for delta in deltas if isinstance(delta, CallDelta))
        if len(self._slots) > MOST_CALLS:
            raise BadAnswer(f"The answer makes more than {MOST_CALLS:,} calls; it was stopped.", hint="Ask for less at a time.")
        if size_bytes != self._size_bytes:
            self._size_bytes, self._grown = size_bytes, self._clock()
        elif self._idle_s and (silence_s := self._clock() - self._grown) > self._idle_s:
            is_kept_alive = any(mark in payload[:_KIND_BYTES] for payload in payloads for mark in KEEP_ALIVES)
            if not is_kept_alive or silence_s > self._idle_s * PATIENCE:
                raise Unavailable(f"The model sent nothing but empty events for {silence_s:.0f} s.")
