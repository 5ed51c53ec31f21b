"""Carries requests of agents on other machines to the shared limits of the run.

On the node it listens at a Unix socket, as the worker's own limits would; each line goes to the coordinator over TCP, behind
a token.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from msgspec import Struct

Exchange = Callable[[bytes], Awaitable[bytes]]
"""Sends a line, returns the line of the answer; empty: none."""


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
            pass  # without an answer the agent goes on
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
