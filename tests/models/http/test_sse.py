"""The splitter: bytes in any cuts, payloads out."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clock import processor_time_below
from wolo.errors import BadAnswer
from wolo.models.http.response_body import SseSplitter


def payloads(stream: bytes, size_bytes: int | None = None) -> list[bytes]:
    splitter = SseSplitter()
    size = size_bytes or max(1, len(stream))
    found = [each for at in range(0, len(stream), size) for each in splitter.feed(stream[at : at + size])]
    return found + splitter.end()


def test_events_become_payloads_in_order() -> None:
    splitter = SseSplitter()
    assert splitter.feed(b'data: {"a":1}\n\ndata: {"b"') == [b'{"a":1}']
    assert splitter.feed(b":2}\n\n") == [b'{"b":2}']
    assert splitter.end() == []


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\r\n\rdata: b\n\r\n", [b"a", b"b"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b": keep-alive\n\n:\n\ndata: a\n: in between\n\n", [b"a"]),
        (b"data:a\n\ndata:  b\n\n", [b"a", b" b"]),
        (b"data: {\ndata: }\n\n", [b"{\n}"]),
        (b"event: message\nid: 7\nretry: 10\ndata: a\n\n", [b"a"]),
        (b"data\n\n", [b""]),
        (b"data:\n\n", [b""]),
        (b"database: x\n\n", []),
        (b"\n\n\n", []),
        (b"data: a", [b"a"]),
        (b"data: a\n", [b"a"]),
        (b"data: [DONE]\r\n", [b"[DONE]"]),
        ("data: \u2028\u2029\x85\x0b\x0c\n\n".encode(), ["\u2028\u2029\x85\x0b\x0c".encode()]),
        ("data: 你好🙂é\n\n".encode(), ["你好🙂é".encode()]),
        (b"", []),
    ],
)
def test_every_rule_holds_for_every_cut(stream: bytes, expected: list[bytes]) -> None:
    assert payloads(stream) == expected
    for size_bytes in (1, 2, 3, 5):
        assert payloads(stream, size_bytes) == expected


line_ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
texts = st.text(st.characters(blacklist_characters="\r\n"), max_size=20).map(lambda text: text.encode("utf-8", "replace"))
lines = st.one_of(
    texts.map(lambda text: b"data: " + text),
    texts.map(lambda text: b"data:" + text),
    texts.map(lambda text: b":" + text),
    texts.map(lambda text: b"event: " + text),
    st.just(b""),
)


@given(st.lists(st.tuples(lines, line_ends), max_size=20), st.data())
def test_cuts_never_matter(written: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    stream = b"".join(line + end for line, end in written)
    splitter, at, found = SseSplitter(), 0, []
    while at < len(stream):
        size = data.draw(st.integers(1, 9))
        found += splitter.feed(stream[at : at + size])
        at += size
    assert found + splitter.end() == payloads(stream)


def test_a_line_of_five_megabytes_takes_linear_time() -> None:
    value = b"x" * 5_000_000
    with processor_time_below(1):
        assert payloads(b"data: " + value + b"\n\n", 1_000) == [value]


@pytest.mark.parametrize("piece", [b"data: xxxxxxxx\n", b"x" * 16, b": comment without an end "])
def test_endless_event_stops_at_the_limit(piece: bytes) -> None:
    splitter = SseSplitter(largest_event_bytes=1_000_000)

    def flood() -> None:
        for _ in range(1_000_000):
            splitter.feed(piece * 100)

    tracemalloc.start()
    with pytest.raises(BadAnswer, match="MiB"):
        flood()
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_keep_alive_comments_may_go_on_for_ever() -> None:
    splitter = SseSplitter(largest_event_bytes=1_000)
    for _ in range(5_000):
        assert splitter.feed(b": ping\n\n") == []
    for _ in range(5_000):
        assert splitter.feed(b"data: a\n\ndata: b\n\n") == [b"a", b"b"]
