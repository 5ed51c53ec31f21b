"""Sockets at which agents ask for the limits that all workers of a run share.

On a node of a cluster it is a Unix socket, as the worker's own limits would have; each line goes to the coordinator over TCP,
behind a token.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import msgspec
from msgspec import Struct

from wolo.fleet.ledger.ledger_store import LedgerError
from wolo.fleet.ledger.shared_limits import SharedLimits

Exchange = Callable[[bytes], Awaitable[bytes]]
"""Takes a line, returns the line of the answer; empty: none. Without one the agent goes on."""


class _LimitRequest(Struct, rename={"what": "do"}):
    """A line of `wolo.models.retry`."""

    what: str
    key: str
    tokens: float | None = None
    requests: float | None = None
    more_tokens: int = 0
    wait_s: float = 0.0


@asynccontextmanager
async def serve_limits(limits: SharedLimits) -> AsyncIterator[str]:
    """The path of the socket, which goes into the environment of agents, as `LIMITER_VARIABLE`."""

    async def exchange(line: bytes) -> bytes:
        try:
            wait_s = await asyncio.to_thread(_do, limits, msgspec.json.decode(line, type=_LimitRequest))
        except (msgspec.MsgspecError, LedgerError):
            return b""  # the worker meets the error of a ledger itself
        return msgspec.json.encode({"wait_s": wait_s}) + b"\n"

    async with _serve(exchange) as path:
        yield path


def _do(limits: SharedLimits, request: _LimitRequest) -> float:
    named = {"requests": request.requests, "tokens": request.tokens}
    match request.what:
        case "acquire":
            return limits.acquire(request.key, int(request.tokens or 0))
        case "used_up":
            limits.sleep(request.key, request.wait_s)
        case "refused":
            limits.note_refusal(request.key, request.wait_s, **named)
        case "answered":
            limits.note_answer(request.key, more_tokens=request.more_tokens, **named)
    return 0.0


class LimitAddress(Struct, frozen=True):
    host: str
    port: int
    token: str


@asynccontextmanager
async def at_coordinator(path: str, host: str) -> AsyncIterator[LimitAddress]:
    """Listens at `host` and passes lines on to the limits at the socket `path`."""
    token = secrets.token_urlsafe(16)

    async def exchange(line: bytes) -> bytes:
        given, _, rest = line.partition(b" ")
        if not secrets.compare_digest(given, token.encode()):
            return b""
        return await _ask(await asyncio.open_unix_connection(path), rest)

    server = await asyncio.start_server(_answering(exchange), host, 0)
    async with server:
        yield LimitAddress(host, server.sockets[0].getsockname()[1], token)


@asynccontextmanager
async def at_node(address: LimitAddress | None) -> AsyncIterator[str]:
    """The path of a socket that leads to the coordinator; empty without an address."""
    if address is None:
        yield ""
        return

    async def exchange(line: bytes) -> bytes:
        return await _ask(await asyncio.open_connection(address.host, address.port), address.token.encode() + b" " + line)

    async with _serve(exchange) as path:
        yield path


@asynccontextmanager
async def _serve(exchange: Exchange) -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="wolo-") as folder:  # the path of a socket must be short
        path = f"{folder}/limiter"
        async with await asyncio.start_unix_server(_answering(exchange), path):
            yield path


def _answering(exchange: Exchange) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(await exchange(await reader.readline()))
            await writer.drain()
        except (OSError, ValueError):
            pass
        finally:
            writer.close()

    return answer


async def _ask(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], line: bytes) -> bytes:
    reader, writer = connection
    try:
        writer.write(line)
        await writer.drain()
        return await reader.readline()
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
