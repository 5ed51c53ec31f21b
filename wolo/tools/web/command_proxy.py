"""The proxy through which a command in the sandbox reaches allowed hosts, and nothing else.

The command's network is its own and empty. Its launcher opens a listener there and hands it over; wolo accepts the connections,
judges each by the name that it asks for, and only then resolves that name. TLS passes through untouched.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from wolo.errors import ConfigError, ToolError
from wolo.guard.denial_detection import ADVICE, PREFIX
from wolo.models.address import DEFAULT_PORTS, basic_auth, display_url, proxy_for
from wolo.tools.web.address import Domains, LookUp, WebAddress, is_public, read_address, system_look_up

HEAD_S, CONNECT_S, LOOK_UP_BEHIND_PROXY_S = 10.0, 30.0, 3.0
LONGEST_S = 4 * 3600.0
"""Of one connection, whatever it does."""
MOST_AT_ONCE, PAUSE_S = 64, 0.5
MOST_HOSTS, MOST_NAMED, MOST_QUESTIONS = 100, 6, 8
"""Per command: hosts in the record, those in the result, and those that the user is asked about."""
_CHUNK_BYTES = 65_536
FORBIDDEN = "403 Forbidden by sandbox.allowed_domains"

AskHost = Callable[[str, bool], Awaitable[bool]]
"""Asks the user about `HOST` or `HOST:PORT`; False without a yes. If the second argument is False, only earlier answers count."""


class CommandNetwork(Struct):
    """What the sandboxed commands of a conversation may reach."""

    domains: Domains
    environ: Mapping[str, str] = {}
    """Has the user's own proxy."""
    look_up: LookUp = system_look_up
    is_open: Callable[[str], bool] = is_public
    """Like `look_up` for tests in isolated networks; neither user nor model can set them."""


class HostRecord(Struct):
    """All connections of a command to one host and port."""

    host: str
    port: int
    allowed: bool
    bytes: int = 0
    """In both directions."""


class Forbidden(Exception):
    """The host may not be reached; the text says why."""


class CommandProxy:
    """Serves one command, from the time its launcher hands over the listener until `close`."""

    def __init__(self, network: CommandNetwork, ask: AskHost | None = None, *, is_job: bool = False) -> None:
        """Call in the event loop. `ask` is None where no user can be asked. `is_job`: nobody waits for the command."""
        self._is_job, self._network, self._ask = is_job, network, ask
        self._loop = asyncio.get_running_loop()
        self._channel, self._launcher_end = socket.socketpair()
        self._channel.setblocking(False)
        self._loop.add_reader(self._channel, self._take_listener)
        self._listener: socket.socket | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._questions: dict[str, asyncio.Future[bool]] = {}
        self._why: dict[str, str] = {}
        """Why a host was not allowed."""
        self._seen: dict[tuple[str, int, bool], HostRecord] = {}
        self._is_closed = False

    @property
    def fd(self) -> int:
        """For the launcher; valid until `close`."""
        return self._launcher_end.fileno()

    @property
    def is_asking(self) -> bool:
        """The user is asked about a host: the command waits for that."""
        return any(not question.done() for question in self._questions.values())

    @property
    def connections(self) -> list[dict[str, Any]]:
        """The record of the call: `host`, `port`, `allowed` and `bytes` of each."""
        return [{name: getattr(each, name) for name in HostRecord.__struct_fields__} for each in self._seen.values()]

    def denial(self) -> str:
        """A line for the result that names the hosts that were not allowed, and the setting; empty if there are none."""
        if not self._why:
            return ""
        more = f", and to {len(self._why) - MOST_NAMED} other hosts" if len(self._why) > MOST_NAMED else ""
        named = "; ".join(f"{name} ({why})" for name, why in list(self._why.items())[:MOST_NAMED])
        return f"{PREFIX} no connection to {named}{more}.{ADVICE}"

    def close(self) -> None:
        """Ends all connections. May be called again, from any thread, and after the loop has ended."""
        if self._loop.is_closed():
            self._close_sockets()
            return
        with suppress(RuntimeError):  # elsewhere than in its loop, which may end right now
            if asyncio.get_running_loop() is self._loop:
                self._end()
                return
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._loop.remove_reader(self._channel)
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
        for task in (*self._tasks, *self._questions.values()):
            task.cancel()
        self._close_sockets()

    def _close_sockets(self) -> None:
        for each in (self._channel, self._launcher_end, *([self._listener] if self._listener else [])):
            each.close()

    def _take_listener(self) -> None:
        """Only the launcher has the other end, and closes it before the command starts."""
        self._loop.remove_reader(self._channel)
        with suppress(OSError):
            _, fds, _, _ = socket.recv_fds(self._channel, 1, 1)
            for fd in fds:
                self._listener = socket.socket(fileno=fd)
                self._listener.setblocking(False)
                self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            client, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptor is left
            self._loop.remove_reader(self._listener)
            self._loop.call_later(PAUSE_S, self._go_on)
            return
        if len(self._tasks) >= MOST_AT_ONCE:
            client.close()
            return
        client.setblocking(False)
        task = self._loop.create_task(self._serve(client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _go_on(self) -> None:
        if self._listener is not None and not self._is_closed:
            self._loop.add_reader(self._listener, self._accept)

    async def _serve(self, client: socket.socket) -> None:
        try:
            reader, writer = await asyncio.open_connection(sock=client, limit=MOST_HEAD_BYTES)
        except BaseException:
            client.close()
            raise
        try:
            async with asyncio.timeout(LONGEST_S):
                try:
                    async with asyncio.timeout(HEAD_S):
                        request = parse_request(await reader.readuntil(b"\r\n\r\n"))
                    await self._forward(request, reader, writer)
                except asyncio.LimitOverrunError:
                    await _answer(writer, "431 Request Header Fields Too Large", "The request has too many headers.")
                except RefusedRequest as error:
                    await _answer(writer, error.status, str(error))
                except Forbidden as error:
                    await _answer(writer, FORBIDDEN, str(error))
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the connection is over
        finally:
            writer.close()

    async def _forward(self, request: ProxyRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target, name = request.target, _spell(request.target.host, request.target.port)
        why = await self._why_not(target)
        if (entry := self._note(target, allowed=not why)) is None:
            raise RefusedRequest("429 Too Many Requests", "This command asked for too many hosts.")
        if why:
            self._why[name] = why
            raise Forbidden(f"no connection to {name}: {why}.")
        try:
            server_reader, server_writer, credentials = await self._connect(request)
        except Forbidden as error:
            self._why[name], entry.allowed = str(error), False
            raise Forbidden(f"no connection to {name}: {error}.") from error
        except (OSError, TimeoutError, ToolError, ConfigError) as error:
            reason = error.message if isinstance(error, ToolError | ConfigError) else str(error) or "no answer in time"
            raise RefusedRequest("502 Bad Gateway", f"{name} cannot be reached: {reason}.") from error
        try:
            if request.is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                async with asyncio.TaskGroup() as group:
                    group.create_task(_copy(reader, server_writer, entry))
                    group.create_task(_copy(server_reader, writer, entry))
                return
            server_writer.write(request.head_for_server(through=credentials))
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(_copy(reader, server_writer, entry, num_bytes=request.num_body_bytes))
                await _copy(server_reader, writer, entry)
                sending.cancel()
        except BaseExceptionGroup as failed:
            raise OSError("the connection broke") from failed
        finally:
            server_writer.close()

    def _note(self, target: WebAddress, *, allowed: bool) -> HostRecord | None:
        """None: too many hosts are in the record already."""
        key = (target.host, target.port, allowed)
        if key not in self._seen and len(self._seen) >= MOST_HOSTS:
            return None
        return self._seen.setdefault(key, HostRecord(*key))

    async def _why_not(self, target: WebAddress) -> str:
        """Why the host is not allowed; empty if it is."""
        if (decision := self._network.domains.decide(target.host, target.port)) == "deny":
            return "sandbox.denied_domains has it"
        unnamed = "sandbox.allowed_domains does not have it"
        if decision == "allow" or self._ask is None or (target.is_literal and not self._network.is_open(target.host)):
            return "" if decision == "allow" else unnamed
        name = target.host if target.port in DEFAULT_PORTS.values() else _spell(target.host, target.port)
        if name not in self._questions:
            if len(self._questions) >= MOST_QUESTIONS:
                return unnamed
            self._questions[name] = asyncio.ensure_future(self._ask(name, not self._is_job))
        spelled = _spell(target.host, target.port)
        if not self._questions[name].done() and self._note(target, allowed=False):  # until there is an answer, it is refused
            self._why[spelled] = "the user has not answered"
        # A program that gives up and tries again finds the same question.
        if not await asyncio.shield(self._questions[name]):
            return "the user did not allow it"
        self._why.pop(spelled, None)
        self._seen.pop((target.host, target.port, False), None)
        return ""

    async def _connect(self, request: ProxyRequest) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str | None]:
        """The connection to the server, or to the user's proxy: with credentials for a plain request through it, else None.

        Raises Forbidden, ToolError, ConfigError and OSError.
        """
        target = request.target
        proxy = proxy_for(target.url, self._network.environ)
        async with asyncio.timeout(CONNECT_S):
            if not proxy:
                *others, last = await self._addresses(target)
                for address in others:
                    with suppress(OSError):
                        return *await asyncio.open_connection(address, target.port, limit=_CHUNK_BYTES), None
                return *await asyncio.open_connection(last, target.port, limit=_CHUNK_BYTES), None
            with suppress(OSError, TimeoutError):  # perhaps only the proxy knows the name
                async with asyncio.timeout(LOOK_UP_BEHIND_PROXY_S):
                    await self._addresses(target)
            return await _through(proxy, request, self._network.environ)

    async def _addresses(self, target: WebAddress) -> list[str]:
        """Raises Forbidden if any leads to this machine or its network, unless the user named that address; OSError."""
        host = target.host
        addresses = [host] if target.is_literal else list(dict.fromkeys(await self._network.look_up(host, target.port)))
        if not addresses:
            raise OSError("the name has no address")
        for address in addresses:
            if not (self._network.is_open(address) or self._network.domains.names(address)):
                raise Forbidden(
                    f"it leads to {address}, in a private network or on this machine, which sandbox.allowed_domains must have too"
                )
        return addresses


async def _through(
    proxy: str, request: ProxyRequest, environ: Mapping[str, str]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str | None]:
    """Raises ToolError and OSError."""
    parts = urlsplit(proxy)
    if parts.scheme not in DEFAULT_PORTS:
        raise ToolError(f"commands in the sandbox cannot use the proxy {display_url(proxy)}, only http and https proxies")
    context = None
    if parts.scheme == "https":
        from wolo.models.http.tls import ssl_context  # noqa: PLC0415  # loads ssl

        context = await asyncio.to_thread(ssl_context, environ)
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=context, limit=_CHUNK_BYTES)
    credentials = basic_auth(proxy)
    if not request.is_tunnel:
        return reader, writer, credentials
    name = _spell(request.target.host, request.target.port)
    shown = f"proxy-authorization: {credentials}\r\n" if credentials else ""
    try:
        writer.write(f"CONNECT {name} HTTP/1.1\r\nhost: {name}\r\n{shown}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise ToolError(f"the proxy {display_url(proxy)} gives no answer that is understood") from error
    except BaseException:
        writer.close()
        raise
    status = head.split(b"\r\n")[0].split()
    if len(status) < 2 or not status[0].startswith(b"HTTP/1.") or status[1] != b"200":
        writer.close()
        said = status[1].decode("latin-1")[:3] if len(status) > 1 else "nothing"
        raise ToolError(f"the proxy {display_url(proxy)} answers {said}")
    return reader, writer, None


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, entry: HostRecord, *, num_bytes: int | None = None
) -> None:
    """Copies to the end, which it passes on, or a number of bytes."""
    left = num_bytes
    while left != 0 and (data := await reader.read(_CHUNK_BYTES if left is None else min(left, _CHUNK_BYTES))):
        entry.bytes += len(data)
        left = None if left is None else left - len(data)
        writer.write(data)
        await writer.drain()
    if num_bytes is None and writer.can_write_eof():
        writer.write_eof()


async def _answer(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    body = f"wolo: {text}\n".encode()
    writer.write(
        f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
        + body
    )
    await writer.drain()


def _spell(host: str, port: int) -> str:
    return f"{f'[{host}]' if ':' in host else host}:{port}"


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
