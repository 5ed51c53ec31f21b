"""Frames of Amazon's event stream: read as botocore reads them, torn anywhere, and damaged."""

from __future__ import annotations

import base64
import json
import zlib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.replies_bedrock import chunk, exception, frame
from wolo.errors import Unavailable
from wolo.models.http.event_stream import FrameSplitter
from wolo.models.http.transport import HttpStatusError

BYTES = b"".join(chunk({"number": number}) for number in range(3))
PAYLOADS = [b'{"number": 0}', b'{"number": 1}', b'{"number": 2}']


def test_frames_are_read_as_botocore_reads_them() -> None:
    recorded = json.loads(Path(__file__).with_name("frames_by_botocore.json").read_text("utf-8"))
    *chunks, last = recorded["events"]
    frames = bytes.fromhex(recorded["frames"])
    size_bytes = int.from_bytes(frames[:4]) + int.from_bytes(frames[int.from_bytes(frames[:4]) :][:4])
    splitter = FrameSplitter("http://h")
    expected = [base64.b64decode(json.loads(each["payload"])["bytes"]) for each in chunks]
    assert splitter.feed(frames[:size_bytes]) == expected
    with pytest.raises(HttpStatusError) as refused:
        splitter.feed(frames[size_bytes:])
    assert refused.value.status == 429
    assert json.loads(refused.value.body)["message"] == json.loads(last["payload"])["message"]


@given(st.lists(st.integers(0, len(BYTES)), max_size=5))
def test_frames_may_be_torn_anywhere(cuts: list[int]) -> None:
    splitter = FrameSplitter("http://h")
    places = [0, *sorted(cuts), len(BYTES)]
    payloads = [each for at, end in pairwise(places) for each in splitter.feed(BYTES[at:end])]
    assert payloads == PAYLOADS
    assert splitter.end() == []


@given(st.integers(0, len(BYTES) - 1), st.integers(1, 255))
def test_changed_byte_is_noticed(at: int, change: int) -> None:
    damaged = bytearray(BYTES)
    damaged[at] ^= change
    splitter = FrameSplitter("http://h")
    with pytest.raises(Unavailable, match="damaged"):
        [*splitter.feed(bytes(damaged)), *splitter.end()]


def test_cut_stream_is_an_error() -> None:
    splitter = FrameSplitter("http://h")
    assert splitter.feed(BYTES[:-1]) == PAYLOADS[:-1]
    with pytest.raises(Unavailable, match="ends within a frame"):
        splitter.end()


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        (frame({":message-type": "event", ":event-type": "chunk"}, b"no JSON"), "a chunk without bytes"),
        (frame({":message-type": "event", ":event-type": "chunk"}, b'{"bytes": 7}'), "a chunk without bytes"),
        (b"\0\0\0\x04\0\0\0\0" + zlib.crc32(b"\0\0\0\x04\0\0\0\0").to_bytes(4), "a frame of 4 bytes"),
    ],
)
def test_frame_without_content_is_an_error(damaged: bytes, words: str) -> None:
    with pytest.raises(Unavailable, match=words):
        FrameSplitter("http://h").feed(damaged)


def test_other_events_are_skipped_and_unknown_exceptions_raised() -> None:
    splitter = FrameSplitter("http://h")
    assert splitter.feed(frame({":message-type": "event", ":event-type": "other"}, b"{}")) == []
    with pytest.raises(HttpStatusError) as refused:
        splitter.feed(exception("newException", "No."))
    assert (refused.value.status, json.loads(refused.value.body)["message"]) == (500, "No.")
