"""Streams of the Responses API become messages, however they are cut and wherever they end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.replies_responses import call, events, message, reasoning, refusal, usage, whole
from tests.formats.histories import OWN, TOOLS, request
from tests.formats.streams import shape
from wolo.errors import (
    AuthError,
    BadAnswer,
    ContentRefused,
    ContextOverflow,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Unavailable,
)
from wolo.formats.openai_responses import OpenAIResponses, ResponsesDialect
from wolo.formats.openai_responses.encode import ENCRYPTED, ORIGINAL_PARTS
from wolo.messages.deltas import Assembler, TextDelta
from wolo.messages.message import Message, user
from wolo.messages.parts import Blob, TextPart, ThinkingPart
from wolo.models.http.response_body import SseSplitter

RECORDINGS = {path.stem: path.read_bytes() for path in (Path(__file__).parent / "recordings/openai-responses").glob("*.sse")}
BROKEN_OFF = ("failed", "error_then_failed")
WHOLE = sorted(set(RECORDINGS) - set(BROKEN_OFF))
READ_A = {"path": "a"}

Event = Mapping[str, Any] | bytes


def encoded(event: Event) -> bytes:
    return event if isinstance(event, bytes) else json.dumps(event).encode()


def decode(*told: Event, close: bool = True, assembler: Assembler | None = None) -> Message:
    """The message as it is after these events, and the end of the stream."""
    assembler = assembler or Assembler()
    decoder = OpenAIResponses(ResponsesDialect()).decoder(request(tools=TOOLS))
    for event in told:
        assembler.add(decoder.feed(encoded(event)))
    if close:
        assembler.add(decoder.close())
    return assembler.message(producer=OWN)


def payloads(stream: bytes, size_bytes: int = 1 << 20) -> list[bytes]:
    splitter = SseSplitter()
    return [payload for at in range(0, len(stream), size_bytes) for payload in splitter.feed(stream[at : at + size_bytes])]


def replayed(answer: Message) -> list[dict[str, Any]]:
    """What the assistant said, as the next request says it again."""
    body = msgspec.json.decode(OpenAIResponses(ResponsesDialect()).encode(request((user("hi"), answer, user("go on")))))
    return [item for item in body["input"][1:-1] if item["type"] != "function_call_output"]


def without(told: list[dict[str, Any]], *types: str) -> list[dict[str, Any]]:
    return [event for event in told if event["type"] not in types]


# What is said


def test_reasoning_text_and_calls_become_a_message() -> None:
    answer = decode(
        *events(
            reasoning("rs_1", "I should look.", encrypted="gAAA"),
            message("Let me see both.", id="msg_1", phase="commentary"),
            call("read", READ_A, "call_1", id="fc_1"),
            call("read", {"path": "b"}, "call_2", id="fc_2"),
            usage=usage(100, 30, cached=60, written=10, reasoning=20),
        )
    )
    blobs = (Blob(ENCRYPTED, "gAAA"),)
    assert shape(answer) == [
        {"summary": "I should look.", "blobs": blobs},
        "Let me see both.",
        ("read", "call_1", READ_A, "pending"),
        ("read", "call_2", {"path": "b"}, "pending"),
    ]
    assert [part.item_id for part in answer.parts] == ["rs_1", "msg_1", "fc_1", "fc_2"]
    assert answer.of(TextPart)[0].phase == "commentary"
    assert (answer.finished, answer.finish_reason) == (True, "tool_calls")
    counted = answer.usage
    assert counted is not None
    assert (counted.input_tokens, counted.cache_read_tokens, counted.cache_write_tokens) == (30, 60, 10)
    assert (counted.output_tokens, counted.reasoning_tokens) == (30, 20)


def test_each_item_is_a_part_of_its_own() -> None:
    answer = decode(
        *events(
            message("one", id="msg_1"),
            message("two", id="msg_2"),
            reasoning("rs_1", "a", encrypted="x"),
            reasoning("rs_2", "b", encrypted="y"),
        )
    )
    assert [(part.type, part.item_id) for part in answer.parts] == [
        ("text", "msg_1"),
        ("text", "msg_2"),
        ("thinking", "rs_1"),
        ("thinking", "rs_2"),
    ]
    assert answer.text == "onetwo"


def test_summary_parts_are_separated_by_blank_lines() -> None:
    answer = decode(*events(reasoning("rs_1", "one", "two", encrypted="gAAA"), message("hi", id="msg_1")))
    (thinking,) = answer.of(ThinkingPart)
    assert thinking.text == "one\n\ntwo"
    assert [blob.kind for blob in thinking.blobs] == [ENCRYPTED, ORIGINAL_PARTS]


def test_reasoning_without_a_word_still_goes_back() -> None:
    item = reasoning("rs_1", encrypted="gAAA")
    assert replayed(decode(*events(item, message("hi", id="msg_1"))))[0] == item


def test_encrypted_reasoning_comes_from_its_final_event() -> None:
    told = events(reasoning("rs_1", encrypted="gFULL"), message("hi", id="msg_1"))
    for event in told:
        if event["type"] == "response.output_item.added":
            event["item"] = {**event["item"], "encrypted_content": "gHALF"}
    assert decode(*told).parts[0].blobs == (Blob(ENCRYPTED, "gFULL"),)


def test_items_behind_unreturnable_reasoning_lose_their_ids() -> None:
    answer = decode(*events(reasoning("rs_1"), message("hi", id="msg_1"), call("read", READ_A, "call_1", id="fc_1")))
    assert [part.item_id for part in answer.parts] == ["", ""]


def test_a_refusal_is_what_the_model_says() -> None:
    answer = decode(*events(refusal("I can't help with that.")))
    assert (answer.text, answer.finish_reason) == ("I can't help with that.", "stop")
    assert replayed(answer)[0]["content"] == [{"type": "refusal", "refusal": "I can't help with that."}]


def test_free_text_call_gives_the_only_argument() -> None:
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "read", "input": 'a "b"'}
    other = {**item, "call_id": "call_2", "name": "unheard_of"}
    answer = decode(*events(item, other))
    assert [part.input for part in answer.calls] == [{"path": 'a "b"'}, {"input": 'a "b"'}]


def test_calls_in_one_wrapper_are_calls() -> None:
    uses = [{"recipient_name": "functions.read", "parameters": READ_A}, {"recipient_name": "mcp_server_odd_tool_ff097e82"}]
    answer = decode(
        *events(call("multi_tool_use.parallel", {"tool_uses": uses}, "call_1"), call("read", {"path": "c"}, "call_3"))
    )
    assert shape(answer) == [
        ("read", "call_1_1", READ_A, "pending"),
        ("mcp.server/odd tool", "call_1_2", {}, "pending"),
        ("read", "call_3", {"path": "c"}, "pending"),
    ]


@pytest.mark.parametrize("arguments", ["{}", '{"tool_uses": 5}', '{"tool_uses": [{"parameters": {}}]}', '{"tool_uses": ['])
def test_unreadable_wrapper_is_a_call_nobody_offers(arguments: str) -> None:
    (part,) = decode(*events(call("multi_tool_use.parallel", arguments, "call_1"))).calls
    assert (part.tool, part.raw_input) == ("multi_tool_use.parallel", arguments)


def test_hosted_tools_and_unknown_events_are_passed_over() -> None:
    hosted = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    told: list[Event] = [
        {"type": "response.queued", "response": {}},
        *events(hosted, message("Found.", id="msg_1"))[:-1],
        {"type": "response.web_search_call.searching", "output_index": 0},
        {"type": "response.output_text.annotation.added", "output_index": 1, "annotation": {}},
        {"type": "response.audio.delta", "delta": 7},
        {"type": "response.unheard_of", "delta": {"a": 1}, "item": 5, "output_index": "x"},
        {"no": "type"},
        b"no json",
        b"[1]",
        b"",
        *events(hosted, message("Found.", id="msg_1"))[-1:],
    ]
    assert shape(decode(*told)) == ["Found."]


# What proxies make of it


def test_items_belong_by_number_not_id() -> None:
    told = events(call("read", READ_A, "call_1"), call("read", {"path": "b"}, "call_2"))
    opened = [event for event in told if event["type"] == "response.output_item.added"]
    fragments = [event for event in told if event["type"].endswith("arguments.delta")]
    fragments.sort(key=lambda event: event["sequence_number"] % 2)
    for number, event in enumerate(fragments):
        event["item_id"] = f"fresh_{number}"
    mixed = [told[0], *opened, *sorted(fragments, key=lambda event: event["sequence_number"]), *told[-1:]]
    assert [part.input for part in decode(*mixed).calls] == [READ_A, {"path": "b"}]


@pytest.mark.parametrize(
    "missing",
    [
        ("response.output_item.added",),
        ("response.output_text.delta", "response.reasoning_summary_text.delta", "response.function_call_arguments.delta"),
        ("response.output_text.done", "response.content_part.done", "response.function_call_arguments.done"),
    ],
)
def test_whatever_a_proxy_leaves_out_the_rest_tells(missing: tuple[str, ...]) -> None:
    output = (reasoning("rs_1", "Hm.", encrypted="x"), message("I look.", id="msg_1"), call("read", READ_A, "call_1", id="fc_1"))
    told = events(*output)
    answer = decode(*without(told, *missing))
    assert shape(answer) == shape(decode(*told))
    assert [part.item_id for part in answer.parts] == ["rs_1", "msg_1", "fc_1"]


@pytest.mark.parametrize("summary", ["", "Hm."])
@pytest.mark.parametrize("missing", [("response.output_item.done",), ("response.output_item.done", "response.output_item.added")])
def test_late_id_knowledge_changes_no_ids(summary: str, missing: tuple[str, ...]) -> None:
    thought = reasoning("rs_1", *([summary] if summary else []), encrypted="x")
    told = events(thought, message("I look.", id="msg_1"), call("read", READ_A, "call_1", id="fc_1"))
    answer = decode(*without(told, *missing))
    assert (answer.reasoning_content, answer.text, answer.calls[0].input) == (summary, "I look.", READ_A)
    assert not any("id" in item for item in replayed(answer))


def test_answer_known_only_at_its_end_is_read() -> None:
    told = events(
        reasoning("rs_1", "Hm.", encrypted="x"), message("I look.", id="msg_1"), call("read", READ_A, "call_1", id="fc_1")
    )
    assert shape(decode(told[0], told[-1])) == shape(decode(*told))


def test_an_end_that_repeats_nothing_takes_nothing_away() -> None:
    told = events(message("I look.", id="msg_1"))
    told[-1] = {"type": "response.completed", "response": {"status": "completed", "output": [], "usage": usage()}}
    assert decode(*told).text == "I look."


def test_an_end_that_numbers_otherwise_repeats_nothing() -> None:
    told = events(reasoning("rs_1", "Hm.", encrypted="x"), message("I look.", id="msg_1"))
    told[-1]["response"]["output"] = told[-1]["response"]["output"][1:]
    assert decode(*told).text == "I look."


def test_the_last_word_on_arguments_counts() -> None:
    told = events(call("read", READ_A, "call_1"))
    for event in told:
        if event["type"].endswith("arguments.delta"):
            event["delta"] = "{lost"
    (part,) = decode(*told).calls
    assert (part.input, part.raw_input) == (READ_A, '{"path": "a"}')


def test_final_text_event_repeats_nothing() -> None:
    told = events(message("I look at it.", id="msg_1"))
    lost = [event for event in told if not (event["type"].endswith("text.delta") and event["delta"].startswith("."))]
    deltas = [delta for event in lost for delta in _decoder_feed(event)]
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "I look at it."
    assert decode(*lost).text == "I look at it."


def _decoder_feed(event: Event, decoders: list[Any] = []) -> Any:  # noqa: B006  # one decoder for all events of a test
    if not decoders:
        decoders.append(OpenAIResponses(ResponsesDialect()).decoder(request(tools=TOOLS)))
    return decoders[0].feed(encoded(event))


def test_events_without_numbers_belong_to_open_item() -> None:
    told = events(message("I look.", id="msg_1"), call("read", READ_A, "call_1", id="fc_1"))
    bare = [{name: value for name, value in event.items() if not name.endswith("_index")} for event in told]
    assert shape(decode(*bare)) == shape(decode(*told))


def test_arguments_that_come_as_an_object_are_written() -> None:
    told = [{"type": "response.output_item.done", "output_index": 0, "item": {**call("read", "", "call_1"), "arguments": READ_A}}]
    assert decode(*told, *events()[-1:]).calls[0].input == READ_A


def test_an_emoji_in_two_halves_is_mended() -> None:
    torn = b'{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"%s"}'
    decoder = OpenAIResponses(ResponsesDialect()).decoder(request())
    deltas = [delta for half in (rb"a\ud83d", rb"\ude00b") for delta in decoder.feed(torn % half)]
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["a", "😀b"]


def test_half_a_kept_character_is_replaced() -> None:
    summary = [{"type": "summary_text", "text": text} for text in ("think\ud83d", "hard")]
    given = (
        {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "x"},
        {"type": "message", "id": "msg_1", "content": [{"type": "refusal", "refusal": "no\ud83d"}]},
        {"type": "custom_tool_call", "call_id": "call_1", "name": "read", "input": "a\ud83d"},
    )
    items = [{"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(given)]
    answer = decode(*items, *events()[-1:])
    assert (answer.text, answer.calls[0].input) == ("no\ufffd", {"path": "a\ufffd"})
    assert replayed(answer)[0]["summary"][0]["text"] == "think\ufffd"


def test_halves_of_characters_do_not_end_an_answer() -> None:
    told = events(message("ok", id="msg_1"))
    torn = b'{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"\\ud83d"}'
    assert decode(*told[:4], torn, *told[4:]).text.startswith("\ufffd")


# How it ends


@pytest.mark.parametrize(
    ("reason", "expected", "status"),
    [
        ("max_output_tokens", "length", "failed"),
        ("content_filter", "refused", "failed"),
        ("steered", "tool_calls", "pending"),
        ("max_messages", "tool_calls", "pending"),
        ("unheard_of", "tool_calls", "pending"),
        (None, "length", "failed"),
    ],
)
def test_an_incomplete_answer_says_why(reason: str | None, expected: str, status: str) -> None:
    told = events(call("read", READ_A, "call_1"), status="incomplete", incomplete_details=reason and {"reason": reason})
    answer = decode(*told)
    assert (answer.finish_reason, answer.calls[0].status) == (expected, status)


def test_open_call_of_incomplete_answer_never_runs() -> None:
    told = without(
        events(call("read", "{}", "call_1"), status="incomplete", incomplete_details={"reason": "steered"}),
        "response.output_item.done",
    )
    told[-1]["response"]["output"] = []
    assert decode(*told).calls[0].outcome == "cut_off"


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("server_error", "The server had an error.", Unavailable),
        ("rate_limit_exceeded", "Rate limit reached. Please try again in 1.5s.", RateLimited),
        ("context_length_exceeded", "Your input exceeds the context window of this model.", ContextOverflow),
        ("insufficient_quota", "You exceeded your current quota.", QuotaExhausted),
        ("invalid_prompt", "Your prompt was flagged.", ContentRefused),
        ("invalid_api_key", "Incorrect API key provided.", AuthError),
        ("unheard_of", "Something.", Unavailable),
    ],
)
def test_failure_is_reported_once_in_any_shape(code: str, message: str, kind: type[ProviderError]) -> None:
    error = {"code": code, "message": message}
    shapes: list[dict[str, Any]] = [
        {"type": "error", **error, "param": None, "sequence_number": 3},
        {"type": "error", "error": {"type": "x", **error}},
        {"error": error},
        {"type": "response.failed", "response": whole(status="failed", error=error)},
    ]
    for failed in shapes:
        assembler = Assembler()
        with pytest.raises(ProviderError) as caught:
            decode(*events(message_("Half"))[:5], failed, assembler=assembler)
        assert type(caught.value) is kind
        assert message in str(caught.value)
        assert caught.value.status == 200
        assert assembler.message().text == "Half"


def message_(text: str) -> dict[str, Any]:
    return message(text, id="msg_1")


@pytest.mark.parametrize("event", ["response.failed", "response.cancelled"])
def test_a_failure_without_a_reason_is_one_too(event: str) -> None:
    with pytest.raises(Unavailable) as caught:
        decode({"type": event, "response": {"status": event.removeprefix("response."), "error": None}})
    assert caught.value.status == 200


def test_done_alone_ends_only_what_is_complete() -> None:
    told = events(message("hi", id="msg_1"))[:-1]
    assert decode(*told, b"[DONE]").finish_reason == "stop"
    for unfinished in (told, [*without(told, "response.output_item.done"), b"[DONE]"], [b"[DONE]"]):
        with pytest.raises(Unavailable):
            decode(*unfinished)


def test_the_decoder_says_when_it_is_complete() -> None:
    decoder = OpenAIResponses(ResponsesDialect()).decoder(request(tools=TOOLS))
    told = events(message("hi", id="msg_1"))
    for event in told[:-1]:
        decoder.feed(encoded(event))
        assert not decoder.is_complete
    decoder.feed(encoded(told[-1]))
    assert decoder.is_complete
    assert not decoder.feed(encoded(told[3]))


# Answers in one document


def read_whole(body: object) -> Message:
    format = OpenAIResponses(ResponsesDialect())
    format.encode(request(tools=TOOLS))
    assembler = Assembler()
    assembler.add(format.read_whole(body if isinstance(body, bytes) else json.dumps(body).encode()))
    return assembler.message(producer=OWN)


def test_an_answer_in_one_document_says_the_same() -> None:
    output = (
        reasoning("rs_1", "a", "b", encrypted="x"),
        message("I look.", id="msg_1"),
        call("read", READ_A, "call_1", id="fc_1"),
    )
    assert shape(read_whole(whole(*output))) == shape(decode(*events(*output)))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", BadAnswer),
        (b"<html>", BadAnswer),
        (b"{}", BadAnswer),
        (b'{"output": [', Unavailable),
        ({"error": {"message": "Incorrect API key provided"}}, AuthError),
        (whole(status="failed", error={"code": "server_error", "message": "x"}), Unavailable),
        (whole(status="cancelled"), Unavailable),
        (whole(message("half"), status="in_progress"), Unavailable),
        (whole(status="queued"), Unavailable),
    ],
)
def test_non_answer_document_is_an_error(body: object, kind: type[ProviderError]) -> None:
    with pytest.raises(kind):
        read_whole(body)


# There and back


@given(st.data())
def test_answer_returns_as_its_original_items(data: st.DataObject) -> None:
    texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).filter(str.strip)
    output: list[dict[str, Any]] = []
    for number in range(data.draw(st.integers(1, 3))):
        summary = data.draw(st.lists(texts, max_size=3))
        if data.draw(st.booleans()):
            output.append(reasoning(f"rs_{number}", *summary, encrypted=f"g{number}"))
        if data.draw(st.booleans()):
            output.append(message(data.draw(texts), id=f"msg_{number}", phase=data.draw(st.sampled_from(["", "commentary"]))))
        output.append(call("read", {"path": data.draw(texts)}, f"call_{number}", id=f"fc_{number}"))
    sent = replayed(decode(*events(*output)))
    assert sent == [_as_input(item) for item in output]


def _as_input(item: dict[str, Any]) -> dict[str, Any]:
    if item["type"] == "message":
        pieces = [{name: piece[name] for name in ("type", "text", "annotations")} for piece in item["content"]]
        return {**item, "content": pieces}
    return {name: value for name, value in item.items() if name != "status"}


# Recordings


@pytest.mark.parametrize("name", WHOLE)
def test_recording_reads_alike_under_any_cuts(name: str) -> None:
    stream = RECORDINGS[name]
    told = payloads(stream)
    for size_bytes in (1, 2, 3, 7, 61, 1000):
        assert payloads(stream, size_bytes) == told
    for at in range(len(stream)):
        splitter = SseSplitter()
        assert [*splitter.feed(stream[:at]), *splitter.feed(stream[at:])] == told
    assert decode(*told).finished


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_recording_cut_anywhere_runs_and_loses_nothing(name: str) -> None:
    stream = RECORDINGS[name]
    told = payloads(stream)
    text_before = ""
    for count in range(len(told) - (2 if name == "open_weights" else 1)):
        answer = decode(*told[:count], close=False)
        assert answer.text.startswith(text_before)
        text_before = answer.text
        assert all(part.outcome == "never_started" for part in answer.calls)
        with pytest.raises(ProviderError) as caught:
            decode(*told[:count])
        assert caught.value.retryable


def test_the_recordings_say_what_they_said() -> None:
    shapes = {name: [type(part).__name__[:-4] for part in decode(*payloads(RECORDINGS[name])).parts] for name in WHOLE}
    assert shapes == {
        "incomplete_in_a_call": ["Thinking", "Tool"],
        "nothing_but_the_end": ["Text", "Tool"],
        "open_weights": ["Thinking", "Text"],
        "reasoning_text_and_parallel_calls": ["Thinking", "Text", "Tool", "Tool"],
        "refusal": ["Text"],
        "rotating_ids": ["Thinking", "Text", "Tool"],
        "two_rounds_of_reasoning": ["Thinking", "Text", "Thinking", "Tool"],
    }
    for name in ("reasoning_text_and_parallel_calls", "two_rounds_of_reasoning", "rotating_ids"):
        told = payloads(RECORDINGS[name])
        done = [json.loads(each)["item"] for each in told if b'"response.output_item.done"' in each]
        assert replayed(decode(*told)) == [_as_input(item) for item in done]


@pytest.mark.parametrize("name", BROKEN_OFF)
def test_a_recorded_failure_keeps_what_was_said(name: str) -> None:
    assembler = Assembler()
    with pytest.raises(ProviderError) as caught:
        decode(*payloads(RECORDINGS[name]), assembler=assembler)
    assert caught.value.retryable
    assert assembler.message().text == "Half an ans"
