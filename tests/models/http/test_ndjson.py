"""Streams of lines: the splitter by itself, and through the transport on real sockets."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Pause, Piece, Reply, error
from wolo.errors import BadAnswer, Unavailable
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.response_body import LineSplitter
from wolo.models.http.transport import Batch, HttpCall, HttpStatusError

LINES = [b'{"a":1}', '{"b":"字\u2028\u2029\x85é🙂"}'.encode(), b'{"done":true}']
BODY = b"".join(line + b"\n" for line in LINES)


def split(stream: bytes, size_bytes: int | None = None) -> list[bytes]:
    splitter = LineSplitter()
    size = size_bytes or max(1, len(stream))
    found = [each for at in range(0, len(stream), size) for each in splitter.feed(stream[at : at + size])]
    return found + splitter.end()


def test_lines_become_payloads_in_order() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    assert splitter.feed(b":2}\n") == [b'{"b":2}']
    assert splitter.end() == []


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (BODY, LINES),
        (BODY.replace(b"\n", b"\r\n"), LINES),
        (b"\n\r\n \n" + BODY.replace(b"\n", b"\n\n\t\r\n"), LINES),
        (BODY[:-1], LINES),
        (b"\xef\xbb\xbf" + BODY, LINES),
        (b"no json\n{}\n", [b"no json", b"{}"]),
        (b'{"done":true}', [b'{"done":true}']),
        (b'{\n  "done": true\n}\n', [b'{\n  "done": true\n}']),
        (b'\xef\xbb\xbf{\r\n  "a": {\r\n  }\r\n}', [b'{\r\n  "a": {\r\n  }\r\n}']),
        (b'{"a":1}\n{\n', [b'{"a":1}', b"{"]),
        (b"", []),
        (b"\n\n", []),
    ],
)
def test_every_rule_holds_for_every_cut(stream: bytes, expected: list[bytes]) -> None:
    for size_bytes in (None, 1, 2, 3, 5):
        assert split(stream, size_bytes) == expected


@given(
    st.lists(st.text(st.characters(codec="utf-8")), max_size=5),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    st.integers(1, 40),
)
def test_any_texts_in_any_cuts_come_whole(texts: list[str], line_end: bytes, size_bytes: int) -> None:
    lines = [json.dumps({"text": text}, ensure_ascii=False).encode() for text in texts]
    assert split(b"".join(line + line_end for line in lines), size_bytes) == lines


@pytest.mark.parametrize("flood", [b"x" * 64, b'{"a":"' + b"x" * 64, b"{\n" + b' "x",\n' * 20])
def test_endless_line_stops_at_the_limit(flood: bytes) -> None:
    splitter = LineSplitter(largest_line_bytes=60)
    with pytest.raises(BadAnswer, match="one line of more than"):
        [splitter.feed(flood[at : at + 7]) for at in range(0, len(flood), 7)]


def test_many_small_lines_are_no_flood() -> None:
    splitter = LineSplitter(largest_line_bytes=60)
    for _ in range(1000):
        assert splitter.feed(b'"}\n{"a":1}\n{"a":"')[-1] == b'{"a":1}'


# Through the transport


@pytest.fixture
def server(provider: ProviderServer) -> ProviderServer:
    """The bodies here are not requests to a model."""
    provider.linted = False
    return provider


def call_to(server: ProviderServer, *, first_byte_s: float = 120, idle_s: float = 300) -> HttpCall:
    return HttpCall(f"{server.origin}/api/chat", b"{}", {}, first_byte_s, idle_s, framing="lines")


def lines(*pieces: Piece, kind: str = "application/x-ndjson") -> Reply:
    return Reply(headers={"content-type": kind}, pieces=pieces)


async def received(call: HttpCall) -> list[bytes]:
    transport = HttpTransport({})
    try:
        batches: list[Batch] = [batch async for batch in transport.send(call)]
    finally:
        await transport.close()
    assert all(batch.whole is None for batch in batches)
    return [payload for batch in batches for payload in batch.payloads]


@pytest.mark.parametrize("framing", ["chunked", "close", "length"])
@pytest.mark.parametrize("size_bytes", [1, 7, 100_000])
async def test_framing_and_cuts_do_not_matter(server: ProviderServer, framing: str, size_bytes: int) -> None:
    server.script(lines(BODY).split(size_bytes).framed(framing))  # type: ignore[arg-type]  # one of the framings
    assert await received(call_to(server)) == LINES
    assert server.requests[0].headers["accept"].startswith("application/x-ndjson")


@pytest.mark.parametrize(
    "kind", ["application/x-ndjson", "application/json; charset=utf-8", "text/plain", "text/event-stream", ""]
)
async def test_lines_are_known_by_their_look(server: ProviderServer, kind: str) -> None:
    server.script(lines(b"\n\xef\xbb\xbf", BODY, kind=kind))
    assert await received(call_to(server)) == LINES


@pytest.mark.parametrize("body", [b'{"done":true}', b'{\n  "done":\n    true\n}\n'])
async def test_one_document_is_one_payload(server: ProviderServer, body: bytes) -> None:
    server.script(lines(body, kind="application/json").split(2))
    (payload,) = await received(call_to(server))
    assert json.loads(payload) == {"done": True}


async def test_events_from_a_gateway_are_read_as_well(server: ProviderServer) -> None:
    server.script(lines(b'data: {"a":1}\n\n', kind="text/event-stream"))
    assert await received(call_to(server)) == [b'{"a":1}']


async def test_line_without_json_is_handed_on(server: ProviderServer) -> None:
    server.script(lines(b"so it begins\n", BODY))
    assert await received(call_to(server)) == [b"so it begins", *LINES]


async def test_line_arrives_before_the_next_is_sent(server: ProviderServer) -> None:
    hold = Hold()
    server.script(lines(LINES[0] + b"\n", hold, LINES[2] + b"\n"))
    transport = HttpTransport({})
    batches = transport.send(call_to(server))
    first = await asyncio.wait_for(anext(batches), 60)
    assert first.payloads == (LINES[0],)
    hold.release()
    assert [batch.payloads async for batch in batches] == [(LINES[2],)]
    await transport.close()


async def test_leaving_early_hangs_up_at_once(server: ProviderServer) -> None:
    server.script(lines(LINES[0] + b"\n", Hold()))
    transport = HttpTransport({})
    batches = transport.send(call_to(server))
    await anext(batches)
    await batches.aclose()
    assert await asyncio.to_thread(server.requests[0].client_gone.wait, 5)
    await transport.close()


async def test_a_connection_serves_again_after_its_last_line(server: ProviderServer) -> None:
    server.script(lines(BODY), lines(BODY))
    transport = HttpTransport({})
    for _ in range(2):
        assert len([batch async for batch in transport.send(call_to(server))])
    await transport.close()
    assert [asked.connection for asked in server.requests] == [1, 1]


async def test_silence_within_the_stream_ends_it(server: ProviderServer) -> None:
    server.script(lines(LINES[0] + b"\n", Hold()))
    with pytest.raises(Unavailable):
        await received(call_to(server, idle_s=0.2))


async def test_blank_lines_keep_no_dead_stream_alive(server: ProviderServer) -> None:
    server.script(lines(LINES[0] + b"\n", *(each for _ in range(40) for each in (Pause(0.05), b"\n"))))
    with pytest.raises(Unavailable, match="kept the connection alive"):
        await received(call_to(server, idle_s=0.15))


@pytest.mark.parametrize("ending", ["cut", "reset"])
async def test_broken_connection_is_reported_after_earlier_lines(server: ProviderServer, ending: str) -> None:
    server.script(lines(LINES[0] + b"\n" + LINES[1][:4]).ends(ending))  # type: ignore[arg-type]  # one of the endings
    transport = HttpTransport({})
    batches = transport.send(call_to(server))
    assert (await anext(batches)).payloads == (LINES[0],)
    with pytest.raises(Unavailable):
        await anext(batches)
    await transport.close()


async def test_a_page_and_a_refusal_are_no_lines(server: ProviderServer) -> None:
    server.script(lines(b"<html>Sign in</html>", kind="text/html"), error(404, {"error": 'model "m" not found'}))
    with pytest.raises(BadAnswer, match="Sign in"):
        await received(call_to(server))
    with pytest.raises(HttpStatusError):
        await received(call_to(server))


async def test_tap_gets_the_bytes_as_received(server: ProviderServer) -> None:
    seen = bytearray()
    server.script(lines(BODY))
    call = call_to(server)
    await received(HttpCall(call.url, call.body, framing="lines", tap=seen.extend))
    assert bytes(seen).partition(b"\r\n\r\n")[2] == BODY
