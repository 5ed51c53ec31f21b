"""The address of a page, read in one way only: programs that differ about where an address leads are how pages get fetched
that nobody allowed."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from wolo.errors import ToolError

LONGEST_CHARS = 8_192
PORTS = {"http": 80, "https": 443}

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_AS_THEY_ARE = "!#$%&'()*+,/:;=?@[]~"


class WebAddress(NamedTuple):
    url: str
    """The one spelling in which it is judged, shown and fetched: plain ASCII, without a fragment."""
    scheme: str
    host: str
    """Lower case, without a final dot and without brackets."""
    port: int

    @property
    def is_literal(self) -> bool:
        """The host is an address of the network itself."""
        return ":" in self.host or _NUMBER.fullmatch(self.host.rpartition(".")[2]) is not None

    @property
    def authority(self) -> str:
        """Host and port, as the header `Host` carries them."""
        return urlsplit(self.url).netloc

    def at(self, address: str) -> str:
        """The same page at this address of the network."""
        where = f"[{address}]" if ":" in address else address
        return urlsplit(self.url)._replace(netloc=f"{where}:{self.port}").geturl()

    def follow(self, location: str) -> WebAddress:
        """Where a redirect leads. Raises ToolError."""
        try:
            return read_address(urljoin(self.url, location.strip()))
        except ValueError as error:
            raise ToolError(f"{self.host} redirects to something that is no address: {location[:200]!r}.") from error

    def is_same_place(self, other: WebAddress) -> bool:
        """The same server, or the same one with encryption."""
        if other.host != self.host:
            return False
        return (other.scheme, other.port) == (self.scheme, self.port) or (
            (self.scheme, self.port, other.scheme, other.port) == ("http", 80, "https", 443)
        )


def read_address(given: str) -> WebAddress:
    """Raises ToolError with what is wrong about it."""
    text = given.strip()
    if len(text) > LONGEST_CHARS:
        raise ToolError(f"The address has {len(text):,} characters; {LONGEST_CHARS:,} is the most.")
    if not text.isprintable() or " " in text or "\\" in text:
        raise ToolError("The address holds blanks, backslashes or invisible characters; write %20 and the like in their place.")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ToolError(f"`{text[:200]}` is not an address: {error}.") from error
    if parts.scheme not in PORTS:
        raise ToolError("Only addresses that begin with https:// or http:// can be fetched.")
    if "@" in parts.netloc:
        raise ToolError("An address with a user name or password is not fetched.")
    if port == 0:
        raise ToolError("There is no port 0.")
    if "[" in parts.netloc and ":" not in host:
        raise ToolError(f"`[{host[:200]}]` is not an address.")
    return _spelled(parts, _read_host(host), port or PORTS[parts.scheme])


def _spelled(parts: SplitResult, host: str, port: int) -> WebAddress:
    shown = f"[{host}]" if ":" in host else host
    netloc = shown if port == PORTS[parts.scheme] else f"{shown}:{port}"
    path, query = (quote(text, safe=_AS_THEY_ARE) for text in (parts.path or "/", parts.query))
    return WebAddress(SplitResult(parts.scheme, netloc, path, query, "").geturl(), parts.scheme, host, port)


def _read_host(host: str) -> str:
    """Raises ToolError for whatever is not the plain spelling of a name or an address."""
    if ":" in host:
        return _read_ipv6(host)
    name = _in_ascii(host).removesuffix(".")
    if not _NAME.fullmatch(name):
        raise ToolError(f"`{host[:200]}` is not the name of a host.")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        try:
            return str(IPv4Address(name))
        except ValueError as error:
            raise ToolError(
                f"`{host[:200]}` is an unusual spelling of an address; write it as four numbers, or a name."
            ) from error
    return name


def _read_ipv6(host: str) -> str:
    try:
        address = IPv6Address(host)
    except ValueError as error:
        raise ToolError(f"`{host[:200]}` is not an address.") from error
    if address.scope_id is not None:
        raise ToolError("An address with a zone is only for this machine's own network; it is not fetched.")
    return str(address)


def _in_ascii(host: str) -> str:
    """Names in other scripts as the network knows them: `xn--…`."""
    if host.isascii():
        return host
    import idna  # noqa: PLC0415  # hardly ever needed

    try:
        return idna.encode(host, uts46=True).decode()
    except idna.IDNAError as error:
        raise ToolError(f"`{host[:200]}` is not the name of a host.") from error
