"""MCP connections through the SDK, which only this file imports.

Loading the SDK takes most of a second, so it happens in a thread and only when a server starts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import Any, Self

import anyio
import httpx2
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from wolo import __version__
from wolo.errors import ConfigError
from wolo.mcp.connection import Connection, ConnectionLost, RequestRejected, ToolAnswer, read_answer
from wolo.mcp.listed_tools import ListedTool, read_listed
from wolo.mcp.stdio_process import LONGEST_LINE_BYTES, ServerProcess
from wolo.models.address import proxy_for
from wolo.models.http.tls import ssl_context

CONNECT_S = 20.0
_MOST_PAGES = 50
_Item = SessionMessage | Exception
_Transport = AbstractAsyncContextManager[tuple[Any, Any]]
"""SDK streams for incoming and outgoing messages."""

logging.getLogger("mcp").setLevel(logging.CRITICAL)  # errors are reported to the caller


@asynccontextmanager
async def connect_child(child: ServerProcess) -> AsyncIterator[Connection]:
    """Raises ConnectionLost and RequestRejected."""
    async with _connected(lambda: _over_pipes(child)) as link:
        yield link


@asynccontextmanager
async def connect_http(
    url: str, headers: Mapping[str, str], *, old: bool, environ: Mapping[str, str], on_status: Callable[[int], None]
) -> AsyncIterator[Connection]:
    """`old`: use SSE. `on_status` receives the HTTP status of each response. Raises ConnectionLost and RequestRejected."""

    async def on_message(response: httpx2.Response) -> None:
        on_status(response.status_code)

    def client(**more: Any) -> httpx2.AsyncClient:
        return _http_client(url, headers, environ, on_message, **more)

    def modern() -> _Transport:
        return streamable_http_client(url, http_client=client())

    def sse() -> _Transport:
        return sse_client(url, httpx_client_factory=lambda headers=None, timeout=None, auth=None: client())

    async with _connected(sse if old else modern) as link:
        yield link


def _http_client(
    url: str, headers: Mapping[str, str], environ: Mapping[str, str], on_message: Callable[[httpx2.Response], Any], **more: Any
) -> httpx2.AsyncClient:
    """Uses the same proxies and certificates as model requests."""
    proxy = proxy_for(url, environ)
    secure = url.startswith("https:") or proxy.startswith("https:")
    context = ssl_context(environ) if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx2.AsyncClient(
        headers={"User-Agent": f"wolo/{__version__}", "Accept-Encoding": "identity", **headers},
        transport=_Bounded(verify=context, proxy=proxy or None),
        timeout=httpx2.Timeout(None, connect=CONNECT_S),
        event_hooks={"response": [on_message]},
        trust_env=False,
        **more,
    )


class _Bounded(httpx2.AsyncHTTPTransport):
    """Limits message size and refuses compression, which could expand to gigabytes."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.DecodingError("it compresses what it sends, which it was asked not to")
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # always so for async transports
        has_events = response.headers.get("Content-Type", "").startswith("text/event-stream")
        response.stream = _Counted(response.stream, has_events=has_events)
        return response


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, *, has_events: bool) -> None:
        self._stream = stream
        self._ends = (b"\n\n", b"\r\n\r\n") if has_events else ()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size_bytes = 0
        async for piece in self._stream:
            size_bytes = 0 if any(end in piece for end in self._ends) else size_bytes + len(piece)
            if size_bytes > LONGEST_LINE_BYTES:
                raise httpx2.ReadError("one message is too large")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def _connected(transport: Callable[[], _Transport]) -> AsyncIterator[Connection]:
    """Connect with the legacy handshake, then with the newer one if the server refuses it."""
    link = _Link()
    try:
        async with AsyncExitStack() as stack:
            try:
                await link.open(stack, transport(), "legacy")
            except Exception as error:
                if not isinstance(_leaf(error), MCPError) or _is_closed(_leaf(error)):
                    raise
                link = _Link()
                await link.open(stack, transport(), "auto")
            yield link
    except Exception as error:
        raise _translated(error) from error


class _Link:
    """Implements `connection.Connection`."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.changed = asyncio.Event()
        self._client: Client | None = None
        self._entries: list[object] = []
        """Raw entries of tool lists."""

    async def open(self, stack: AsyncExitStack, transport: _Transport, mode: str) -> None:
        client = Client(
            _tidied(transport, self.ended, self._entries),
            mode=mode,
            client_info=types.Implementation(name="wolo", version=__version__),
            message_handler=self._hear,
            cache=None,
        )
        self._client = await stack.enter_async_context(client)

    @property
    def instructions(self) -> str:
        return self._connected.instructions or ""

    async def tools(self) -> tuple[ListedTool, ...]:
        self._entries.clear()
        if self._connected.server_capabilities.tools is None:
            return ()
        cursor: str | None = None
        seen: set[str | None] = {None}
        with _translating():
            for _ in range(_MOST_PAGES):
                cursor = (await self._connected.list_tools(cursor=cursor)).next_cursor
                if cursor in seen:
                    break
                seen.add(cursor)
        return read_listed(self._entries)

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float, show: Callable[[str], None]) -> ToolAnswer:
        async def on_message(progress: float, total: float | None, message: str | None) -> None:
            of = f"{progress:g}/{total:g}" if total else f"{progress:g}"
            show(f"{of} {message}\n" if message else f"{of}\n")

        with _translating():
            result = await self._connected.call_tool(
                tool, dict(arguments), read_timeout_seconds=timeout_s, progress_callback=on_message
            )
        return read_answer(result.model_dump(mode="json", by_alias=True, exclude_none=True))

    @property
    def _connected(self) -> Client:
        assert self._client is not None  # `open` is called first
        return self._client

    async def _hear(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.changed.set()


@asynccontextmanager
async def _over_pipes(child: ServerProcess) -> AsyncIterator[tuple[Any, Any]]:
    to_session, incoming = anyio.create_memory_object_stream[_Item](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_listen, child, to_session)
        tasks.start_soon(_talk, child, from_session)
        try:
            yield incoming, outgoing
        finally:
            tasks.cancel_scope.cancel()
            for stream in (incoming, outgoing):
                stream.close()


async def _listen(child: ServerProcess, session: MemoryObjectSendStream[_Item]) -> None:
    """Skips lines that are not messages, such as banners."""
    async with session:
        with suppress(ValueError, OSError):  # an overlong line or a broken pipe counts as the end
            while line := await child.lines.readline():
                with suppress(ValidationError):
                    await session.send(SessionMessage(_message(line)))


def _message(line: bytes) -> types.JSONRPCMessage:
    """Raises ValidationError. Invalid characters are replaced, since dropping a response would leave its caller waiting."""
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        if not line.startswith(b"{"):
            raise
        with suppress(ValueError, RecursionError):
            legible = json.dumps(json.loads(line.decode(errors="replace")), ensure_ascii=False).encode(errors="replace")
            return types.jsonrpc_message_adapter.validate_json(legible, by_name=False)
        raise


async def _talk(child: ServerProcess, session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with session:
        with suppress(OSError):  # the process stopped reading; the other pipe reports the end
            async for each in session:
                await child.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")


@asynccontextmanager
async def _tidied(transport: _Transport, ended: asyncio.Event, entries: list[object]) -> AsyncIterator[tuple[Any, Any]]:
    async with transport as (incoming, outgoing):
        yield _Tidied(incoming, ended, entries), outgoing


class _Tidied:
    """Makes messages acceptable to the SDK, which rejects a whole list for one invalid tool."""

    def __init__(self, stream: Any, ended: asyncio.Event, entries: list[object]) -> None:
        self._stream = stream
        self._ended = ended
        self._entries = entries

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> _Item:
        item: _Item = await self._stream.receive()
        if isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCResponse):
            tools = item.message.result.get("tools")
            if isinstance(tools, list):
                self._entries += tools
                item.message.result["tools"] = [fit for tool in tools if (fit := _fit(tool))]
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _Item:
        try:
            return await self.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended.set()
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        await self.aclose()


def _fit(tool: object) -> dict[str, Any] | None:
    """The fields the SDK needs; it rejects the list for one invalid schema."""
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    return {"name": tool["name"], "inputSchema": {"type": "object"}}


@contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise _translated(error) from error


def _translated(error: Exception) -> Exception:
    match _leaf(error):
        case ConnectionLost() | RequestRejected() | ConfigError() as known:
            return known
        case MCPError() as refused if _is_closed(refused):
            return ConnectionLost("the connection was closed")
        case MCPError() as late if late.code == types.REQUEST_TIMEOUT:
            return RequestRejected("it did not answer in time")
        case MCPError() as refused if refused.message == "Session terminated":
            return ConnectionLost("the server has forgotten this session", may_have_run=False)
        case MCPError() as refused:
            return RequestRejected(refused.message)
        case ValidationError() as wrong:
            return RequestRejected(f"its answer does not follow the protocol: {_first_line(wrong)}")
        case httpx2.HTTPError() | OSError() | anyio.ClosedResourceError() | anyio.BrokenResourceError() as broken:
            return ConnectionLost(str(broken) or type(broken).__name__)
        case other:
            return RequestRejected(str(other) or type(other).__name__)


def _is_closed(error: BaseException) -> bool:
    return isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED


def _leaf(error: BaseException) -> BaseException:
    """The first error inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _first_line(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
