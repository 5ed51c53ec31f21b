"""Streams of the Messages API: what was recorded, however it is cut, and what servers do that they should not."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.replies_anthropic import (
    LAST,
    PING,
    begin,
    call_block,
    end,
    failed,
    grow,
    start,
    stop,
    text_block,
    thinking_block,
)
from tests.formats.histories import OWN, TOOLS, request
from wolo.errors import (
    AuthError,
    BadAnswer,
    BadRequest,
    ContextOverflow,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Unavailable,
)
from wolo.formats.anthropic import Anthropic, AnthropicDialect
from wolo.formats.anthropic.decode import AnthropicDecoder
from wolo.formats.anthropic.encode import PREFIX, REDACTED, SIGNATURE
from wolo.messages.deltas import Assembler
from wolo.messages.message import Message, Usage, user
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart
from wolo.models.http.response_body import SseSplitter

RECORDINGS = sorted((Path(__file__).with_name("recordings") / "anthropic").glob("*.txt"))


def decoder() -> AnthropicDecoder:
    return Anthropic(AnthropicDialect()).decoder(request((user("go"),)))


def heard(*payloads: Mapping[str, Any] | bytes, close: bool = True) -> Message:
    """The message as it is after these payloads, and the end of the stream."""
    assembler, reading = Assembler(), decoder()
    for payload in payloads:
        assembler.add(reading.feed(payload if isinstance(payload, bytes) else json.dumps(payload).encode()))
    if close:
        assembler.add(reading.close())
    return assembler.message(producer=OWN)


def shape(message: Message) -> list[Any]:
    """The parts without what is made anew each time; blobs without the stamp."""
    return [_shape(part) for part in message.parts]


def _shape(part: object) -> Any:
    match part:
        case TextPart():
            return part.text
        case ThinkingPart():
            return (part.text, *(blob.data for blob in part.blobs if blob.kind != PREFIX))
        case ToolPart():
            return (part.tool, part.call_id, part.input, part.status)
        case _:
            raise AssertionError(part)


def played(data: bytes, cuts: list[int] | None = None) -> Message:
    """What a recording becomes, received in pieces that end at these places."""
    splitter, reading, assembler = SseSplitter(), decoder(), Assembler()
    bounds = [0, *sorted(cuts or ()), len(data)]
    for first, last in itertools.pairwise(bounds):
        for payload in splitter.feed(data[first:last]):
            assembler.add(reading.feed(payload))
    for payload in splitter.end():
        assembler.add(reading.feed(payload))
    assembler.add(reading.close())
    return assembler.message(producer=OWN)


# What was recorded


EXPECTED: dict[str, tuple[str, list[Any], Usage]] = {
    "thinking_and_calls": (
        "tool_calls",
        [
            ("The user wants both files — I read them together. 🧐", "EqoBCkgIARABGAIiQL2UoU0bHVsi1+pbOhZ=="),
            ("", "EmwKAhgBEgy3va3pzix/LafPsn4a"),
            ("And then compare.", "ErUBCkYIBRgC"),
            "I look at größe.py und 字.py.\n",
            ("read", "toolu_01A09q90qw90lq917835lq9", {"path": "größe.py"}, "pending"),
            ("read", "toolu_01B19q90qw90lq917835lq9", {"path": "字.py"}, "pending"),
        ],
        Usage(input_tokens=412, output_tokens=187, cache_read_tokens=20480, cache_write_tokens=1888, reasoning_tokens=61),
    ),
    "plain_text": ("stop", ["Hello!\u2028New line", "And more."], Usage(input_tokens=25, output_tokens=15)),
    "call_without_arguments": (
        "tool_calls",
        [("read", "toolu_01T1x1fJ34qAmk2tNTrN7Up6", {}, "pending")],
        Usage(input_tokens=300, output_tokens=30),
    ),
    "cut_off_call": (
        "length",
        ["I write it.", ("read", "toolu_01Long", {}, "failed")],
        Usage(input_tokens=300, output_tokens=4096),
    ),
    "paused_search": ("paused", ["I search for it."], Usage(input_tokens=90, output_tokens=40)),
    "refusal": ("refused", ["I can"], Usage(input_tokens=40, output_tokens=4)),
    "compatible_server": (
        "tool_calls",
        [("Let me see.", "8d1b0b3f"), ("read", "call_-8142", {"path": "a.py"}, "pending")],
        Usage(input_tokens=77, output_tokens=31, cache_read_tokens=1024),
    ),
}


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_stream_becomes_a_message(recording: Path) -> None:
    message = played(recording.read_bytes())
    assert (message.finish_reason, shape(message), message.usage) == EXPECTED[recording.stem]


@pytest.mark.soak  # tests/formats/test_every_stream.py tries some cuts of each recording
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_a_stream_may_be_cut_anywhere_into_pieces(recording: Path) -> None:
    data = recording.read_bytes()
    whole = shape(played(data))
    for at in range(len(data)):
        assert shape(played(data, [at])) == whole
    assert shape(played(data, list(range(len(data))))) == whole


@pytest.mark.soak  # tests/formats/test_every_stream.py tries some cuts of each recording
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_a_stream_that_ends_early_is_no_answer(recording: Path) -> None:
    """Up to the last event: nothing before it says that the answer is complete."""
    data = recording.read_bytes()
    last = data.rindex(b'"message_stop"')
    for size in range(last):
        with pytest.raises(Unavailable) as caught:
            played(data[:size])
        assert caught.value.retryable


def test_received_blocks_return_unchanged() -> None:
    """The same blocks in the same order, to the letter."""
    (recording,) = (path for path in RECORDINGS if path.stem == "thinking_and_calls")
    format = Anthropic(AnthropicDialect())
    body = json.loads(format.encode(request((user("go"), played(recording.read_bytes()), user("on")))))
    assert body["messages"][1]["content"] == [
        {
            "type": "thinking",
            "thinking": "The user wants both files — I read them together. 🧐",
            "signature": "EqoBCkgIARABGAIiQL2UoU0bHVsi1+pbOhZ==",
        },
        {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"},
        {"type": "thinking", "thinking": "And then compare.", "signature": "ErUBCkYIBRgC"},
        {"type": "text", "text": "I look at größe.py und 字.py.\n"},
        {"type": "tool_use", "id": "toolu_01A09q90qw90lq917835lq9", "name": "read", "input": {"path": "größe.py"}},
        {"type": "tool_use", "id": "toolu_01B19q90qw90lq917835lq9", "name": "read", "input": {"path": "字.py"}},
    ]


def test_thinking_is_stamped_with_the_request_it_answers() -> None:
    (thought, *_) = heard(start(), *thinking_block(0, "hm", "sig"), *text_block(1, "Hi"), end(), LAST).parts
    assert [blob.kind for blob in thought.blobs] == [SIGNATURE, PREFIX]
    stamps = set()
    for history in ((user("go"),), (user("go on"),)):
        reading = Anthropic(AnthropicDialect()).decoder(request(history))
        assembler = Assembler()
        for event in (start(), begin(0, {"type": "redacted_thinking", "data": "x"}), stop(0)):
            assembler.add(reading.feed(json.dumps(event).encode()))
        (redacted,) = assembler.message().parts
        assert redacted.blobs[0].kind == REDACTED
        stamps.add(redacted.blobs[1].data)
    assert len(stamps) == 2


@given(st.lists(st.tuples(st.sampled_from(["text", "thinking", "call"]), st.text(max_size=30), st.integers(1, 7)), max_size=6))
def test_blocks_return_unchanged_with_any_fragments(wanted: list[tuple[str, str, int]]) -> None:
    events: list[Any] = [start()]
    expected: list[Any] = []
    for index, (kind, text, size) in enumerate(wanted):
        match kind:
            case "text":
                events += text_block(index, text, size)
                expected += [text] if text else []
            case "thinking":
                events += thinking_block(index, text, f"sig{index}", size)
                expected.append((text, f"sig{index}"))
            case _:
                events += call_block(index, "read", {"path": text}, f"toolu_{index}", size)
                expected.append(("read", f"toolu_{index}", {"path": text}, "pending"))
    assert shape(heard(*events, end(), LAST)) == expected


# What servers do that they should not


def test_pings_and_unknown_events_are_passed_over() -> None:
    odd: list[Mapping[str, Any] | bytes] = [
        PING,
        {"type": "brand_new_event", "delta": {"text": "no"}},
        begin(0, {"type": "hologram", "text": "no"}),
        grow(0, "hologram_delta", hologram="no"),
        stop(0),
        stop(7),
        b"no JSON",
        b"[1]",
        b"[DONE]",
    ]
    assert shape(heard(*odd, start(), *odd, *text_block(1, "Hi"), *odd, end("a_new_reason"), LAST, *odd)) == ["Hi"]


def test_an_emoji_in_two_halves_is_mended() -> None:
    halves = [grow(0, "text_delta", text=half) for half in ("a\ud83d", "\ude00b")]
    assert shape(heard(begin(0, {"type": "text", "text": ""}), *halves, end(), LAST)) == ["a😀b"]


def test_blocks_without_numbers_and_events_without_types_work() -> None:
    events: list[dict[str, Any]] = [start(), *text_block(0, "Hi"), *call_block(1, "read", {"path": "a"}, "c1"), end("tool_use")]
    untyped = [
        {name: value for name, value in event.items() if name not in ("index", "type") or event["type"] == "content_block_stop"}
        for event in events
    ]
    for event in untyped:
        event.pop("index", None)
    assert shape(heard(*untyped, LAST)) == ["Hi", ("read", "c1", {"path": "a"}, "pending")]


def test_an_index_that_comes_again_is_another_block() -> None:
    once = call_block(0, "read", {"path": "a"}, "c1")
    again = call_block(0, "read", {"path": "b"}, "c2")
    assert [call.input for call in heard(start(), *once, *again, end(), LAST).calls] == [{"path": "a"}, {"path": "b"}]
    unended = [begin(0, {"type": "tool_use", "id": f"c{at}", "name": "read", "input": {"path": at}}) for at in "ab"]
    assert [call.input for call in heard(start(), *unended, end(), LAST).calls] == [{"path": "a"}, {"path": "b"}]


def test_whole_input_counts_only_without_fragments() -> None:
    block = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}
    (call,) = heard(begin(0, block), end("tool_use"), LAST).calls
    assert call.input == {"path": "a"}
    (call,) = heard(begin(0, block), grow(0, "input_json_delta", partial_json='{"path": "b"}'), stop(0), end(), LAST).calls
    assert call.input == {"path": "b"}


def test_names_of_tools_come_back_as_ours() -> None:
    (call,) = heard(*call_block(0, "mcp_server_odd_tool_ff097e82", {}), end("tool_use"), LAST).calls
    assert call.tool == TOOLS[1].name


def test_repeated_start_is_skipped_and_another_answer_refused() -> None:
    first = [start("msg_a"), *call_block(0, "read", {"path": "a"}, "c1")]
    assert len(heard(*first, start("msg_a"), end("tool_use"), LAST).calls) == 1
    assert len(heard(*first, {"type": "message_start", "message": {"id": ""}}, start("msg_a"), end("tool_use"), LAST).calls) == 1
    with pytest.raises(Unavailable, match="mixed two responses"):
        heard(*first, start("msg_b"), *text_block(1, "Hi"), end(), LAST)


def test_nothing_behind_the_end_belongs_to_the_answer() -> None:
    late = [*call_block(1, "read", {"path": "a"}), failed(), end("refusal")]
    message = heard(start(), *text_block(0, "Hi"), end(), LAST, *late)
    assert (message.text, message.calls, message.finish_reason) == ("Hi", (), "stop")


def test_proxy_may_end_the_stream_differently() -> None:
    assert heard(start(), *text_block(0, "Hi"), end(), b"[DONE]").finish_reason == "stop"
    with pytest.raises(Unavailable):
        heard(start(), *text_block(0, "Hi"), b"[DONE]")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("pause_turn", "paused"),
        ("refusal", "refused"),
        ("something_new", "stop"),
        ("sensitive", "refused"),
    ],
)
def test_why_an_answer_ended(reason: str, finish: str) -> None:
    assert heard(start(), *text_block(0, "Hi"), end(reason), LAST).finish_reason == finish


def test_full_window_overflows_and_network_failure_retries() -> None:
    with pytest.raises(ContextOverflow):
        heard(start(), *text_block(0, "Hi"), end("model_context_window_exceeded"), LAST)
    with pytest.raises(Unavailable):
        heard(start(), *text_block(0, "Hi"), end("network_error"), LAST)


def test_refusal_reason_is_kept_with_the_answer() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It asks for malware."}
    assert heard(start(), *call_block(0, "read", {}), end("refusal", stop_details=details), LAST).error == "It asks for malware."
    assert heard(start(), end("refusal", stop_details=None), LAST).error == ""


@pytest.mark.parametrize(
    ("kind", "message", "error", "retryable"),
    [
        ("overloaded_error", "Overloaded", Unavailable, True),
        ("api_error", "Internal server error", Unavailable, True),
        ("api_error", "Something odd", Unavailable, True),
        ("timeout_error", "Request timed out", Unavailable, True),
        ("rate_limit_error", "This request would exceed your rate limit", RateLimited, True),
        ("authentication_error", "invalid x-api-key", AuthError, False),
        ("permission_error", "Your key may not use this model", AuthError, False),
        ("billing_error", "Your credit balance is too low", QuotaExhausted, False),
        ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", ContextOverflow, False),
        ("invalid_request_error", "messages.1: unexpected", BadRequest, False),
        ("1305", "[1305][The service is overloaded][20261121]", RateLimited, True),
        ("1113", "[1113][Insufficient balance][20261121]", QuotaExhausted, False),
    ],
)
@pytest.mark.parametrize("after_text", [False, True])
def test_errors_within_a_stream(kind: str, message: str, error: type[ProviderError], retryable: bool, after_text: bool) -> None:
    before = [start(), *text_block(0, "Half an ans")] if after_text else []
    with pytest.raises(error) as caught:
        heard(*before, failed(kind, message))
    assert caught.value.retryable == retryable


@pytest.mark.parametrize(
    ("status", "kind", "message", "error", "retryable"),
    [
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", ContextOverflow, False),
        (400, "invalid_request_error", "Your credit balance is too low to access the API.", QuotaExhausted, False),
        (401, "authentication_error", "invalid x-api-key", AuthError, False),
        (403, "permission_error", "not allowed", AuthError, False),
        (404, "not_found_error", "model: claude-x", BadRequest, False),
        (409, "conflict_error", "busy", Unavailable, True),
        (413, "request_too_large", "Request exceeds the maximum size", ContextOverflow, False),
        (429, "rate_limit_error", "slow down", RateLimited, True),
        (500, "api_error", "Internal server error", Unavailable, True),
        (529, "overloaded_error", "Overloaded", Unavailable, True),
        (429, "1313", "[1313][Your plan does not include this][20261121]", QuotaExhausted, False),
    ],
)
def test_refusals(status: int, kind: str, message: str, error: type[ProviderError], retryable: bool) -> None:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}).encode()
    refused = Anthropic(AnthropicDialect()).read_error(status, {}, body)
    assert isinstance(refused, error)
    assert refused.retryable == retryable


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different", "signature"),
        ("Expected `thinking` or `redacted_thinking`, but found `tool_use`.", "thinking"),
        ("adaptive thinking is not supported on this model", "thinking"),
        ("This model does not support the effort parameter.", "effort"),
        ("output_config: Extra inputs are not permitted", "output_config"),
        ("temperature: may not be set for this model", "temperature"),
        ("max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens", "max_tokens"),
        ("tools.0.cache_control: Extra inputs are not permitted", "cache_control"),
    ],
)
def test_a_refused_field_is_named(message: str, field: str) -> None:
    body = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).encode()
    refused = Anthropic(AnthropicDialect()).read_error(400, {}, body)
    assert isinstance(refused, BadRequest)
    assert refused.field == field


def test_unfitting_limit_is_lowered_before_conversation_is_cut() -> None:
    message = "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length"
    refused = Anthropic(AnthropicDialect()).read_error(400, {}, json.dumps({"error": {"message": message}}).encode())
    assert isinstance(refused, ContextOverflow)
    assert refused.field == "max_tokens"


# An answer that comes whole


def whole(body: Any) -> Message:
    assembler = Assembler()
    format = Anthropic(AnthropicDialect())
    format.encode(request((user("go"),)))
    assembler.add(format.read_whole(body if isinstance(body, bytes) else json.dumps(body).encode()))
    return assembler.message(producer=OWN)


def test_an_answer_may_come_as_one_document() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
    ]
    counted = {"input_tokens": 5, "output_tokens": 7}
    message = whole({"type": "message", "content": content, "stop_reason": "tool_use", "usage": counted})
    assert shape(message) == [("hm", "sig"), "Hi", ("read", "c1", {"path": "a"}, "pending")]
    assert (message.finish_reason, message.usage) == ("tool_calls", Usage(input_tokens=5, output_tokens=7))
    assert shape(whole({"content": "Hi"})) == ["Hi"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"content": [{"ty', Unavailable),
        (b"<html>Sign in</html>", BadAnswer),
        (b"{}", BadAnswer),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Unavailable),
    ],
)
def test_non_answer_is_described(body: Any, error: type[ProviderError]) -> None:
    with pytest.raises(error):
        whole(body)


def start_with(*blocks: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
    event = start("msg_whole")
    return {**event, "message": {**event["message"], "content": list(blocks), "stop_reason": reason}}


SAID = {"type": "text", "text": "Hi"}
CALLED = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}
CALL = ("read", "c1", {"path": "a"}, "pending")
CALL_ITSELF = call_block(1, "read", {"path": "a"}, "c1")
ARGUMENTS = grow(1, "input_json_delta", partial_json='{"path": "a"}')


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([start_with(SAID, CALLED, reason="tool_use"), LAST], ["Hi", CALL]),
        ([start_with(SAID, CALLED), end("tool_use"), LAST], ["Hi", CALL]),
        ([start_with(SAID, CALLED), *text_block(0, "Hi"), *CALL_ITSELF, end("tool_use"), LAST], ["Hi", CALL]),
        ([start_with(SAID), *CALL_ITSELF, end("tool_use"), LAST], ["Hi", CALL]),
        ([start_with(SAID), grow(0, "text_delta", text=" there"), stop(0), end(), LAST], ["Hi there"]),
        ([start_with({"type": "text", "text": ""}), grow(0, "text_delta", text="Hi"), stop(0), end(), LAST], ["Hi"]),
        ([start_with(SAID, {**CALLED, "input": {}}), ARGUMENTS, end("tool_use"), LAST], ["Hi", CALL]),
    ],
)
def test_a_first_event_that_carries_content_is_read(events: list[Any], expected: list[Any]) -> None:
    assert shape(heard(*events)) == shape(heard(events[0], PING, *events[1:])) == expected


def test_whole_answer_in_first_event_tells_its_end() -> None:
    message = heard(start_with(SAID, reason="max_tokens"), LAST)
    assert (message.finish_reason, shape(message)) == ("length", ["Hi"])
