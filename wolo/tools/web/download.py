"""Downloads one page: checks every redirect and address, limits size and time, and decodes the text."""

from __future__ import annotations

import asyncio
import codecs
import re
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from wolo import __version__
from wolo.errors import ConfigError, ToolError
from wolo.models.address import proxy_for
from wolo.models.http.network_errors import describe_network_error
from wolo.models.http.tls import ssl_context
from wolo.models.http.transport import HttpCall
from wolo.tools.web.address import Hosts, WebAddress

if TYPE_CHECKING:
    import ssl

    import httpx2

MOST_REDIRECTS = 5
MOST_BYTES = 5 * 1024 * 1024
"""Maximum size of a page, both transferred and unpacked."""
CONNECT_S = 10.0
LOOK_UP_BEHIND_PROXY_S = 3.0
"""Timeout of the local lookup when only the proxy can resolve names."""

HEADERS = {
    "accept": "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.1",
    "accept-encoding": "gzip, deflate",
    "user-agent": f"wolo/{__version__} (a coding agent; fetches what its user allows)",
}
"""All headers that are sent: no cookies, keys or referrer."""

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_UNPACKED_AT_ONCE = 64 * 1024
_AUTOMATIC_HEADER = 32
"""Lets zlib detect gzip and zlib headers."""


class WebPage(Struct, frozen=True, kw_only=True):
    address: WebAddress
    """After redirects."""
    status: int
    kind: str
    """Media type in lower case; empty: not sent."""
    charset: str
    data: bytes
    is_cut: bool
    """The page was truncated."""


class Elsewhere(Struct, frozen=True):
    """A redirect to a host that has not been judged; it was not contacted."""

    address: WebAddress


class Web:
    """Downloads pages, each over new connections."""

    def __init__(self, hosts: Hosts, environ: Mapping[str, str]) -> None:
        self._hosts, self._environ = hosts, environ
        self._trusting: ssl.SSLContext | None = None

    async def get(
        self, address: WebAddress, may_go: Callable[[str], bool], is_read: Callable[[str], bool]
    ) -> WebPage | Elsewhere:
        """`may_go` decides on redirects to other servers, `is_read` on media types.

        Raises ToolError.
        """
        for _ in range(MOST_REDIRECTS + 1):
            response, engine = await self._open(address)
            try:
                location = response.headers.get("location", "") if response.status_code in _REDIRECTS else ""
                if not location:
                    return await _read(response, address, is_read)
            finally:
                await response.stream.aclose()  # type: ignore[union-attr]  # an async response has an async stream
                await engine.aclose()
            following = address.follow(location)
            if not (address.is_same_place(following) or may_go(following.url)):
                return Elsewhere(following)
            address = following
        raise ToolError(f"{address.host} redirects more than {MOST_REDIRECTS} times.")

    async def _open(self, address: WebAddress) -> tuple[httpx2.Response, httpx2.AsyncHTTPTransport]:
        """Returns the response headers. Raises ToolError."""
        try:
            proxy = proxy_for(address.url, self._environ)
        except ConfigError as error:
            raise ToolError(error.message) from error
        try:
            if proxy:
                self._hosts.check_name(address)
                with suppress(OSError, TimeoutError):  # perhaps only the proxy knows the name
                    async with asyncio.timeout(LOOK_UP_BEHIND_PROXY_S):
                        await self._hosts.find(address)
                return await self._ask(address, address.url, proxy)
            *others, last = await self._hosts.find(address)
            for found in others:
                try:
                    return await self._ask(address, address.at(found), "")
                except Exception as error:
                    if type(error).__name__ not in ("ConnectError", "ConnectTimeout"):
                        raise
            return await self._ask(address, address.at(last), "")
        except ToolError:
            raise
        except Exception as error:
            raise _broken(error, address, proxy=proxy, answering=False) from error

    async def _ask(self, address: WebAddress, url: str, proxy: str) -> tuple[httpx2.Response, httpx2.AsyncHTTPTransport]:
        """`url` holds the checked IP address; the server and its certificate still see the name."""
        import httpx2  # noqa: PLC0415  # 60 ms, at the first page

        extensions: dict[str, Any] = {"timeout": {"connect": CONNECT_S, "read": None, "write": None, "pool": None}}
        if address.scheme == "https":
            extensions["sni_hostname"] = address.host
        engine = self._engine(proxy)
        try:
            request = httpx2.Request("GET", url, headers={"host": address.authority, **HEADERS}, extensions=extensions)
            return await engine.handle_async_request(request), engine
        except BaseException:
            await engine.aclose()
            raise

    def _engine(self, proxy: str) -> httpx2.AsyncHTTPTransport:
        import httpx2  # noqa: PLC0415  # as above

        if self._trusting is None:
            try:
                self._trusting = ssl_context(self._environ)
            except ConfigError as error:
                raise ToolError(error.message) from error
        return httpx2.AsyncHTTPTransport(verify=self._trusting, trust_env=False, proxy=proxy or None)


async def _read(response: httpx2.Response, address: WebAddress, is_read: Callable[[str], bool]) -> WebPage:
    kind, _, parameters = response.headers.get("content-type", "").partition(";")
    kind, charset = kind.strip().lower(), ""
    for name, _, value in (parameter.partition("=") for parameter in parameters.split(";")):
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'").lower()
            break
    if not is_read(kind):
        size = response.headers.get("content-length", "")
        described = f", {int(size):,} bytes" if size.isascii() and size.isdecimal() and len(size) < 16 else ""
        raise ToolError(f"{address.url} is not text: {kind}{described}.")
    data, is_cut = await _body(response, address)
    return WebPage(address=address, status=response.status_code, kind=kind, charset=charset, data=data, is_cut=is_cut)


async def _body(response: httpx2.Response, address: WebAddress) -> tuple[bytes, bool]:
    """Returns the body within the limits, and True if it was truncated. A broken connection ends the body."""
    taken = bytearray()
    try:
        async for piece in _unpack(response, address):
            taken += piece
            if len(taken) > MOST_BYTES:
                return bytes(taken[:MOST_BYTES]), True
    except (ToolError, asyncio.CancelledError):
        raise
    except Exception as error:
        if not taken:
            raise _broken(error, address, proxy="", answering=True) from error
        return bytes(taken), True
    return bytes(taken), False


def _broken(error: Exception, address: WebAddress, *, proxy: str, answering: bool) -> ToolError:
    from wolo.models.http.proxied_connection import network_failure  # noqa: PLC0415  # loads httpx2

    described = describe_network_error(network_failure(error), HttpCall(address.url, b""), proxy=proxy, answering=answering)
    return ToolError(described.message)


async def _unpack(response: httpx2.Response, address: WebAddress) -> AsyncIterator[bytes]:
    """Unpacks in small pieces, against decompression bombs."""
    unpacker = _unpacker(response.headers.get("content-encoding", ""), address)
    received_bytes = 0
    async for packed in response.stream:  # type: ignore[union-attr]  # an async response has an async stream
        received_bytes += len(packed)
        if unpacker is None:
            yield packed
            continue
        while packed:
            yield unpacker.decompress(packed, _UNPACKED_AT_ONCE)
            packed = unpacker.unconsumed_tail
        if unpacker.eof or received_bytes > MOST_BYTES:
            return
    if unpacker is not None:
        yield unpacker.flush(_UNPACKED_AT_ONCE)


def _unpacker(encoding: str, address: WebAddress) -> zlib._Decompress | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip" | "deflate":
            return zlib.decompressobj(zlib.MAX_WBITS | _AUTOMATIC_HEADER)
        case other:
            raise ToolError(f"{address.host} sent the page in an unrequested encoding: {other[:40]}.")


_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NAMED = re.compile(
    rb"""<(?:meta\b[^>]{0,500}?\bcharset|\?xml\b[^>]{0,200}?\bencoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)
_LOOKED_AT_BYTES = 4096
_KNOWN = re.compile(
    r"(?:utf-(?:8|16|16-le|16-be|32)|iso8859-\d+|cp\d+|koi8-[rtu]|gb\w+|big5\w*|euc_\w+|shift_jis\w*|johab|mac-\w+|ascii)\Z"
)
"""Allowed codecs; Python has others, not all of them for text."""
_BROADER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
}
"""Supersets that browsers use instead."""


def decode(data: bytes, charset: str, *, is_cut: bool = False) -> str:
    """Decodes by byte-order mark, server, page or guess; `is_cut` allows an incomplete last character. Undecodable bytes are
    replaced."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    named = _NAMED.search(data[:_LOOKED_AT_BYTES])
    for label in (charset, named[1].decode("ascii", "replace") if named else ""):
        try:
            codec = codecs.lookup(label).name if label else ""
        except (LookupError, ValueError):
            continue
        if _KNOWN.match(codec):
            return data.decode(_BROADER.get(codec, codec), "replace")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        is_half_a_letter = is_cut and error.start >= len(data) - 3
        return data.decode("utf-8" if is_half_a_letter else "cp1252", "replace")


def is_binary(data: bytes) -> bool:
    """True for a NUL byte near the start, except in UTF-16."""
    return b"\0" in data[:8000] and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
