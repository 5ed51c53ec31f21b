"""Direct connections: how requests are written, responses parsed and connections kept."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Pause, Reply, error, raw, sse, whole
from wolo.errors import ProviderError, Unavailable
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.transport import Batch, HttpCall, HttpStatusError

EVENTS = [b"one", b"[DONE]"]
BODY = b"data: one\n\ndata: [DONE]\n\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
SIZED = HEAD + b"content-length: %d\r\n\r\n" % len(BODY)
KEPT, CLOSED = {1}, {1, 2}


@pytest.fixture
def server(provider: ProviderServer) -> ProviderServer:
    """The bodies here are not requests to a model."""
    provider.linted = False
    return provider


def call_to(server: ProviderServer, body: bytes = b"{}", *, first_byte_s: float = 120) -> HttpCall:
    return HttpCall(f"{server.base_url}/x", body, {"authorization": "Bearer secret"}, first_byte_s)


@asynccontextmanager
async def transport_of() -> AsyncIterator[HttpTransport]:
    transport = HttpTransport({})
    try:
        yield transport
    finally:
        await transport.close()


async def payloads(transport: HttpTransport, call: HttpCall) -> list[bytes]:
    return [payload async for batch in transport.send(call) for payload in batch.payloads]


async def ask(call: HttpCall) -> list[bytes]:
    async with transport_of() as transport:
        return await payloads(transport, call)


async def ask_twice(server: ProviderServer, reply: Reply) -> set[int]:
    """Plays the reply and a usual one; returns the numbers of the connections."""
    server.script(reply, sse("one"))
    async with transport_of() as transport:
        assert await payloads(transport, call_to(server)) == EVENTS
        assert await payloads(transport, call_to(server)) == EVENTS
    return {asked.connection for asked in server.requests}


async def test_kernel_holds_events_until_next_read(server: ProviderServer) -> None:
    first, rest, received = Hold(), Hold(), []

    def on_call(frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ == "recv" and called.__self__.family == socket.AF_INET:
            received.append(called)

    events = [f"event {number}" for number in range(200)]
    server.script(sse("one", first, *events, rest))
    async with transport_of() as transport:
        batches = transport.send(replace(call_to(server), on_demand=True))
        assert (await anext(batches)).payloads == (b"one",)
        sys.setprofile(on_call)
        try:
            first.release()
            await asyncio.to_thread(rest.wait_until_reached)
        finally:
            sys.setprofile(None)
        assert not received
        rest.release()
        assert [payload.decode() async for batch in batches for payload in batch.payloads] == [*events, "[DONE]"]


# The request


@pytest.mark.parametrize("size_bytes", [2, 40_000])
async def test_head_and_body_leave_in_one_send(server: ProviderServer, size_bytes: int) -> None:
    server.script(sse("one"))
    sends = []

    def on_call(frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ in ("send", "sendall", "sendmsg") and isinstance(called.__self__, socket.socket):
            sends.append(called.__self__.getpeername()[1])

    call = call_to(server, b"x" * size_bytes)
    sys.setprofile(on_call)
    try:
        assert await ask(call) == EVENTS
    finally:
        sys.setprofile(None)
    assert sends.count(server.port) == 1
    assert server.requests[0].body == call.body


async def test_a_body_larger_than_the_socket_takes_arrives(server: ProviderServer) -> None:
    server.script(sse("one"))
    body = b"x" * 20_000_000
    assert await ask(call_to(server, body)) == EVENTS
    assert server.requests[0].body == body


async def test_paths_and_queries_are_encoded_once(server: ProviderServer) -> None:
    server.script(sse("one"))
    await ask(HttpCall(f"{server.base_url}/gäste/a b%20c:x?alt=sse&q=ü".replace(" ", "%20"), b"{}"))
    assert server.requests[0].path == "/v1/g%C3%A4ste/a%20b%20c:x?alt=sse&q=%C3%BC"


async def test_the_host_is_sent_without_credentials(server: ProviderServer) -> None:
    server.script(sse("one"))
    await ask(HttpCall(f"http://me:secret@localhost:{server.port}/v1/x", b"{}"))
    assert server.requests[0].headers["host"] == f"localhost:{server.port}"


@pytest.mark.parametrize("url", ["http://a b/", "http://x:99999/", "http://x\n/", "ftp://x/", "http:///x"])
async def test_unusable_url_is_never_connected(url: str) -> None:
    with pytest.raises(ProviderError, match="could not be built"):
        await ask(HttpCall(url, b"{}"))


@pytest.mark.parametrize("name", ["content-length", "transfer-encoding", "host", "a b", "a\r\nb", ""])
async def test_headers_that_frame_the_request_are_refused(server: ProviderServer, name: str) -> None:
    with pytest.raises(ProviderError, match="could not be built"):
        await ask(HttpCall(server.base_url, b"{}", {name: "1"}))
    assert server.requests == []


# The response


@pytest.mark.parametrize(
    ("pieces", "connections"),
    [
        ((SIZED + BODY,), KEPT),
        ((b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", SIZED + BODY), KEPT),
        ((HEAD + b"transfer-encoding: chunked\r\ntrailer: x\r\n\r\n19;ext=1\r\n" + BODY + b"\r\n0\r\nx: y\r\n\r\n",), KEPT),
        ((HEAD + b"connection: close\r\ncontent-length: 25\r\n\r\n" + BODY,), CLOSED),
        ((HEAD.replace(b"1.1", b"1.0") + b"content-length: 25\r\n\r\n" + BODY,), CLOSED),
        ((HEAD + b"content-length: 7\r\ntransfer-encoding: chunked\r\n\r\n19\r\n" + BODY + b"\r\n0\r\n\r\n",), CLOSED),
        ((SIZED + BODY + SIZED + BODY,), CLOSED),
        ((SIZED + BODY + b"surplus",), CLOSED),
        ((SIZED.replace(b"\r\n", b"\n") + BODY,), KEPT),
        ((HEAD + b"folded: a\r\n  b\r\ncontent-length: 25\r\n\r\n" + BODY,), KEPT),
        ((HEAD + b"transfer-encoding: chunked\r\n\r\n19  \r\n" + BODY + b"\r\n0  \r\n\r\n",), KEPT),
    ],
    ids=[
        *("sized", "interim", "trailers", "close", "1.0", "both lengths", "second response", "surplus"),
        *("bare line feeds", "folded header", "spaces after sizes"),
    ],
)
async def test_connection_is_kept_only_after_proper_end(
    server: ProviderServer, pieces: tuple[bytes, ...], connections: set[int]
) -> None:
    assert len(BODY) == 25
    assert await ask_twice(server, raw(*pieces, ending="clean")) == connections


async def test_a_response_may_end_with_its_connection(server: ProviderServer) -> None:
    assert await ask_twice(server, raw(HEAD + b"\r\n" + BODY)) == CLOSED


@pytest.mark.parametrize("framing", [b"content-length: 30\r\n\r\n" + BODY, b"transfer-encoding: chunked\r\n\r\n19\r\n" + BODY])
async def test_a_body_that_is_cut_is_no_end(server: ProviderServer, framing: bytes) -> None:
    server.script(raw(HEAD + framing.replace(b"data: [DONE]", b"data: {more}")))
    with pytest.raises(Unavailable, match="lost in the middle"):
        await ask(call_to(server))


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"220 mail.example.com ESMTP\r\n", "220 mail"),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", "header"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000, "too long"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"x: y\r\n" * 100_000, "too long"),
    ],
    ids=["banner", "switch", "negative", "no colon", "interim flood", "trailer flood"],
)
async def test_http_violation_is_named(server: ProviderServer, sent: bytes, said: str) -> None:
    server.script(raw(sent, ending="stall"))
    with pytest.raises(Unavailable, match=f"sent invalid HTTP.*{said}"):
        await ask(call_to(server))


async def test_dripping_head_ends_at_first_byte_limit(server: ProviderServer) -> None:
    drips = [piece for byte in SIZED for piece in (bytes([byte]), Pause(0.05))]
    server.script(raw(*drips, BODY))
    with pytest.raises(Unavailable, match="did not start to respond"):
        await ask(call_to(server, first_byte_s=0.3))


async def test_interim_responses_prolong_the_wait(server: ProviderServer) -> None:
    interim = [piece for _ in range(6) for piece in (b"HTTP/1.1 102 Processing\r\n\r\n", Pause(0.2))]
    server.script(raw(*interim, SIZED + BODY, ending="clean"))
    assert await ask(call_to(server, first_byte_s=0.6)) == EVENTS


async def test_endless_interim_responses_end_the_wait(server: ProviderServer) -> None:
    interim = [piece for _ in range(1000) for piece in (b"HTTP/1.1 103 Early Hints\r\n\r\n", Pause(0.02))]
    server.script(raw(*interim, SIZED + BODY))
    with pytest.raises(Unavailable, match="did not start to respond"):
        await ask(call_to(server, first_byte_s=0.1))


@pytest.mark.parametrize("begin", [b"", b": queued\n\n"])
async def test_silence_before_the_first_event_has_its_limit(server: ProviderServer, begin: bytes) -> None:
    server.script(raw(SIZED + begin, ending="stall"))
    with pytest.raises(Unavailable, match=r"did not start to respond: nothing came for 0\.3 s"):
        await ask(call_to(server, first_byte_s=0.3))


async def test_silence_after_the_first_event_has_another_limit(server: ProviderServer) -> None:
    server.script(raw(SIZED + b"data: one\n\n", Pause(0.5), b"data: [DONE]\n\n", ending="clean"))
    assert await ask(call_to(server, first_byte_s=0.3)) == EVENTS


async def test_pieces_received_together_are_one_batch(server: ProviderServer) -> None:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in (b"data: %d\n\n" % number for number in range(500)))
    server.script(raw(HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n", ending="clean"))
    async with transport_of() as transport:
        batches: list[Batch] = [batch async for batch in transport.send(call_to(server))]
    assert [int(payload) for batch in batches for payload in batch.payloads] == list(range(500))
    assert len(batches) <= 3


async def test_unread_server_stops_sending() -> None:
    """The consumer of a stream stops; the server's bytes stay in the network."""
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b"\r\n" + b"data: one\n\n")
        event = b"data: " + b"x" * 65_000 + b"\n\n"
        with contextlib.suppress(OSError):
            while True:
                writer.write(event)
                await writer.drain()
                sent += len(event)

    async with serving(flood) as port, transport_of() as transport:
        batches = transport.send(HttpCall(f"http://127.0.0.1:{port}/", b"{}"))
        await anext(batches)
        before = -1
        while before < sent:
            before = sent
            for _ in range(2_000):
                await asyncio.sleep(0)
        assert sent < 32_000_000
        await batches.aclose()


async def test_refusal_before_reading_the_request_is_a_refusal() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\n\r\nlong")
        await writer.drain()
        await reader.read()

    async with serving(refuse) as port:
        with pytest.raises(HttpStatusError) as refused:
            await ask(HttpCall(f"http://127.0.0.1:{port}/", b"x" * 50_000_000))
    assert (refused.value.status, refused.value.body) == (413, b"long")


# Connections


async def test_connection_with_unasked_data_is_not_reused(server: ProviderServer) -> None:
    server.script(raw(SIZED + BODY, Pause(0.05), SIZED + BODY, ending="clean"), sse("one"))
    async with transport_of() as transport:
        assert await payloads(transport, call_to(server)) == EVENTS
        await asyncio.to_thread(server.requests[0].client_gone.wait, 5)
        assert await payloads(transport, call_to(server)) == EVENTS
    assert [asked.connection for asked in server.requests] == [1, 2]


async def test_partly_answered_request_is_not_sent_again(server: ProviderServer) -> None:
    server.script(sse("one"), raw(b"HTTP/1.1 2"), sse("one"))
    async with transport_of() as transport:
        assert await payloads(transport, call_to(server)) == EVENTS
        with pytest.raises(Unavailable):
            await payloads(transport, call_to(server))
    assert len(server.requests) == 2


async def test_document_leaves_the_connection_reusable(server: ProviderServer) -> None:
    server.script(whole({"a": 1}), error(429, {"error": {}}), sse("one"))
    async with transport_of() as transport:
        assert [batch async for batch in transport.send(call_to(server))]
        with pytest.raises(HttpStatusError):
            await payloads(transport, call_to(server))
        assert await payloads(transport, call_to(server)) == EVENTS
    assert {asked.connection for asked in server.requests} == {1}


async def test_requests_at_once_have_a_connection_each(server: ProviderServer) -> None:
    server.script(*(sse("one", Pause(0.1)) for _ in range(3)))
    async with transport_of() as transport:
        calls = (payloads(transport, call_to(server)) for _ in range(3))
        assert await asyncio.gather(*calls) == [EVENTS] * 3
    assert len({asked.connection for asked in server.requests}) == 3


def test_a_connection_stays_with_its_event_loop(server: ProviderServer) -> None:
    server.script(sse("one"), sse("one"))
    transport = HttpTransport({})
    with asyncio.Runner() as first, asyncio.Runner() as second:
        assert first.run(payloads(transport, call_to(server))) == EVENTS
        assert second.run(payloads(transport, call_to(server))) == EVENTS
        second.run(transport.close())
        first.run(asyncio.sleep(0))
    assert [asked.connection for asked in server.requests] == [1, 2]


async def test_failing_name_with_several_addresses_reads_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(host: str, port: int, *_rest: Any, **_more: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("127.0.0.1", "127.0.0.2")]

    monkeypatch.setattr(socket, "getaddrinfo", find)
    with pytest.raises(Unavailable, match=r"Nothing listens at localhost:9: the connection was refused"):
        await ask(HttpCall("http://localhost:9/", b"{}"))


@asynccontextmanager
async def serving(serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[int]:
    tasks: set[asyncio.Task[Any]] = set()

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.closing(writer):
            await serve(reader, writer)

    listener = await asyncio.start_server(run, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("steps", range(16))
async def test_cancelling_at_any_step_leaves_no_socket_open(server: ProviderServer, steps: int) -> None:
    with warnings.catch_warnings(action="ignore"):
        gc.collect()  # what other tests left open
    server.script(sse("one"))
    task = asyncio.create_task(ask(call_to(server)))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    del task
    gc.collect()  # an open socket is a ResourceWarning, which fails the test
