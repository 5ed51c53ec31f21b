"""The head of a request to a proxy, read strictly: what programs understand differently is refused."""

from __future__ import annotations

import re

from msgspec import Struct

from wolo.errors import ToolError
from wolo.tools.web.address import WebAddress, read_address

MOST_HEAD_BYTES = 32_768
MOST_HEADERS = 100
_FIRST_LINE = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e]{1,16384}) HTTP/1\.[01]")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")
_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\[\]:/?#@\\%]+):\d{1,5}")
_OF_THIS_CONNECTION = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"upgrade"}
_CREDENTIALS = b"proxy-"


class RefusedRequest(Exception):
    """`status` and the message are the answer."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class ProxyRequest(Struct, frozen=True):
    method: bytes
    target: WebAddress
    headers: tuple[tuple[bytes, bytes], ...]
    """Those for the server, in their order."""
    num_body_bytes: int

    @property
    def is_tunnel(self) -> bool:
        return self.method == b"CONNECT"

    def head_for_server(self, *, through: str | None = None) -> bytes:
        """The request of a plain connection that ends with the response. `through`: the credentials for a proxy, may be empty."""
        path = self.target.url.removeprefix(f"http://{self.target.authority}") if through is None else self.target.url
        lines = [b"%s %s HTTP/1.1" % (self.method, path.encode()), b"host: " + self.target.authority.encode()]
        lines += [name + b": " + value for name, value in self.headers]
        lines += [b"proxy-authorization: " + through.encode()] if through else []
        return b"\r\n".join((*lines, b"connection: close", b"", b""))


def parse_request(head: bytes) -> ProxyRequest:
    """`head` ends with an empty line. Raises RefusedRequest."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if not (match := _FIRST_LINE.fullmatch(first)):
        raise RefusedRequest("400 Bad Request", "The first line is not that of a request to a proxy.")
    if len(lines) > MOST_HEADERS:
        raise RefusedRequest("431 Request Header Fields Too Large", f"More than {MOST_HEADERS} headers.")
    headers = []
    for line in lines:
        if not (pair := _HEADER.fullmatch(line)):  # also a line that continues the one above
            raise RefusedRequest("400 Bad Request", "A header is not well-formed.")
        headers.append((pair[1].lower(), pair[2]))
    target = _read_target(match[1], match[2].decode())
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    if len(hosts) > 1 or any(not _is_same(host, target) for host in hosts):
        raise RefusedRequest("400 Bad Request", "The Host header names another host than the request.")
    size = _body_size(match[1], headers)
    named = {word.strip().lower() for name, value in headers if name == b"connection" for word in value.split(b",")}
    dropped = _OF_THIS_CONNECTION | named | {b"host"}
    kept = tuple(each for each in headers if each[0] not in dropped and not each[0].startswith(_CREDENTIALS))
    return ProxyRequest(match[1], target, kept, size)


def _read_target(method: bytes, text: str) -> WebAddress:
    try:
        if method != b"CONNECT":
            if not text.startswith("http://"):
                raise ToolError("A plain request names an address that begins with http://; use CONNECT for others.")
            return read_address(text)
        if not _AUTHORITY.fullmatch(text):
            raise ToolError("CONNECT takes HOST:PORT.")
        return read_address(f"https://{text}/")
    except ToolError as error:
        raise RefusedRequest("400 Bad Request", error.message) from error


def _is_same(host: str, target: WebAddress) -> bool:
    """CONNECT may leave out the port in the header."""
    try:
        named = read_address(f"{target.scheme}://{host}/")
    except ToolError:
        return False
    has_port = re.search(r":\d+$", host) is not None
    return re.search(r"[/?#@\\]", host) is None and named.host == target.host and (not has_port or named.port == target.port)


def _body_size(method: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    if any(name == b"transfer-encoding" for name, _ in headers):
        raise RefusedRequest("411 Length Required", "wolo's proxy forwards bodies with a Content-Length only.")
    sizes = [value for name, value in headers if name == b"content-length"]
    if len(sizes) > 1 or any(not re.fullmatch(rb"\d{1,15}", size) for size in sizes):
        raise RefusedRequest("400 Bad Request", "The Content-Length is not one number.")
    if method == b"CONNECT" and sizes and int(sizes[0]):
        raise RefusedRequest("400 Bad Request", "CONNECT has no body.")
    return int(sizes[0]) if sizes else 0
