"""Connections that are begun ahead of the first request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import sse
from tests.models.http.test_direct_connection import BODY, EVENTS, SIZED, call_to, payloads, transport_of
from wolo.errors import Unavailable
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.transport import HttpCall


@pytest.fixture
def server(provider: ProviderServer) -> ProviderServer:
    provider.linted = False
    return provider


class Listener:
    """Counts connections and requests."""

    def __init__(self) -> None:
        self.num_connections = self.num_requests = 0
        self.closed = asyncio.Event()
        """The client closed a connection."""
        self.accepted = asyncio.Event()
        self.url = ""

    async def read(self, reader: asyncio.StreamReader) -> bool:
        """False: the client closed the connection without a request."""
        try:
            await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed.set()
            return False
        self.num_requests += 1
        return True


@asynccontextmanager
async def listening(*, closes_first: bool = False, answers: bool = True) -> AsyncIterator[Listener]:
    listener = Listener()
    handlers: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listener.num_connections += 1
        handlers.append(asyncio.current_task())
        is_first = listener.num_connections == 1
        listener.accepted.set()
        if not (closes_first and is_first) and await listener.read(reader) and answers:
            writer.write(SIZED + BODY)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as opened:
        listener.url = f"http://127.0.0.1:{opened.sockets[0].getsockname()[1]}/v1"
        yield listener
        await asyncio.sleep(0)
        await asyncio.gather(*filter(None, handlers))


async def test_request_uses_the_connection_that_was_begun(server: ProviderServer) -> None:
    server.script(sse("one"), sse("one"))
    async with transport_of() as transport:
        transport.connect(server.base_url)
        transport.connect(server.base_url)
        assert await payloads(transport, call_to(server)) == EVENTS
        transport.connect(server.base_url)
        assert await payloads(transport, call_to(server)) == EVENTS
    assert server.num_connections == 1


async def test_error_of_connecting_is_that_of_the_request() -> None:
    async with listening() as listener:
        url = listener.url
    async with transport_of() as transport:
        transport.connect(url)
        with pytest.raises(Unavailable, match="Nothing listens at"):
            await payloads(transport, HttpCall(url, b"{}"))


async def test_request_to_another_server_connects_there(server: ProviderServer) -> None:
    server.script(sse("one"))
    async with listening() as listener, transport_of() as transport:
        transport.connect(listener.url)
        assert await payloads(transport, call_to(server)) == EVENTS
        assert listener.num_requests == 0


async def test_unused_connection_is_closed_with_its_transport() -> None:
    async with listening() as listener:
        async with transport_of() as transport:
            transport.connect(listener.url)
            await listener.accepted.wait()
        async with asyncio.timeout(30):
            await listener.closed.wait()
    assert listener.num_requests == 0


async def test_transport_closes_while_it_connects() -> None:
    async with listening() as listener:
        async with transport_of() as transport:
            transport.connect(listener.url)
            (connecting,) = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait([connecting], timeout=30)
        assert connecting.cancelled()


async def test_connection_closed_before_the_request_is_replaced() -> None:
    async with listening(closes_first=True) as listener, transport_of() as transport:
        transport.connect(listener.url)
        await listener.accepted.wait()
        for _ in range(20):  # until the loop knows that it is closed
            await asyncio.sleep(0)
        assert await payloads(transport, HttpCall(listener.url, b"")) == EVENTS
        assert (listener.num_connections, listener.num_requests) == (2, 1)


async def test_request_on_an_early_connection_is_sent_once() -> None:
    async with listening(answers=False) as listener, transport_of() as transport:
        transport.connect(listener.url)
        with pytest.raises(Unavailable):
            await payloads(transport, HttpCall(listener.url, b""))
        assert listener.num_requests == 1


async def test_call_alone_has_a_connection_of_its_own(server: ProviderServer) -> None:
    server.script(*(sse("one") for _ in range(4)))
    calls = (call_to(server), replace(call_to(server), is_alone=True)) * 2
    async with transport_of() as transport:
        transport.connect(server.base_url)
        for call in calls:
            assert await payloads(transport, call) == EVENTS
    first, second, third, fourth = (asked.connection for asked in server.requests)
    assert first == third
    assert len({first, second, fourth}) == server.num_connections == 3


async def test_nothing_connects_early_behind_a_proxy() -> None:
    transport = HttpTransport({"http_proxy": "http://127.0.0.1:9"})
    transport.connect("http://model.example.com/v1")
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await transport.close()
