"""Parses web addresses in one strict form, resolves names to public IP addresses only once, and decides by domains.

Programs that parse an address differently, or resolve it twice, can be led to hosts that were not checked.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal, NamedTuple
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from wolo.errors import ConfigError, ToolError
from wolo.guard.rule_patterns import HostAddress, HostPattern

LONGEST_CHARS = 8_192
PORTS = {"http": 80, "https": 443}

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_AS_THEY_ARE = "!#$%&'()*+,/:;=?@[]~"


class WebAddress(NamedTuple):
    url: str
    """Normalized form that is judged, shown and fetched: plain ASCII without a fragment."""
    scheme: str
    host: str
    """Lower case, without a final dot or brackets."""
    port: int

    @property
    def is_literal(self) -> bool:
        """True when the host is an IP address."""
        return ":" in self.host or _NUMBER.fullmatch(self.host.rpartition(".")[2]) is not None

    @property
    def authority(self) -> str:
        """Value of the `Host` header."""
        return urlsplit(self.url).netloc

    def at(self, address: str) -> str:
        """Returns the same page at this IP address."""
        where = f"[{address}]" if ":" in address else address
        return urlsplit(self.url)._replace(netloc=f"{where}:{self.port}").geturl()

    def follow(self, location: str) -> WebAddress:
        """Returns the target of a redirect. Raises ToolError."""
        try:
            return read_address(urljoin(self.url, location.strip()))
        except ValueError as error:
            raise ToolError(f"{self.host} redirects to an invalid address: {location[:200]!r}.") from error

    def is_same_place(self, other: WebAddress) -> bool:
        """True for the same server, or its https equivalent."""
        if other.host != self.host:
            return False
        return (other.scheme, other.port) == (self.scheme, self.port) or (
            (self.scheme, self.port, other.scheme, other.port) == ("http", 80, "https", 443)
        )


def read_address(url: str) -> WebAddress:
    """Raises ToolError."""
    text = url.strip()
    if len(text) > LONGEST_CHARS:
        raise ToolError(f"The address has {len(text):,} characters; {LONGEST_CHARS:,} is the most.")
    if not text.isprintable() or " " in text or "\\" in text:
        raise ToolError("The address contains blanks, backslashes or invisible characters; write %20 and the like instead.")
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
    return _spell(parts, _read_host(host), port or PORTS[parts.scheme])


def _spell(parts: SplitResult, host: str, port: int) -> WebAddress:
    shown = f"[{host}]" if ":" in host else host
    netloc = shown if port == PORTS[parts.scheme] else f"{shown}:{port}"
    path, query = (quote(text, safe=_AS_THEY_ARE) for text in (parts.path or "/", parts.query))
    return WebAddress(SplitResult(parts.scheme, netloc, path, query, "").geturl(), parts.scheme, host, port)


def _read_host(host: str) -> str:
    """Raises ToolError for anything but a plain name or IP address."""
    if ":" in host:
        try:
            address = IPv6Address(host)
        except ValueError as error:
            raise ToolError(f"`{host[:200]}` is not an address.") from error
        if address.scope_id is not None:
            raise ToolError("An address with a zone is only for this machine's own network; it is not fetched.")
        return str(address)
    name = host
    if not host.isascii():
        import idna  # noqa: PLC0415  # rarely needed

        try:
            name = idna.encode(host, uts46=True).decode()  # international names as `xn--…`
        except idna.IDNAError as error:
            raise ToolError(f"`{host[:200]}` is not a host name.") from error
    name = name.removesuffix(".")
    if not _NAME.fullmatch(name):
        raise ToolError(f"`{host[:200]}` is not a host name.")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        try:
            return str(IPv4Address(name))
        except ValueError as error:
            raise ToolError(
                f"`{host[:200]}` is an unusual spelling of an address; write it as four numbers, or a name."
            ) from error
    return name


LookUp = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a name. Raises OSError."""

_NOT_PUBLIC_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by providers; a cloud keeps its metadata here
            "127.0.0.0/8",  # this machine
            "168.63.129.16/32",  # a cloud's own services, for its machines only
            "169.254.0.0/16",  # link-local; most clouds keep their metadata here
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocols; a cloud keeps its metadata here
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # name service of private networks
            "192.52.193.0/24",  # multicast relays
            "192.88.99.0/24",  # relays to IPv6
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # name service of private networks
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/3",  # multicast, reserved, broadcast
        ),
    )
)
_PUBLIC_6 = IPv6Network("2000::/3")
"""Allocated public range; local ranges and mapped or translated IPv4 addresses lie outside …"""
_NOT_PUBLIC_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocols, and Teredo with an IPv4 address inside
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4, with an IPv4 address inside
            "2620:4f:8000::/48",  # name service of private networks
            "3fff::/20",  # documentation
        ),
    )
)
"""… except these."""
_ISATAP = (0x00005EFE, 0x02005EFE)
"""Middle of an address that holds an IPv4 address in its last four bytes."""
_NAMES_OF_THIS_NETWORK = ("localhost", "localdomain", "local", "internal", "lan", "home", "corp", "intranet", "private", "arpa")
"""Top-level labels that are never public."""


def is_public(address: str) -> bool:
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in _NOT_PUBLIC_4)
    if ip.scope_id is not None or ip not in _PUBLIC_6 or any(ip in network for network in _NOT_PUBLIC_6):
        return False
    return (int(ip) >> 32) & 0xFFFFFFFF not in _ISATAP


class Hosts:
    """Allows public hosts only. `look_up` and `is_open` exist for isolated networks; neither user nor model can set them."""

    def __init__(self, look_up: LookUp | None = None, is_open: Callable[[str], bool] = is_public) -> None:
        self.look_up = look_up or system_look_up
        self.is_open = is_open

    def check_name(self, address: WebAddress) -> None:
        """Checks what is known without a lookup. Raises ToolError."""
        _, dot, last = address.host.rpartition(".")
        may_be_public = bool(dot) and last not in _NAMES_OF_THIS_NETWORK  # a name without a dot resolves locally first
        if not (self.is_open(address.host) if address.is_literal else may_be_public):
            raise _not_public(address.host)

    async def find(self, address: WebAddress) -> tuple[str, ...]:
        """Returns the addresses of a host if all are public. Raises ToolError, and OSError for an unknown name."""
        self.check_name(address)
        if address.is_literal:
            return (address.host,)
        if not (addresses := tuple(dict.fromkeys(await self.look_up(address.host, address.port)))):
            raise socket.gaierror(socket.EAI_NONAME, "no addresses")
        if not all(map(self.is_open, addresses)):
            raise _not_public(address.host)
        return addresses


def _not_public(host: str) -> ToolError:
    return ToolError(f"{host} is in a private network or on this machine: only public addresses can be fetched.")


async def system_look_up(host: str, port: int) -> list[str]:
    """Resolves in a thread that can be abandoned, because name servers may be slow."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def resolve(result: list[str] | OSError) -> None:
        if answer.done():
            return
        if isinstance(result, OSError):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    def work() -> None:
        result: list[str] | OSError
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            result = [str(row[4][0]) for row in rows]
        except (OSError, UnicodeError) as error:
            result = error if isinstance(error, OSError) else socket.gaierror(socket.EAI_NONAME, str(error))
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(resolve, result)

    threading.Thread(target=work, name="wolo-look-up", daemon=True).start()
    return await answer


Decision = Literal["allow", "ask", "deny"]
_HINT = 'Write a host without a scheme or path: "packages.example.com", "*.example.org", "10.0.0.7:8443" or "*".'
_SCHEMES = {80: "http", 443: "https"}


class Domains:
    """`sandbox.allowed_domains` and `sandbox.denied_domains`. A name without a port is allowed at ports 80 and 443, and denied
    at all."""

    def __init__(self, allowed: Sequence[str] = (), denied: Sequence[str] = (), *, source: str = "") -> None:
        """Raises ConfigError that names the setting and the entry."""
        allowed, denied = (
            [_normalize(text, f"{source}: sandbox.{key}" if source else f"sandbox.{key}") for text in texts]
            for key, texts in (("allowed_domains", allowed), ("denied_domains", denied))
        )
        self._allowed = [HostPattern(text, wide=False) for text in allowed]
        self._denied = [HostPattern(text, wide=True) for text in denied]
        self._addresses = {text if text.endswith("]") else re.sub(r":\d+$", "", text) for text in allowed}

    def decide(self, host: str, port: int) -> Decision:
        """`host` is normalized: lower case, without brackets. `ask`: neither list has it."""
        address = HostAddress(_SCHEMES.get(port, "https"), host, None if port in _SCHEMES else port, False, 0)
        if any(pattern.matches(address) for pattern in self._denied):
            return "deny"
        return "allow" if any(pattern.matches(address) for pattern in self._allowed) else "ask"

    def names(self, address: str) -> bool:
        """An IP address is allowed as such, whatever network it is in."""
        return (f"[{address}]" if ":" in address else address) in self._addresses


def _normalize(text: str, key: str) -> str:
    """Raises ConfigError."""
    wild, rest = ("*.", text[2:]) if text.startswith("*.") else ("", text)
    if text == "*":
        return text
    port = ""
    if match := re.fullmatch(r"(\[.*\]|[^:]*):(\d{1,5})", rest):
        rest, port = match[1], match[2]
    try:
        if not rest or re.search(r"[/?#@%*\\]", rest) or (":" in rest and not rest.startswith("[")):
            raise ToolError(f"`{rest[:200]}` is not a host name.")
        if port and not 0 < int(port) < 65_536:
            raise ToolError(f"There is no port {port}.")
        address = read_address(f"http://{rest}/")
    except ToolError as error:
        raise ConfigError(f'{key}: "{text}" cannot be used: {error.message}', hint=_HINT) from error
    if wild and address.is_literal:
        raise ConfigError(f'{key}: "{text}" cannot be used: an address has no names below it.', hint=_HINT)
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{wild}{host}{f':{port}' if port else ''}"
