"""Reads a response: server-sent events (SSE), one JSON document per line, or a single document."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Literal
from urllib.parse import urljoin

from wolo.errors import BadAnswer, Unavailable
from wolo.models.address import display_url, host_of
from wolo.models.http.transport import PATIENCE, Batch, HttpCall, HttpStatusError, InvalidResponse, NetworkFailure, Response

if TYPE_CHECKING:
    import zlib

    from wolo.models.http.event_stream import FrameSplitter

MEBIBYTE = 1024 * 1024
LARGEST_EVENT_BYTES = 32 * MEBIBYTE
"""Large enough for a whole file in one tool call; larger events are errors."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseSplitter:
    """Returns the `data` of each completed event, in order.

    Works on bytes, so split characters and separators such as U+2028 need no care. Comments and other fields (`event`, `id`,
    `retry`) are ignored.
    """

    def __init__(self, largest_event_bytes: int = LARGEST_EVENT_BYTES) -> None:
        self._limit_bytes = largest_event_bytes
        self._size_bytes = 0
        self._line: list[bytes] = []
        """Pieces of the incomplete line, joined once for linear time."""
        self._data: list[bytes] = []
        """Data lines of the incomplete event."""
        self._after_return = False
        """The last byte was a CR, so a following LF belongs to it."""
        self._start: bytes | None = b""
        """First bytes, until a byte order mark is ruled out."""

    def feed(self, received: bytes) -> list[bytes]:
        if self._start is not None:
            start = self._start + received
            if len(start) < len(BYTE_ORDER_MARK) and BYTE_ORDER_MARK.startswith(start):
                self._start = start
                return []
            self._start, received = None, start.removeprefix(BYTE_ORDER_MARK)
        if self._after_return or b"\r" in received:
            received = received.removeprefix(b"\n") if self._after_return else received
            self._after_return = received.endswith(b"\r")
            received = received.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines, line_feed, rest = received.rpartition(b"\n")
        payloads: list[bytes] = []
        if line_feed:
            if self._line:
                lines = b"".join((*self._line, lines))
                self._line = []
            payloads = self._read(lines.split(b"\n"))
        if rest:
            self._line.append(rest)
        is_pending = bool(self._line or self._data)
        self._size_bytes = len(received) + (0 if payloads else self._size_bytes) if is_pending else 0
        if self._size_bytes > self._limit_bytes:
            raise BadAnswer(
                f"The provider sent one event of more than {self._limit_bytes // MEBIBYTE} MiB; reading was stopped.",
                hint="Ask for the work in smaller pieces, or check what answers at this address.",
            )
        return payloads

    def end(self) -> list[bytes]:
        """End of stream. Emits an event without its blank line, which some servers omit."""
        return self._read([b"".join(self._line), b""])

    def _read(self, lines: list[bytes]) -> list[bytes]:
        data = self._data
        if not data and (plain := _read_single_lines(lines)):
            return plain
        payloads = []
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line:
                if data:
                    payloads.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
            elif line == b"data":
                data.append(b"")
        return payloads


def _read_single_lines(lines: list[bytes]) -> list[bytes]:
    """The usual case in one pass: every event is one line of data. Empty for anything else."""
    if len(lines) % 2 or any(lines[1::2]):
        return []
    payloads = [line[6:] for line in lines[::2] if line.startswith(b"data: ")]
    return payloads if len(payloads) * 2 == len(lines) else []


class LineSplitter:
    """Returns each completed line, in order.

    Works on bytes, so split characters and separators such as U+2028 need no care. A body whose first line is a lone brace is
    one document over many lines, returned at the end.
    """

    def __init__(self, largest_line_bytes: int = LARGEST_EVENT_BYTES) -> None:
        self._limit_bytes = largest_line_bytes
        self._size_bytes = 0
        self._held: list[bytes] = []
        """Pieces of the incomplete line, joined once for linear time."""
        self._is_first = True
        self._is_document = False

    def feed(self, received: bytes) -> list[bytes]:
        lines, line_feed, rest = received.rpartition(b"\n")
        if not line_feed or self._is_document:
            self._hold(received)
            return []
        if self._held:
            lines = b"".join((*self._held, lines))
            self._held, self._size_bytes = [], 0
        payloads = _payloads_in(lines)
        if self._is_first and payloads:
            self._is_first = False
            if payloads[0] == b"{":
                self._is_document = True
                self._hold(lines + b"\n" + rest)
                return []
        if rest:
            self._hold(rest)
        return payloads

    def end(self) -> list[bytes]:
        """End of stream; the last line needs no line end."""
        rest = b"".join(self._held)
        self._held = []
        return [rest.strip().removeprefix(BYTE_ORDER_MARK)] if self._is_document else _payloads_in(rest)

    def _hold(self, piece: bytes) -> None:
        self._held.append(piece)
        self._size_bytes += len(piece)
        if self._size_bytes > self._limit_bytes:
            raise BadAnswer(
                f"The provider sent one line of more than {self._limit_bytes // MEBIBYTE} MiB; reading was stopped.",
                hint="Ask for the work in smaller pieces, or check what answers at this address.",
            )


def _payloads_in(lines: bytes) -> list[bytes]:
    return [line for each in lines.split(b"\n") if (line := each.strip().removeprefix(BYTE_ORDER_MARK))]


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

FRAMES_KIND = "application/vnd.amazon.eventstream"

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
    if kind == FRAMES_KIND:
        from wolo.models.http.event_stream import FrameSplitter  # noqa: PLC0415  # only Bedrock sends it

        return _payloads(await body.read(), body, call, FrameSplitter(call.url))
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
        hint="Check the base URL, and its API: --api names another.",
        status=response.status,
    )


class _Body:
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
    if not (start := head.removeprefix(BYTE_ORDER_MARK).lstrip()):
        return head, "nothing"
    if start.startswith((b"{", b"[")):
        return start, "document"
    if start.startswith(b"<") or not (kind == "text/event-stream" or start.startswith(STREAM_STARTS)):
        return head, "page"
    return head, "stream"


async def _payloads(
    head: bytes, body: _Body, call: HttpCall, splitter: SseSplitter | LineSplitter | FrameSplitter
) -> AsyncIterator[Batch]:
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
        from wolo.models.http.network_errors import PROXY_HINT  # noqa: PLC0415  # few proxies want a password

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
    from wolo.formats.errors.error_body import html_text  # noqa: PLC0415  # for unreadable answers only

    text = body.decode("utf-8", "replace")
    words = " ".join((html_text(text) or text).split())
    return "".join(letter for letter in words if letter.isprintable())[:SHOWN_LETTERS] or "nothing readable"
