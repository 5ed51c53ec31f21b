"""A real web site on loopback, and the way to let the fetch tool reach it: a network of the test's own."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from wolo.tools.fetch import Fetch
from wolo.tools.web.address import Hosts, is_public

Answer = bytes | Callable[[asyncio.StreamWriter], object]


def answer(body: bytes | str = b"", *, status: str = "200 OK", kind: str = "text/html; charset=utf-8", **headers: str) -> bytes:
    body = body.encode() if isinstance(body, str) else body
    named = {"content-type": kind, "content-length": str(len(body)), **{k.replace("_", "-"): v for k, v in headers.items()}}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named.items() if value), "connection: close"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def moved(to: str, status: str = "302 Found") -> bytes:
    return answer(status=status, location=to)


@dataclass
class Site:
    pages: dict[str, Answer] = field(default_factory=dict)
    """By path."""
    port: int = 0
    heads: list[str] = field(default_factory=list)
    """Of the requests, as they came."""
    looked_up: list[str] = field(default_factory=list)
    busy: set[asyncio.Task[None]] = field(default_factory=set)
    names: dict[str, Sequence[str]] = field(default_factory=dict)
    """What names lead to; without a word here to this site."""

    def url(self, path: str = "/", host: str = "site.example", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    async def look_up(self, host: str, port: int) -> Sequence[str]:
        self.looked_up.append(host)
        if host.startswith("unknown."):
            raise socket.gaierror(socket.EAI_NONAME, "not known")
        return self.names.get(host, ("127.0.0.1",))

    def tool(self, **environ: str) -> Fetch:
        """It may reach this one private address; everything else is as it always is."""
        return Fetch(Hosts(self.look_up, lambda address: address == "127.0.0.1" or is_public(address)), environ)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.busy.add(task)
        try:
            await self.answer(reader, writer)
        except asyncio.CancelledError:
            pass  # the site closes
        finally:
            self.busy.discard(task)
            writer.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            page = self.pages.get(head.split()[1], answer("Not here.", status="404 Not Found", kind="text/plain"))
            if isinstance(page, bytes):
                writer.write(page)
            else:
                await page(writer)  # type: ignore[misc]  # a coroutine function
            await writer.drain()


@asynccontextmanager
async def site(certificates: Path | None = None) -> AsyncIterator[Site]:
    context = None
    if certificates:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    here = Site()
    listener = await asyncio.start_server(here.serve, "127.0.0.1", 0, ssl=context)
    here.port = listener.sockets[0].getsockname()[1]
    try:
        yield here
    finally:
        listener.close()
        for task in list(here.busy):
            task.cancel()
        await asyncio.gather(*here.busy, return_exceptions=True)
