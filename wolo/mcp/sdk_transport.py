"""Streams of messages for the MCP SDK: over HTTP and pipes, within limits, and repaired where the SDK would reject them."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self

import anyio
import httpx2
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from wolo import __version__
from wolo.mcp.connection import ADDRESSES, LONGEST_LINE_BYTES, PEER
from wolo.models.address import proxy_for
from wolo.models.http.tls import ssl_context
from wolo.workspace.processes.piped_program import PipedProgram

CONNECT_S = 20.0
INVALID = "its answer does not follow the protocol"
StreamItem = SessionMessage | Exception
Transport = AbstractAsyncContextManager[tuple[Any, Any]]
"""SDK streams for incoming and outgoing messages."""
_HEADER = "x-mcp-header"
RAW = "wolo.raw"
"""Key of `_meta` that carries the lists of a result past the SDK."""
_LISTS = ("tools", "prompts", "resources", "resourceTemplates", "content", "contents", "messages")


def plain_client(url: str, environ: Mapping[str, str], timeout_s: float) -> httpx2.AsyncClient:
    """For single requests to an authorization server."""

    async def on_message(response: httpx2.Response) -> None:
        await response.aread()

    client = make_http_client(url, {}, environ, on_message, auth=httpx2.Auth())
    client.timeout = httpx2.Timeout(timeout_s)
    return client


def make_http_client(
    url: str, headers: Mapping[str, str], environ: Mapping[str, str], on_message: Callable[[httpx2.Response], Any], **more: Any
) -> httpx2.AsyncClient:
    """Uses the same proxies and certificates as model requests."""
    proxy = proxy_for(url, environ)
    secure = url.startswith("https:") or proxy.startswith("https:") or more.get("auth") is not None
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

    def __init__(self, verify: ssl.SSLContext, proxy: str | None) -> None:
        super().__init__(verify=verify, proxy=proxy)
        self._is_direct = proxy is None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(_at_address(request))
        stream = response.extensions.get("network_stream")
        if self._is_direct and stream is not None and (peer := stream.get_extra_info("server_addr")):
            response.extensions[PEER] = peer[0]
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.DecodingError("it compresses what it sends, which it was asked not to")
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # always so for async transports
        has_events = response.headers.get("Content-Type", "").startswith("text/event-stream")
        response.stream = _Counted(response.stream, has_events=has_events)
        return response


def _at_address(request: httpx2.Request) -> httpx2.Request:
    """The request to the IP address that was checked; the server and its certificate still see the name."""
    if not (addresses := request.extensions.get(ADDRESSES)):
        return request
    extensions = {**request.extensions, "sni_hostname": request.url.host}
    url = request.url.copy_with(host=addresses[0])
    return httpx2.Request(request.method, url, headers=request.headers, stream=request.stream, extensions=extensions)


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
async def pipe_streams(child: PipedProgram) -> AsyncIterator[tuple[Any, Any]]:
    to_session, incoming = anyio.create_memory_object_stream[StreamItem](0)
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


async def _listen(child: PipedProgram, session: MemoryObjectSendStream[StreamItem]) -> None:
    """Skips lines that are not messages, such as banners."""
    async with session:
        with suppress(ValueError, OSError):  # an overlong line or a broken pipe counts as the end
            while line := await child.lines.readline():
                with suppress(ValidationError):
                    await session.send(SessionMessage(_message(line)))


def _message(line: bytes) -> types.JSONRPCMessage:
    """Raises ValidationError. Invalid responses are repaired or become errors, since dropping one leaves its caller waiting."""
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        if not line.startswith(b"{"):
            raise
        with suppress(ValueError, RecursionError):
            message = json.loads(line.decode(errors="replace"))
            legible = json.dumps(message, ensure_ascii=False).encode(errors="replace")
            with suppress(ValidationError):
                return types.jsonrpc_message_adapter.validate_json(legible, by_name=False)
            if "method" not in message and isinstance(message.get("id"), int | str):
                error = types.ErrorData(code=types.INVALID_REQUEST, message=INVALID)
                return types.JSONRPCError(jsonrpc="2.0", id=message["id"], error=error)
        raise


async def _talk(child: PipedProgram, session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with session:
        with suppress(OSError):  # the process stopped reading; the other pipe reports the end
            async for each in session:
                await child.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")


@asynccontextmanager
async def tidy(transport: Transport, ended: asyncio.Event) -> AsyncIterator[tuple[Any, Any]]:
    async with transport as (incoming, outgoing):
        yield _Tidied(incoming, ended), outgoing


class _Tidied:
    """Makes messages acceptable to the SDK, which rejects a whole result for one invalid item."""

    def __init__(self, stream: Any, ended: asyncio.Event) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> StreamItem:
        item: StreamItem = await self._stream.receive()
        if isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCResponse):
            item.message.result = _with_raw(item.message.result)
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamItem:
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


def _with_raw(result: dict[str, Any]) -> dict[str, Any]:
    raw = {key: result[key] for key in _LISTS if isinstance(result.get(key), list)}
    if "content" not in result and isinstance(result.get("task"), dict):  # of a call that runs as a task
        raw, result = {"task": result["task"], "content": []}, {**result, "content": []}
    if not raw:
        return result
    raw |= {key: result[key] for key in ("structuredContent", "isError") if key in result}
    if not isinstance(result.get("structuredContent"), dict):
        result = {key: value for key, value in result.items() if key != "structuredContent"}
    meta = result.get("_meta")
    fit = {key: [each for tool in raw[key] if (each := _fit(tool))] if key == "tools" else [] for key in raw if key in _LISTS}
    return {**result, **fit, "_meta": {**(meta if isinstance(meta, dict) else {}), RAW: raw}}


def raw_result(result: Any) -> Mapping[str, Any]:
    """The result as the server sent it."""
    found: Mapping[str, Any] | None = (result.meta or {}).get(RAW)
    return result.model_dump(mode="json", by_alias=True, exclude_none=True) if found is None else found


def _fit(tool: object) -> dict[str, Any] | None:
    """The fields the SDK needs; it rejects the list for one invalid schema."""
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    properties = tool["inputSchema"].get("properties") if isinstance(tool.get("inputSchema"), dict) else None
    if isinstance(properties, dict) and _HEADER in repr(properties):  # the SDK sends these arguments as headers, too
        return {"name": tool["name"], "inputSchema": {"type": "object", "properties": properties}}
    return {"name": tool["name"], "inputSchema": {"type": "object"}}
