"""Through a proxy, as companies have them."""

from __future__ import annotations

import asyncio
import base64
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, sse
from wolo.errors import BadAnswer, ProviderError
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.transport import HttpCall

HOST = "model.example.com"
"""Leads to the scripted provider, for the proxy only: a proxy looks up names itself."""


class Proxy:
    """Tunnels and forwards to one place, to those who bring the name and password."""

    def __init__(self, target_port: int, credentials: str = "") -> None:
        self.target_port = target_port
        self.expected = f"Basic {base64.b64encode(credentials.encode()).decode()}" if credentials else ""
        self.asked: list[str] = []
        self.port = 0
        self.busy: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.busy.add(task)
        try:
            await self.lead(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.busy.discard(task)
            writer.close()

    async def lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head.partition("\r\n")[0])
        if self.expected and f"proxy-authorization: {self.expected}".lower() not in head.lower():
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
            return
        there, there_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        if head.startswith("CONNECT"):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            there_writer.write(head.encode())
        try:
            await asyncio.gather(pump(reader, there_writer), pump(there, writer))
        finally:
            there_writer.close()


class SocksProxy(Proxy):
    """Speaks SOCKS version 5 (RFC 1928), with name and password (RFC 1929) if it has any."""

    async def lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wants = 2 if self.expected else 0
        _, count = await reader.readexactly(2)
        offered = await reader.readexactly(count)
        writer.write(bytes([5, wants if wants in offered else 255]))
        if wants and wants in offered and not await self.knows(reader, writer):
            return
        _, _, _, kind = await reader.readexactly(4)
        size = (await reader.readexactly(1))[0] if kind == 3 else 4
        host = await reader.readexactly(size)
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append(f"{host.decode()}:{port}")
        there, there_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        writer.write(bytes([5, 0, 0, 1, 127, 0, 0, 1, 0, 80]))
        try:
            await asyncio.gather(pump(reader, there_writer), pump(there, writer))
        finally:
            there_writer.close()

    async def knows(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        _, size = await reader.readexactly(2)
        name = await reader.readexactly(size)
        password = await reader.readexactly((await reader.readexactly(1))[0])
        is_right = self.expected == f"Basic {base64.b64encode(name + b':' + password).decode()}"
        writer.write(bytes([1, 0 if is_right else 1]))
        await writer.drain()
        return is_right


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while received := await reader.read(65_536):
        writer.write(received)
        await writer.drain()
    writer.close()


def port_of(listener: asyncio.Server) -> int:
    return int(listener.sockets[0].getsockname()[1])


@asynccontextmanager
async def running(proxy: Proxy) -> AsyncIterator[Proxy]:
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = port_of(listener)
    try:
        yield proxy
    finally:
        listener.close()
        for task in list(proxy.busy):
            task.cancel()
        await asyncio.gather(*proxy.busy, return_exceptions=True)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        server.linted = False
        server.otherwise = sse("one")
        yield server


async def ask(url: str, environ: dict[str, str]) -> list[bytes]:
    transport = HttpTransport(environ)
    try:
        call = HttpCall(url, b"{}", {"authorization": "Bearer secret-key"})
        return [payload async for batch in transport.send(call) for payload in batch.payloads]
    finally:
        await transport.close()


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
async def test_the_proxy_of_the_environment_is_used(server: ProviderServer, variable: str) -> None:
    async with running(Proxy(server.port)) as proxy:
        assert await ask(f"http://{HOST}/v1", {variable: f"http://127.0.0.1:{proxy.port}"}) == [b"one", b"[DONE]"]
    assert proxy.asked == [f"POST http://{HOST}/v1 HTTP/1.1"]


async def test_name_and_password_of_the_proxy_are_sent(server: ProviderServer) -> None:
    async with running(Proxy(server.port, "me:s3cret")) as proxy:
        environ = {"http_proxy": f"http://me:s3cret@127.0.0.1:{proxy.port}"}
        assert await ask(f"http://{HOST}/v1", environ) == [b"one", b"[DONE]"]


@pytest.mark.parametrize("credentials", ["", "me:wrong@"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_wants_a_password_says_so(server: ProviderServer, scheme: str, credentials: str) -> None:
    async with running(Proxy(server.port, "me:s3cret")) as proxy:
        with pytest.raises(ProviderError) as failed:
            await ask(f"{scheme}://{HOST}/v1", {f"{scheme}_proxy": f"http://{credentials}127.0.0.1:{proxy.port}"})
    assert "proxy" in failed.value.message.lower()
    assert "HTTPS_PROXY" in failed.value.hint
    assert not failed.value.retryable
    assert "wrong" not in failed.value.message
    assert server.requests == []


async def test_https_goes_through_a_tunnel() -> None:
    """What is at the other end does not speak TLS, so the tunnel is all there is to see."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as target, running(Proxy(port_of(target))) as proxy:
        with pytest.raises(ProviderError, match=f"{HOST} through the proxy"):
            await ask(f"https://{HOST}/v1", {"https_proxy": f"http://127.0.0.1:{proxy.port}"})
    assert proxy.asked == [f"CONNECT {HOST}:443 HTTP/1.1"]


async def test_loopback_and_exempt_hosts_go_straight(server: ProviderServer) -> None:
    async with running(Proxy(server.port)) as proxy:
        environ = {"http_proxy": f"http://127.0.0.1:{proxy.port}", "no_proxy": HOST}
        assert await ask(f"{server.base_url}/x", environ) == [b"one", b"[DONE]"]
        with pytest.raises(ProviderError, match="cannot be resolved"):
            await ask(f"http://{HOST}/v1", environ)
    assert proxy.asked == []


async def test_a_proxy_that_is_not_there_is_named() -> None:
    with pytest.raises(ProviderError, match=r"through the proxy 127\.0\.0\.1:9"):
        await ask(f"http://{HOST}/v1", {"http_proxy": "http://me:s3cret@127.0.0.1:9"})


@pytest.mark.parametrize("credentials", ["", "me:s3cret"])
async def test_a_socks_proxy_leads_to_the_server(server: ProviderServer, credentials: str) -> None:
    async with running(SocksProxy(server.port, credentials)) as proxy:
        address = f"socks5h://{credentials and credentials + '@'}127.0.0.1:{proxy.port}"
        assert await ask(f"http://{HOST}/v1", {"all_proxy": address}) == [b"one", b"[DONE]"]
    assert proxy.asked == [f"{HOST}:80"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a socket httpcore2 leaves open
@pytest.mark.parametrize("credentials", ["", "me:wrong@"])
async def test_a_socks_proxy_that_refuses_is_named(server: ProviderServer, credentials: str) -> None:
    async with running(SocksProxy(server.port, "me:s3cret")) as proxy:
        with pytest.raises(ProviderError, match="proxy") as failed:
            await ask(f"http://{HOST}/v1", {"all_proxy": f"socks5://{credentials}127.0.0.1:{proxy.port}"})
    assert "wrong" not in failed.value.message
    assert server.requests == []
    del failed
    gc.collect()


async def test_a_page_of_the_proxy_is_no_answer(server: ProviderServer) -> None:
    server.otherwise = Reply(headers={"content-type": "text/html"}, pieces=(b"<html>please sign in</html>",))
    async with running(Proxy(server.port)) as proxy:
        with pytest.raises(BadAnswer, match="please sign in"):
            await ask(f"http://{HOST}/v1", {"http_proxy": f"http://127.0.0.1:{proxy.port}"})
