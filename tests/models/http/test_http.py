"""The HTTP transport against real sockets."""

from __future__ import annotations

import asyncio
import gzip
import resource
import zlib
from collections.abc import Callable

import pytest

from tests.clock import processor_time_below
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Pause, Reply, delta, error, finish, raw, sse, text, whole
from wolo.errors import BadAnswer, ProviderError, Unavailable, Unreachable
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.transport import Batch, HttpCall, HttpStatusError

EVENTS = [b"one", b"two", b"three", b"[DONE]"]


@pytest.fixture
def server(provider: ProviderServer) -> ProviderServer:
    """The bodies here are not requests to a model."""
    provider.linted = False
    return provider


def call_to(server: ProviderServer, *, first_byte_s: float = 120, idle_s: float = 300) -> HttpCall:
    headers = {"authorization": "Bearer secret-key"}
    return HttpCall(f"{server.base_url}/chat/completions", b"{}", headers, first_byte_s, idle_s)


async def received(call: HttpCall, transport: HttpTransport | None = None) -> list[Batch]:
    own = transport or HttpTransport({})
    try:
        return [batch async for batch in own.send(call)]
    finally:
        if transport is None:
            await own.close()


def payloads(batches: list[Batch]) -> list[bytes]:
    return [payload for batch in batches for payload in batch.payloads]


def events(*more: bytes | Pause | Hold, done: bool = True) -> Reply:
    return sse("one", "two", "three", *more, done=done)


# Answers


async def test_the_events_of_a_stream_arrive(server: ProviderServer) -> None:
    server.script(events())
    assert payloads(await received(call_to(server))) == EVENTS
    asked = server.requests[0]
    assert asked.body == b"{}"
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["authorization"] == "Bearer secret-key"
    assert "cookie" not in asked.headers


@pytest.mark.parametrize("framing", ["chunked", "close", "length"])
@pytest.mark.parametrize("size_bytes", [1, 7, 100_000])
async def test_framing_and_cuts_do_not_matter(server: ProviderServer, framing: str, size_bytes: int) -> None:
    server.script(events().split(size_bytes).framed(framing))  # type: ignore[arg-type]  # one of the framings
    assert payloads(await received(call_to(server))) == EVENTS


@pytest.mark.parametrize(
    "kind",
    [
        "text/event-stream",
        "text/event-stream;charset=UTF-8",
        "TEXT/EVENT-STREAM",
        "text/plain",
        "application/json",
        "text/html",
        "",
    ],
)
async def test_stream_is_known_by_content_not_only_label(server: ProviderServer, kind: str) -> None:
    server.script(Reply(headers={"content-type": kind}, pieces=events().pieces))
    assert payloads(await received(call_to(server))) == EVENTS


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/plain", ""])
async def test_one_json_document_is_an_answer_too(server: ProviderServer, kind: str) -> None:
    server.script(whole({"choices": []}, {"content-type": kind}))
    (batch,) = await received(call_to(server))
    assert batch.whole == b'{"choices": []}'


async def test_blank_lines_delaying_a_document_are_skipped(server: ProviderServer) -> None:
    server.script(Reply(headers={"content-type": "application/json"}, pieces=(b"\n  \n", Pause(0.05), b"\n", b' {"a":1}')))
    (batch,) = await received(call_to(server))
    assert batch.whole == b'{"a":1}'


def gzip_members(body: bytes) -> bytes:
    return gzip.compress(body[:20]) + gzip.compress(body[20:]) + bytes(8)


def raw_deflate(body: bytes) -> bytes:
    return zlib.compress(body)[2:-4]


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("gzip", gzip_members),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
    ],
)
async def test_unrequested_compression_is_read(server: ProviderServer, encoding: str, pack: Callable[[bytes], bytes]) -> None:
    headers = {"content-type": "text/event-stream", "content-encoding": encoding}
    server.script(Reply(headers=headers, pieces=(pack(events().body),)).split(3))
    assert payloads(await received(call_to(server))) == EVENTS
    assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_tap_gets_the_bytes_as_received(server: ProviderServer) -> None:
    seen = bytearray()
    server.script(events())
    call = call_to(server)
    await received(HttpCall(call.url, call.body, call.headers, tap=seen.extend))
    head, _, body = bytes(seen).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP 200\r\n")
    assert body == events().body


# What is no answer


@pytest.mark.parametrize("kind", ["text/html", "text/event-stream", "application/json"])
async def test_page_is_named_with_address_and_words(server: ProviderServer, kind: str) -> None:
    page = "<!doctype html><html><head><title>Sign in</title><script>x=1</script></head><body><b>Company</b> portal</body>"
    server.script(Reply(headers={"content-type": kind}, pieces=(page.encode(),), framing="length"))
    with pytest.raises(BadAnswer) as failed:
        await received(call_to(server))
    assert f"{server.base_url}/chat/completions" in failed.value.message
    assert kind in failed.value.message
    assert "Sign in" in failed.value.message
    assert "<b>" not in failed.value.message
    assert "--api names another" in failed.value.hint
    assert not failed.value.retryable


async def test_plain_words_are_no_answer_either(server: ProviderServer) -> None:
    server.script(Reply(headers={"content-type": "text/plain"}, pieces=(b"It works!\x1b[31m",)))
    with pytest.raises(BadAnswer, match="It works!") as failed:
        await received(call_to(server))
    assert "\x1b" not in failed.value.message


@pytest.mark.parametrize(
    "reply",
    [
        Reply(headers={"content-type": "text/event-stream"}),
        Reply(headers={"content-type": "application/json"}, framing="length"),
        Reply(204, framing="close"),
        Reply(headers={"content-type": "text/event-stream"}, pieces=(b"\r\n \n",), framing="close"),
    ],
)
async def test_an_empty_answer_may_be_asked_for_again(server: ProviderServer, reply: Reply) -> None:
    server.script(reply)
    with pytest.raises(Unavailable, match="empty") as failed:
        await received(call_to(server))
    assert failed.value.retryable


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 502, 503, 529])
async def test_a_refusal_is_handed_up_whole(server: ProviderServer, status: int) -> None:
    server.script(error(status, {"error": {"code": "1302"}}, {"Retry-After": "2"}))
    with pytest.raises(HttpStatusError) as refused:
        await received(call_to(server))
    assert refused.value.status == status
    assert refused.value.body == b'{"error": {"code": "1302"}}'
    assert refused.value.headers["retry-after"] == "2"


async def test_a_huge_refusal_is_cut(server: ProviderServer) -> None:
    server.script(error(500, b"x" * 5_000_000))
    with pytest.raises(HttpStatusError) as refused:
        await received(call_to(server))
    assert len(refused.value.body) == 64 * 1024


async def test_broken_refusal_is_still_a_refusal(server: ProviderServer) -> None:
    server.script(Reply(500, {"content-type": "text/plain"}, (b"broken",), ending="reset"))
    with pytest.raises(HttpStatusError) as refused:
        await received(call_to(server))
    assert refused.value.status == 500


@pytest.mark.parametrize(
    ("location", "shown"),
    [("https://login.example.com/in?token=secret", "https://login.example.com/in"), ("/v2", "/v2"), ("", "")],
)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_named_and_not_followed(server: ProviderServer, status: int, location: str, shown: str) -> None:
    server.script(error(status, "", {"location": location}))
    with pytest.raises(BadAnswer) as failed:
        await received(call_to(server))
    assert shown in failed.value.message
    assert "secret" not in failed.value.message
    assert len(server.requests) == 1


# What breaks


async def test_a_refused_connection_names_the_address() -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9.*refused") as failed:
        await received(HttpCall("http://127.0.0.1:9/v1", b"{}"))
    assert failed.value.retryable


async def test_an_unknown_name_may_be_known_again_soon() -> None:
    with pytest.raises(Unreachable, match=r"no-such-host\.invalid") as failed:
        await received(HttpCall("http://no-such-host.invalid/v1", b"{}"))
    assert failed.value.retryable
    assert failed.value.exit_code == 75
    assert "spelling" in failed.value.hint


async def test_connection_broken_before_answer_is_network_gap() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as target:
        with pytest.raises(Unreachable):
            await received(HttpCall(f"http://127.0.0.1:{target.sockets[0].getsockname()[1]}/v1", b"{}"))


async def test_unusable_url_is_an_error_without_the_key() -> None:
    for url in ("http://127.0.0.1:9/\r\n", "gopher://x/", "http://"):
        with pytest.raises(ProviderError) as failed:
            await received(HttpCall(url, b"{}", {"authorization": "Bearer secret-key"}))
        assert "secret-key" not in failed.value.message + failed.value.hint


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".invalid"])
async def test_impossible_host_name_is_not_tried_again(host: str) -> None:
    with pytest.raises(ProviderError, match="could not be built") as failed:
        await received(HttpCall(f"http://{host}/v1", b"{}"))
    assert not failed.value.retryable


async def test_unsendable_header_is_an_error_without_value(server: ProviderServer) -> None:
    with pytest.raises(ProviderError) as failed:
        await received(HttpCall(server.base_url, b"{}", {"authorization": "Bearer secret\r\nkey"}))
    assert "secret" not in failed.value.message + failed.value.hint
    assert not failed.value.retryable


@pytest.mark.parametrize("ending", ["cut", "reset"])
async def test_connection_broken_within_answer_may_be_retried(server: ProviderServer, ending: str) -> None:
    server.script(events(done=False).ends(ending))  # type: ignore[arg-type]  # one of the endings
    with pytest.raises(Unavailable, match="middle of the response") as failed:
        await received(call_to(server))
    assert failed.value.retryable


@pytest.mark.parametrize("reply", [raw(), raw(ending="reset"), raw(b"HTTP/1.1 200 OK\r\ncontent-"), raw(b"garbage\r\n\r\n")])
async def test_connection_broken_before_answer_may_be_retried(server: ProviderServer, reply: Reply) -> None:
    server.script(reply)
    with pytest.raises(Unavailable) as failed:
        await received(call_to(server))
    assert failed.value.retryable
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (raw(b"SSH-2.0-OpenSSH_9.9\r\n\r\n"), "SSH-2.0"),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcde"), "Content-Length"),
        (raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\ndata: x\n\n"), "chunk"),
        (raw(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 1_000_000), "too"),
    ],
)
async def test_non_http_answer_is_called_so(server: ProviderServer, reply: Reply, said: str) -> None:
    server.script(reply)
    with pytest.raises(Unavailable, match="sent invalid HTTP") as failed:
        await received(call_to(server))
    assert said in failed.value.message


async def test_headers_without_end_are_cut_off(server: ProviderServer) -> None:
    server.script(raw(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000))
    with pytest.raises(Unavailable):
        await received(call_to(server))


# Silence


async def test_silence_before_the_answer_ends_at_its_limit(server: ProviderServer) -> None:
    server.script(raw(ending="stall"))
    with pytest.raises(Unavailable, match=r"did not start to respond: nothing came for 0\.2 s") as failed:
        await received(call_to(server, first_byte_s=0.2, idle_s=60))
    assert failed.value.retryable


async def test_silence_within_the_answer_has_own_limit(server: ProviderServer) -> None:
    server.script(events(done=False).ends("stall"))
    with pytest.raises(Unavailable, match="stopped sending in the middle of the response"):
        await received(call_to(server, first_byte_s=60, idle_s=0.2))


async def test_bytes_that_keep_coming_reset_the_limit(server: ProviderServer) -> None:
    server.script(events().slow(0.15))
    assert payloads(await received(call_to(server, idle_s=0.4))) == EVENTS


async def test_comments_alone_keep_no_dead_stream_alive(server: ProviderServer) -> None:
    server.script(sse("one", *(b": ping\n\n" for _ in range(60)), done=False).slow(0.05))
    server.requests.clear()
    with pytest.raises(Unavailable, match="without sending data"):
        await received(call_to(server, idle_s=0.2))


async def test_no_limit_means_no_limit(server: ProviderServer) -> None:
    server.script(events(Pause(0.5)))
    assert payloads(await received(call_to(server, first_byte_s=0, idle_s=0))) == EVENTS


async def test_stream_kept_open_after_its_end_is_left(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wolo.models.http.response_body.REST_S", 0.2)
    server.script(events().ends("stall"), events())
    transport = HttpTransport({})
    assert payloads(await received(call_to(server), transport)) == EVENTS
    assert payloads(await received(call_to(server), transport)) == EVENTS
    await transport.close()


# Connections


async def test_a_connection_serves_many_requests(server: ProviderServer) -> None:
    transport = HttpTransport({})
    for _ in range(5):
        server.script(events())
        await received(call_to(server), transport)
    server.script(error(500, {"error": {}}), whole({"a": 1}))
    with pytest.raises(HttpStatusError):
        await received(call_to(server), transport)
    await received(call_to(server), transport)
    await transport.close()
    assert {asked.connection for asked in server.requests} == {1}


async def test_a_kept_connection_that_went_stale_costs_nothing(server: ProviderServer) -> None:
    """The server closes at the very moment the second request goes out: it is sent again on a new connection, once."""
    transport = HttpTransport({})
    server.script(events(), raw(), events())
    await received(call_to(server), transport)
    assert payloads(await received(call_to(server), transport)) == EVENTS
    await transport.close()
    assert [asked.connection for asked in server.requests] == [1, 1, 2]


async def test_broken_new_connection_is_not_secretly_retried(server: ProviderServer) -> None:
    transport = HttpTransport({})
    server.script(events(), raw(), raw())
    await received(call_to(server), transport)
    with pytest.raises(Unavailable):
        await received(call_to(server), transport)
    await transport.close()
    assert len(server.requests) == 3


async def test_cancelling_hangs_up_at_once(server: ProviderServer) -> None:
    hold = Hold()
    server.script(events(hold, done=False))
    task = asyncio.create_task(received(call_to(server)))
    await asyncio.to_thread(hold.wait_until_reached)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.requests[0].client_gone.wait, 30)


async def test_leaving_early_hangs_up_at_once(server: ProviderServer) -> None:
    server.script(events(Hold(), done=False))
    transport = HttpTransport({})
    batches = transport.send(call_to(server))
    assert (await anext(batches)).payloads
    await batches.aclose()
    assert await asyncio.to_thread(server.requests[0].client_gone.wait, 5)
    await transport.close()


# Floods


def megabytes(piece: bytes, count: int) -> Reply:
    return Reply(headers={"content-type": "text/event-stream"}, pieces=tuple(piece for _ in range(count)))


@pytest.mark.parametrize(
    "reply",
    [
        lambda: megabytes(b"data: " + b"x" * (1 << 20), 100),
        lambda: megabytes(b"x" * (1 << 20), 200),
        lambda: megabytes(b"data: " + b"x" * 65_000 + b"\n", 3_000),
        lambda: Reply(headers={"content-type": "application/json"}, pieces=(b"{" + b" " * 200_000_000,)),
    ],
    ids=["one event", "no line end", "no blank line", "one document"],
)
async def test_a_flood_stops_at_a_limit(server: ProviderServer, reply: Callable[[], Reply]) -> None:
    server.script(reply())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with processor_time_below(5), pytest.raises(BadAnswer, match="MiB"):
        await received(call_to(server))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


async def test_compressed_zero_bomb_stops_at_the_limit(server: ProviderServer) -> None:
    bomb = gzip.compress(b"data: " + bytes(400_000_000), compresslevel=1)
    server.script(Reply(headers={"content-type": "text/event-stream", "content-encoding": "gzip"}, pieces=(bomb,)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadAnswer, match="MiB"):
        await received(call_to(server))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


@pytest.mark.parametrize("encoding", ["br", "gzip"])
async def test_refusal_in_unreadable_compression_keeps_its_status(server: ProviderServer, encoding: str) -> None:
    server.script(Reply(429, {"content-encoding": encoding, "retry-after": "2"}, (b"\x8b no such data",)))
    with pytest.raises(HttpStatusError) as refused:
        await received(call_to(server))
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "2")


async def test_damaged_compression_is_named(server: ProviderServer) -> None:
    server.script(Reply(headers={"content-type": "text/event-stream", "content-encoding": "gzip"}, pieces=(b"data: plain\n\n",)))
    with pytest.raises(Unavailable, match="compressed body is damaged"):
        await received(call_to(server))


async def test_a_compression_nobody_knows_is_named(server: ProviderServer) -> None:
    server.script(Reply(headers={"content-type": "text/event-stream", "content-encoding": "br"}, pieces=(b"\x8b",)))
    with pytest.raises(BadAnswer, match="br"):
        await received(call_to(server))


async def test_an_answer_without_end_stops_at_a_limit(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wolo.models.http.response_body.LARGEST_ANSWER_BYTES", 1 << 20)
    server.script(text("word " * 10_000, size=1))
    with pytest.raises(BadAnswer, match="larger than"):
        await received(call_to(server))


async def test_an_event_of_five_megabytes_arrives(server: ProviderServer) -> None:
    server.script(sse("x" * 5_000_000))
    assert [len(payload) for payload in payloads(await received(call_to(server)))] == [5_000_000, 6]


async def test_twenty_thousand_events_arrive_in_order(server: ProviderServer) -> None:
    server.script(text("word " * 4_000, size=1))
    assert len(payloads(await received(call_to(server)))) == 20_000 + 2


async def test_cut_within_a_character_spares_the_payloads(server: ProviderServer) -> None:
    server.script(sse(delta("你好🙂é"), finish("stop")).split(1))
    assert "你好🙂é".encode() in payloads(await received(call_to(server)))[0]
