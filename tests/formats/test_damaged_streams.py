"""Recorded streams with some value replaced by any other: a mistake of a server is a clean error or read over, never a crash."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.formats.histories import TOOLS
from wolo.errors import ProviderError
from wolo.formats.format import Format, Request
from wolo.formats.lint.linters import LINTERS
from wolo.messages.deltas import Assembler
from wolo.messages.message import Producer, user
from wolo.models.catalog import Catalog
from wolo.models.format_selection import FORMATS, format_of
from wolo.models.http.response_body import LineSplitter, SseSplitter

RECORDINGS = sorted(path for path in Path(__file__).with_name("recordings").glob("*/*") if path.is_file())
Step = str | int

wrong: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, 1.5, 10**30, True, "", "x", "\ud800", [], [None], [[]], ["a"], {}, {"x": 1}, {"type": "text"}]
)
damages = st.lists(st.tuples(st.floats(0, 0.999), st.floats(0, 0.999), wrong), min_size=1, max_size=3)


def format_named(name: str) -> Format:
    return format_of(Catalog({}).find("custom/m-1", base_url="http://h/v1", api_key="k", api=name))


def payloads_of(path: Path, framing: str) -> list[bytes]:
    splitter = LineSplitter() if framing == "lines" else SseSplitter()
    return [*splitter.feed(path.read_bytes()), *splitter.end()]


def places(value: Any, at: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in members:
        yield (*at, step)
        yield from places(inner, (*at, step))


def damaged(payload: bytes, where: float, value: Any) -> bytes:
    """The same JSON with one of its values replaced."""
    try:
        document = json.loads(payload)
    except ValueError:
        return payload
    found = list(places(document))
    if not found:
        return json.dumps(value).encode()
    *path, last = found[int(where * len(found))]
    within = document
    for step in path:
        within = within[step]
    within[last] = copy.deepcopy(value)
    return json.dumps(document).encode()


def request(format: Format, *messages: Any) -> Request:
    return Request(model="m-1", producer=Producer("p", format.name, "m-1"), messages=messages, tools=TOOLS)


@given(st.sampled_from(RECORDINGS), damages)
def test_damaged_stream_never_crashes_and_its_parts_return(path: Path, done: list[tuple[float, float, Any]]) -> None:
    format = format_named(path.parent.name)
    payloads = payloads_of(path, format.framing)
    for which, where, value in done:
        at = int(which * len(payloads))
        payloads[at] = damaged(payloads[at], where, value)
    asked = request(format, user("go"))
    format.encode(asked)
    decoder, assembler = format.decoder(asked), Assembler()
    with contextlib.suppress(ProviderError):
        for payload in payloads:
            assembler.add(decoder.feed(payload))
        assembler.add(decoder.close())
    answer = assembler.message(producer=asked.producer)
    for name in FORMATS:
        target = format_named(name)
        body = json.loads(target.encode(request(target, user("go"), answer, user("go on"))))
        assert LINTERS[name](body) == []


@given(st.sampled_from(RECORDINGS), damages)
def test_payload_as_whole_answer_never_crashes(path: Path, done: list[tuple[float, float, Any]]) -> None:
    format = format_named(path.parent.name)
    payloads = payloads_of(path, format.framing)
    asked = request(format, user("go"))
    format.encode(asked)
    for which, where, value in done:
        with contextlib.suppress(ProviderError):
            assembler = Assembler()
            assembler.add(format.read_whole(damaged(payloads[int(which * len(payloads))], where, value)))
            answer = assembler.message(producer=asked.producer)
            body = json.loads(format.encode(request(format, user("go"), answer, user("go on"))))
            assert LINTERS[format.name](body) == []
