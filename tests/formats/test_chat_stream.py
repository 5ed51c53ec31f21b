"""Streams of Chat Completions: what servers really send, and what must come of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.histories import OWN, TOOLS, request
from tests.formats.streams import DONE, Payload, called, calls, cut, decode, encoded, ends, part, said, shape
from wolo.errors import BadAnswer, ContextOverflow, ProviderError, QuotaExhausted, RateLimited, Unavailable
from wolo.formats.openai_chat import ChatDialect, OpenAIChat
from wolo.messages.deltas import Assembler, FinishDelta
from wolo.messages.message import Message, Usage

PLAIN = ChatDialect(think_tags=False, leaked_calls=False)
CALLED = ends("tool_calls")
STOPPED = ends("stop")


def test_a_stream_becomes_a_message() -> None:
    message = decode(
        said(role="assistant", content=""),
        said(reasoning_content="\nI look"),
        said(content="Hel"),
        said(content="lo"),
        calls(part("read", "", index=0, id="call_a", type="function")),
        calls(part(None, '{"path": ', index=0)),
        calls(part(None, '"a"}', index=0)),
        CALLED,
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}},
        DONE,
    )
    assert shape(message) == [{"reasoning_content": "\nI look"}, "Hello", ("read", "call_a", {"path": "a"}, "pending")]
    assert message.finished
    assert message.finish_reason == "tool_calls"
    assert message.usage == Usage(input_tokens=5, cache_read_tokens=4, output_tokens=5)


ONE: list[tuple[str, dict[str, Any]]] = [("read", {"p": 1})]
TWO: list[tuple[str, dict[str, Any]]] = [("a", {}), ("b", {})]

CALL_STREAMS: dict[str, tuple[list[Payload], list[tuple[str, dict[str, Any]]]]] = {
    "no index at all": ([calls(part("read", "{", id="c1")), calls(part(None, '"p":1}'))], ONE),
    "no index, two payloads": ([calls(part("a", "{}", id="c1")), calls(part("b", "{}", id="c2"))], TWO),
    "no index, one payload": ([calls(part("a", "{}", id="c1"), part("b", "{}", id="c2"))], TWO),
    "no index, one payload, then their arguments by place": (
        [calls(part("a", "", id="c1"), part("b", "", id="c2")), calls(part(None, "{}"), part(None, '{"x":1}'))],
        [("a", {}), ("b", {"x": 1})],
    ),
    "only the first has an index": ([calls(part("a", "{}", id="c1", index=0)), calls(part("b", "{}", id="c2"))], TWO),
    "a new id on the same index": (
        [calls(part("s", '{"q":1}', index=0, id="c1")), calls(part("s", '{"q":2}', index=0, id="c2"))],
        [("s", {"q": 1}), ("s", {"q": 2})],
    ),
    "a new id on the same index, no arguments": (
        [calls(part("s", "", index=0, id="c1")), calls(part("s", "", index=0, id="c2"))],
        [("s", {}), ("s", {})],
    ),
    "a name in two pieces": (
        [calls(part("re", "", index=0, id="c1")), calls(part("ad", "", index=0)), calls(part(None, '{"p":1}', index=0))],
        ONE,
    ),
    "a name in three pieces, with the id": (
        [calls(part(piece, arguments, index=0, id="c1")) for piece, arguments in (("r", ""), ("ea", ""), ("d", '{"p":1}'))],
        ONE,
    ),
    "a name in two pieces without an index": (
        [calls(part("re", "", id="c1")), calls(part("ad", "")), calls(part(None, '{"p":1}'))],
        ONE,
    ),
    "interleaved": (
        [
            calls(part("a", '{"x"', index=0, id="c1")),
            calls(part("b", '{"y"', index=1, id="c2")),
            calls(part(None, ":1}", index=0)),
            calls(part(None, ":2}", index=1)),
        ],
        [("a", {"x": 1}), ("b", {"y": 2})],
    ),
    "the first index is 1, then a gap": (
        [calls(part("a", "{}", index=1, id="c1")), calls(part("b", "{}", index=7, id="c2"))],
        TWO,
    ),
    "the whole call twice": ([calls(part("read", '{"p":1}', index=0, id="c1"))] * 2, ONE),
    "the whole call twice without an index": ([calls(part("read", '{"p":1}', id="c1"))] * 2, ONE),
    "the whole call twice under two indexes": (
        [calls(part("read", '{"p":1}', index=0, id="c1")), calls(part("read", '{"p":1}', index=1, id="c1"))],
        ONE,
    ),
    "empty ids and names later": (
        [calls(part("read", '{"p"', index=0, id="c1")), calls(part("", ":1}", index=0, id=""))],
        ONE,
    ),
    "id, name and type repeated": (
        [calls(part("read", '{"p"', index=0, id="c1")), calls(part("read", ":1}", index=0, id="c1", type="function"))],
        ONE,
    ),
    "a fresh id on every fragment": (
        [
            calls(part("read", '{"p"', index=0, id="x1")),
            calls(part(None, ":", index=0, id="x2")),
            calls(part(None, "1}", index=0, id="x3")),
        ],
        ONE,
    ),
    "a fresh id on every fragment, no index": ([calls(part("read", '{"p"', id="x1")), calls(part(None, ":1}", id="x2"))], ONE),
    "an index that drifts": ([calls(part("read", '{"p"', index=0, id="c1")), calls(part(None, ":1}", index=1))], ONE),
    "an index that drifts, with the id": (
        [calls(part("read", '{"p"', index=0, id="c1")), calls(part(None, ":1}", index=1, id="c1"))],
        ONE,
    ),
    "an index that comes late": ([calls(part("read", '{"p"', id="c1")), calls(part(None, ":1}", index=0))], ONE),
    "a prefix that parses": ([calls(part("t", '{"a":1}', index=0, id="c")), calls(part(None, "  ", index=0))], [("t", {"a": 1})]),
    "no id ever": ([calls(part("read", '{"p"', index=0)), calls(part(None, ":1}", index=0))], ONE),
    "no id, no index": ([calls(part("read", '{"p"')), calls(part(None, ":1}"))], ONE),
    "no id, no index, two calls": ([calls(part("a", "{}")), calls(part("b", "{}"))], TWO),
    "no id, no index, two equal calls": ([calls(part("a", "{}")), calls(part("a", "{}"))], [("a", {}), ("a", {})]),
    "no id, the same index": ([calls(part("a", "{}", index=0)), calls(part("b", "{}", index=0))], TWO),
    "no id, no index, the name repeated": ([calls(part("read", '{"p"')), calls(part("read", ":1}"))], ONE),
    "arguments empty": ([calls(part("read", "", index=0, id="c"))], [("read", {})]),
    "arguments null": ([calls({"index": 0, "id": "c", "function": {"name": "read", "arguments": None}})], [("read", {})]),
    "arguments missing": ([calls(part("read", None, index=0, id="c"))], [("read", {})]),
    "arguments blank": ([calls(part("read", " ", index=0, id="c"))], [("read", {})]),
    "arguments an object": ([calls(part("read", {"p": 1}, index=0, id="c"))], ONE),
    "arguments encoded twice": ([calls(part("read", '"{\\"p\\":1}"', index=0, id="c"))], ONE),
    "index and id of odd types": ([calls(part("read", '{"p"', index="0", id=7)), calls(part(None, ":1}", index=0.0))], ONE),
    "calls that are no list": ([said(tool_calls=part("read", '{"p":1}', index=0, id="c"))], ONE),
    "calls null, then empty, then real": (
        [said(tool_calls=None), said(tool_calls=[]), calls(part("read", '{"p":1}', index=0))],
        ONE,
    ),
    "the old function_call": (
        [said(function_call={"name": "read", "arguments": '{"p"'}), said(function_call={"arguments": ":1}"})],
        ONE,
    ),
    "text between fragments": (
        [calls(part("read", '{"p"', index=0, id="c")), said(content="hm"), calls(part(None, ":1}", index=0))],
        ONE,
    ),
}


@pytest.mark.parametrize("name", CALL_STREAMS)
def test_calls_are_told_apart_however_they_are_numbered(name: str) -> None:
    payloads, expected = CALL_STREAMS[name]
    message = decode(*payloads, CALLED, DONE)
    assert called(message) == expected
    assert len({call.wire_id for call in message.calls}) == len(expected)
    assert {call.status for call in message.calls} == {"pending"}


@pytest.mark.parametrize("arguments", ['{"add":["x"]}}', '{"a":1}{"a":1}', '{"a":1},"b":2}', '{"a"', "[]", "nonsense"])
def test_senseless_arguments_are_an_error_result(arguments: str) -> None:
    (call,) = decode(calls(part("read", arguments, index=0, id="c")), CALLED).calls
    assert (call.status, call.outcome, call.input, call.raw_input) == ("failed", "invalid", {}, arguments)


def test_rest_behind_parsable_arguments_is_not_lost() -> None:
    (call,) = decode(calls(part("t", '{"a":1}', index=0, id="c")), calls(part(None, ',"b":2}', index=0)), CALLED).calls
    assert call.raw_input == '{"a":1},"b":2}'
    assert call.outcome == "invalid"


def test_five_hundred_calls_in_an_answer_all_count() -> None:
    message = decode(*(calls(part("read", f'{{"n":{number}}}', index=number, id="same")) for number in range(500)), CALLED)
    assert [call.input["n"] for call in message.calls] == list(range(500))
    assert len({call.wire_id for call in message.calls}) == 500


# Reasoning


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text", "thinking"])
def test_reasoning_is_found_under_every_known_name(field: str) -> None:
    message = decode(said(**{field: "\nhm"}), said(content="Hi"), STOPPED)
    assert shape(message) == [{field: "\nhm"}, "Hi"]


def test_reasoning_said_under_two_names_is_told_once() -> None:
    message = decode(said(reasoning="hm", reasoning_content="hm"), said(content="Hi"), STOPPED)
    assert shape(message) == [{"reasoning_content": "hm"}, "Hi"]
    preferred = decode(
        said(reasoning="hm", reasoning_content="hm"),
        said(content="Hi"),
        STOPPED,
        dialect=ChatDialect(reasoning_field="reasoning"),
    )
    assert shape(preferred) == [{"reasoning": "hm"}, "Hi"]


def test_a_content_list_holds_text_and_thinking() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    message = decode(said(content=[thought, {"type": "text", "text": "Hi"}, "!"]), said(content=[{"type": "odd"}, 7]), STOPPED)
    assert shape(message) == [{"content": "hm"}, "Hi!"]


def test_reasoning_details_are_complete_and_return_unchanged() -> None:
    first = {"type": "reasoning.text", "text": "Let ", "index": 0, "format": "x"}
    second = {"type": "reasoning.text", "text": "me", "signature": "sig", "index": 0, "format": "x"}
    third = {"type": "reasoning.encrypted", "data": "abc", "index": 1, "id": "rs_1"}
    message = decode(
        said(reasoning="Let ", reasoning_details=[first]),
        said(reasoning="me", reasoning_details=[second]),
        said(content="Hi", reasoning_details=[third]),
        STOPPED,
    )
    assert message.reasoning_content == "Let me"
    sent = json.loads(OpenAIChat(ChatDialect()).encode(request((message,))))["messages"][2]
    assert sent["reasoning"] == "Let me"
    assert sent["reasoning_details"] == [{**first, "text": "Let me", "signature": "sig"}, third]


@pytest.mark.parametrize("junk", ["[1e999]", '{"a": 1e999}'])
def test_unreturnable_reasoning_is_not_kept(junk: str) -> None:
    """A number beyond all bounds passes through a stream, but no request can carry it: it would end the session."""
    details = b'{"choices":[{"index":0,"delta":{"content":"Hi","reasoning_details":%b}}]}' % junk.encode()
    call = b'{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"read","arguments":"{}"},'
    extra = call + b'"extra_content":%b}]}}]}' % junk.encode()
    for payload, end in ((details, STOPPED), (extra, CALLED)):
        message = decode(payload, end)
        assert not any(part.blobs for part in message.parts)
        assert OpenAIChat(ChatDialect()).encode(request((message,)))


def test_reasoning_details_alone_are_shown() -> None:
    message = decode(said(reasoning_details=[{"type": "reasoning.summary", "summary": "sum"}]), said(content="Hi"), STOPPED)
    assert message.reasoning_content == "sum"
    assert message.text == "Hi"


def test_signatures_of_calls_go_back_with_them() -> None:
    extra = {"google": {"thought_signature": "sig"}}
    message = decode(calls(part("read", "{}", index=0, id="c", extra_content=extra)), CALLED)
    sent = json.loads(OpenAIChat(ChatDialect()).encode(request((message,))))["messages"][2]
    assert sent["tool_calls"][0]["extra_content"] == extra


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["<th", "ink>plan", "</thi", "nk>Hi"], [{"text": "plan"}, "Hi"]),
        (["\n<think>", "\nplan\n", "</think>", "\n\nHi"], [{"text": "\nplan\n"}, "Hi"]),
        (["plan", "</think>Hi"], [{"text": "plan"}, "Hi"]),
        (["a <b", " </thi", "s> c"], ["a <b </this> c"]),
        (["Use `<think>` and `</think>`."], ["Use `<think>` and `</think>`."]),
        (["<think>never closed"], [{"text": "never closed"}]),
        (["<think>a</think><think>b</think>c"], [{"text": "ab"}, "c"]),
        (["[THINK]a[/THINK]b"], [{"text": "a"}, "b"]),
        (["<th"], ["<th"]),
        (["  "], ["  "]),
    ],
)
def test_think_tags_in_the_text_are_reasoning(pieces: list[str], expected: list[Any]) -> None:
    assert shape(decode(*(said(content=piece) for piece in pieces), STOPPED)) == expected


def test_think_tags_stay_text_where_dialect_says() -> None:
    assert decode(said(content="<think>a</think>b"), STOPPED, dialect=PLAIN).text == "<think>a</think>b"


# Calls written as text


def test_a_call_written_as_text_is_a_call() -> None:
    message = decode(said(content='```json\n{"name": "read", "argu'), said(content='ments": {"path": "a"}}\n```'), STOPPED)
    assert called(message) == [("read", {"path": "a"})]
    assert message.text == ""
    assert message.finish_reason == "tool_calls"


def test_written_call_beside_a_real_is_no_call() -> None:
    written = '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>'
    same = decode(said(content=written), calls(part("read", '{"path":"a"}', index=0, id="c")), CALLED)
    assert called(same) == [("read", {"path": "a"})]
    assert same.text == ""
    other = decode(said(content=written), calls(part("read", '{"path":"b"}', index=0, id="c")), CALLED)
    assert called(other) == [("read", {"path": "b"})]
    assert "<tool_call>" in other.text


def test_a_call_written_while_thinking_is_no_call() -> None:
    written = '<tool_call>{"name": "read", "arguments": {}}</tool_call>'
    for payloads in (
        [said(reasoning_content=written)],
        [said(content=f"<think>{written}</think>")],
        [said(content=f"{written}</think>")],
    ):
        message = decode(*payloads, STOPPED)
        assert not message.calls
        assert message.text == ""
        assert written.removesuffix("</tool_call>") in message.reasoning_content


# How it ends


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("end_turn", "stop"),
        ("complete", "stop"),
        ("something new", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("MAX_OUTPUT_TOKENS", "length"),
        ("content_filter", "refused"),
        ("sensitive", "refused"),
        ("SAFETY", "refused"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("tool_use", "tool_calls"),
    ],
)
def test_every_finish_reason_means_something(word: str, reason: str) -> None:
    message = decode(said(content="Hi"), ends(word), DONE)
    assert (message.finish_reason, message.text) == (reason, "Hi")


@pytest.mark.parametrize("word", ["network_error", "error", "insufficient_system_resource", "abort", "engine_overloaded"])
def test_failure_as_finish_reason_can_be_retried(word: str) -> None:
    with pytest.raises(Unavailable) as caught:
        decode(said(content="Hi"), ends(word), DONE)
    assert caught.value.retryable
    assert word in caught.value.message


@pytest.mark.parametrize("word", ["model_context_window_exceeded", "context_length_exceeded"])
def test_full_window_as_finish_reason_is_overflow(word: str) -> None:
    with pytest.raises(ContextOverflow):
        decode(said(content="Hi"), ends(word), DONE)


def test_stop_beside_calls_means_the_calls() -> None:
    message = decode(calls(part("read", "{}", index=0, id="c")), STOPPED)
    assert message.finish_reason == "tool_calls"
    assert message.calls[0].status == "pending"


@pytest.mark.parametrize("word", ["content_filter", "length"])
def test_calls_of_refused_or_cut_answer_never_run(word: str) -> None:
    message = decode(calls(part("read", '{"path": "a"}', index=0, id="c")), ends(word))
    assert message.calls[0].status == "failed"


def test_promise_without_calls_is_kept_unchanged() -> None:
    message = decode(said(content="I will read it."), CALLED)
    assert (message.finish_reason, message.calls) == ("tool_calls", ())


def test_first_finish_reason_stays_and_more_is_read() -> None:
    message = decode(said(content="a"), STOPPED, said(content="b"), ends("length"), ends(None), DONE)
    assert (message.text, message.finish_reason) == ("ab", "stop")


@pytest.mark.parametrize(
    "payloads",
    [
        [],
        [DONE],
        [said(role="assistant", content="")],
        [said(content="Hi")],
        [said(content="Hi"), ends("")],
        [said(reasoning_content="hm"), DONE],
        [calls(part("read", '{"path": "a"}', index=0, id="c"))],
        [calls(part("read", '{"path": "a', index=0, id="c")), DONE],
        [calls(part("read", "", index=0, id="c")), DONE],
        [said(content="Hi"), b"upstream went away"],
    ],
)
def test_a_stream_without_its_end_is_incomplete(payloads: list[Payload]) -> None:
    with pytest.raises(Unavailable, match="ended early") as caught:
        decode(*payloads)
    assert caught.value.retryable


@pytest.mark.parametrize("last", [said(content=""), ends(""), ends(None)])
def test_done_after_whole_text_or_calls_ends(last: Payload) -> None:
    assert decode(said(content="Hi"), last, DONE).finish_reason == "stop"
    assert decode(calls(part("read", '{"p": 1}', index=0, id="c")), last, DONE).finish_reason == "tool_calls"


def test_the_raw_word_is_kept() -> None:
    decoder = OpenAIChat(ChatDialect()).decoder(request())
    decoder.feed(encoded(ends("eos")))
    assert decoder.close()[-1] == FinishDelta("stop", "eos")


# Usage

COUNTS = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}


@pytest.mark.parametrize(
    "payloads",
    [
        [STOPPED, {"choices": [], "usage": COUNTS}, DONE],
        [ends("stop", usage=COUNTS), DONE],
        [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": COUNTS}]}],
        [{**ends("stop"), "x_groq": {"usage": COUNTS}}],
        [{**ends(None), "usage": {**COUNTS, "completion_tokens": 0}}, ends("stop", usage=COUNTS), {"choices": [], "usage": None}],
        [STOPPED, {"choices": None, "usage": COUNTS}],
    ],
)
def test_token_counts_are_found_anywhere_and_counted_once(payloads: list[Payload]) -> None:
    assert decode(said(content="Hi"), *payloads).usage == Usage(input_tokens=9, output_tokens=5)


# Errors in the stream


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ({"error": {"message": "quota exceeded"}}, QuotaExhausted),
        ({"choices": [], "error": {"code": 502, "message": "upstream"}}, Unavailable),
        ({"error": {"code": "1305", "message": "busy"}}, RateLimited),
        ({"error": {"code": 1302, "message": "busy"}}, RateLimited),
        ({"code": 1302, "msg": "busy", "success": False}, RateLimited),
        ({"error": "something broke"}, Unavailable),
        ({"object": "error", "message": "boom", "code": 500}, Unavailable),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Unavailable),
        ({**ends("error"), "error": {"code": 429, "message": "slow down"}}, RateLimited),
        ([{"error": {"code": 503, "message": "down"}}], Unavailable),
    ],
)
@pytest.mark.parametrize("before", [[], [said(content="Hi")]])
def test_an_error_object_fails_the_attempt(payload: Any, kind: type[ProviderError], before: list[Payload]) -> None:
    with pytest.raises(kind):
        decode(*before, json.dumps(payload).encode())


@pytest.mark.parametrize("error", [None, {}, "", False, []])
def test_an_error_that_says_nothing_is_none(error: Any) -> None:
    assert decode({**said(content="Hi"), "error": error}, STOPPED).text == "Hi"


@pytest.mark.parametrize(
    "noise",
    [
        b"",
        b"not json",
        b"[]",
        b"7",
        b'"x"',
        b"{",
        b"\xff\xfe",
        b'{"choices": null}',
        b'{"choices": [null, 3]}',
        b'{"choices": [{"delta": null}]}',
        b'{"choices": [{"index": 0}]}',
        b'{"choices": [{"delta": {"content": null, "tool_calls": null}}], "obfuscation": "x"}',
        b'{"choices": [{"delta": {"content": 5, "tool_calls": [null, "x", {"function": "y"}]}, "index": "zero"}]}',
        b'{"choices": [{"delta": {"tool_calls": 5}, "index": 0}]}',
        b'{"object": "chat.completion.chunk", "prompt_filter_results": [{"x": 1}], "choices": []}',
        b'{"id": "x", "timings": {"a": 1}}',
        b'{"a":' * 100_000,
    ],
)
def test_unknown_fields_are_passed_over(noise: bytes) -> None:
    assert shape(decode(said(content="H"), noise, said(content="i"), STOPPED, DONE)) == ["Hi"]


def test_only_the_first_choice_is_heard() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]}
    assert shape(decode(said(content="yes"), other, STOPPED)) == ["yes"]


def test_emoji_of_two_escaped_halves_arrives_whole() -> None:
    first, second = (b'{"choices":[{"index":0,"delta":{"content":"%s"}}]}' % half for half in (rb"a\ud83d", rb"\ude00b"))
    deltas = [*_feed(first, second)]
    assert "".join(deltas) == "a😀b"
    assert all(delta.encode() for delta in deltas)


def test_half_an_emoji_in_arguments_arrives_whole() -> None:
    pieces = [rb"{\"x\": \"\ud83d", rb"\ude00\"}"]
    payloads = [
        b'{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"t","arguments":"%s"}}]}}]}'
        % piece
        for piece in pieces
    ]
    assert called(decode(*payloads, CALLED)) == [("t", {"x": "😀"})]


# Answers in one document


def whole(message: dict[str, Any], reason: str | None = "stop", **more: Any) -> bytes:
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": reason}], **more}).encode()


def read_whole(body: bytes) -> Message:
    chat = OpenAIChat(ChatDialect())
    chat.encode(request(tools=TOOLS))
    assembler = Assembler()
    assembler.add(chat.read_whole(body))
    return assembler.message()


def test_an_answer_in_one_document_is_an_answer() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    message = read_whole(
        whole({"role": "assistant", "content": "Hi", "reasoning_content": "hm", "tool_calls": [call]}, "tool_calls", usage=COUNTS)
    )
    assert shape(message) == [{"reasoning_content": "hm"}, "Hi", ("read", "c", {}, "pending")]
    assert message.usage == Usage(input_tokens=9, output_tokens=5)
    assert read_whole(whole({"content": "Hi"}, None)).finish_reason == "stop"
    assert called(read_whole(whole({"content": '{"name": "read", "arguments": {"p": 1}}'}))) == [("read", {"p": 1})]


@pytest.mark.parametrize(
    "body", [b'{"choices": [{"message": {"content": "Hel', b'{"choices": [', b'{"choices"', b"[", b'{"a": 1,']
)
def test_broken_document_may_be_asked_again(body: bytes) -> None:
    with pytest.raises(Unavailable, match="in the middle of its JSON"):
        read_whole(body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"choices": []}\n{"choices": []}', "more than one JSON document"),
        (b"{not json}", "no JSON"),
        (b"[1, 2]", "no JSON object"),
        (b"[" * 100_000, "cannot be read"),
        (b'{"a": ' + b"9" * 5000 + b"}", "cannot be read"),
    ],
)
def test_non_document_is_described(body: bytes, said: str) -> None:
    with pytest.raises(BadAnswer) as failed:
        read_whole(body)
    assert said in failed.value.message
    assert len(failed.value.message) < 300


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<!doctype html><title>Sign in</title><p>Welcome", BadAnswer),
        (b"", BadAnswer),
        (b"just text", BadAnswer),
        (b'{"status": "ok"}', BadAnswer),
        (b'{"choices": []}', BadAnswer),
        (b'{"error": {"code": "1302", "message": "busy"}}', RateLimited),
    ],
)
def test_non_answer_document_is_named_as_such(body: bytes, kind: type[ProviderError]) -> None:
    with pytest.raises(kind):
        read_whole(body)


# Properties

STREAMED = st.lists(
    st.one_of(
        st.tuples(
            st.just("content"),
            st.sampled_from(["Hi ", "a < b", "<think>x</think>y", "</think>", "```py\n{}\n```", '{"name": 1}', "字😀"]),
        ),
        st.tuples(st.just("reasoning_content"), st.sampled_from(["\nhm", "so "])),
        st.tuples(st.just("call"), st.sampled_from(['{"path": "a😀"}', "", '{"x":1,'])),
    ),
    min_size=1,
    max_size=6,
)


def payloads_of(items: list[tuple[str, str]], sizes: list[int]) -> list[Payload]:
    payloads: list[Payload] = []
    for number, (kind, text) in enumerate(items):
        if kind == "call":
            payloads.append(calls(part("read", "", index=number, id=f"c{number}")))
            payloads += [calls(part(None, piece, index=number)) for piece in cut(text, sizes)]
        else:
            payloads += [said(**{kind: piece}) for piece in cut(text, sizes)]
    return payloads


@given(STREAMED, st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_stream_cuts_change_nothing(items: list[tuple[str, str]], sizes: list[int]) -> None:
    whole_pieces = decode(*payloads_of(items, [1000]), ends("stop"), DONE)
    for chosen in (sizes, [1]):
        assert shape(decode(*payloads_of(items, chosen), ends("stop"), DONE)) == shape(whole_pieces)


@given(STREAMED, st.data())
def test_stream_cut_anywhere_runs_nothing_and_keeps_text(items: list[tuple[str, str]], data: st.DataObject) -> None:
    payloads = [encoded(payload) for payload in payloads_of(items, [3])]
    end = encoded(ends("tool_calls"))
    at = data.draw(st.integers(0, len(payloads)))
    torn = (*payloads, end)[at]
    kept = [*payloads[:at], torn[: data.draw(st.integers(0, len(torn) - 1))]]
    assembler = Assembler()
    decoder = OpenAIChat(PLAIN).decoder(request(tools=TOOLS))
    for payload in kept:
        assembler.add(decoder.feed(payload))
    with pytest.raises(Unavailable):
        decoder.close()
    message = assembler.message()
    assert not message.finished
    assert all(call.status == "failed" for call in message.calls)
    heard = [json.loads(payload)["choices"][0]["delta"].get("content", "") for payload in payloads[:at]]
    assert message.text == "".join(heard)


@given(
    st.lists(st.sampled_from(["Hi", " ", "字", "\n", "😀"]), max_size=5).map("".join),
    st.lists(st.sampled_from(["\n", "hm", "**x**"]), max_size=4).map("".join),
    st.lists(st.sampled_from(['{"path": "a"}', '{"b":1,  "a":2}', "{}"]), max_size=3),
    st.lists(st.integers(1, 7), min_size=1, max_size=3),
)
def test_server_reasoning_returns_as_received(text: str, reasoning: str, arguments: list[str], sizes: list[int]) -> None:
    if not text.strip() and not arguments:
        return
    payloads = [said(reasoning_content=piece) for piece in cut(reasoning, sizes)] + [
        said(content=piece) for piece in cut(text, sizes)
    ]
    for number, written in enumerate(arguments):
        payloads.append(calls(part("read", "", index=number, id=f"functions.read:{number}")))
        payloads += [calls(part(None, piece, index=number)) for piece in cut(written, sizes)]
    message = decode(*payloads, ends("tool_calls" if arguments else "stop"), DONE)
    sent = json.loads(OpenAIChat(ChatDialect()).encode(request((message,))))["messages"][2]
    assert sent["content"] == (text if text.strip() else None)
    assert sent.get("reasoning_content", "") == reasoning
    returned = [(call["id"], call["function"]["arguments"]) for call in sent.get("tool_calls", ())]
    assert returned == [(f"functions.read:{number}", written) for number, written in enumerate(arguments)]
    assert message.producer == OWN


def _feed(*payloads: bytes) -> list[str]:
    decoder = OpenAIChat(PLAIN).decoder(request())
    return [delta.text for payload in payloads for delta in decoder.feed(payload) if hasattr(delta, "text")]


LEAKED = "<tool_call>read<arg_key>path</arg_key><arg_value>a</arg_value></tool_call>"


def test_call_ending_the_reasoning_counts_without_an_answer() -> None:
    dialect = ChatDialect(leaked_in_reasoning=True)
    thought = [said(reasoning_content=piece) for piece in ("I read ", "it.\n", LEAKED[:20], LEAKED[20:], "\n")]
    message = decode(*thought, ends("stop"), dialect=dialect)
    assert called(message) == [("read", {"path": "a"})]
    assert message.finish_reason == "tool_calls"
    assert message.reasoning_content == f"I read it.\n{LEAKED}\n"
    fenced = [said(reasoning_content=f"I could say\n```\n{LEAKED}\n```"), ends("stop")]
    assert not decode(*fenced, dialect=dialect).calls
    assert not decode(*thought, ends("stop")).calls
    assert not decode(*thought, said(content="Done."), ends("stop"), dialect=dialect).calls
    assert not decode(*thought, ends("length"), dialect=dialect).calls
    assert not decode(*thought, said(reasoning_content="Or not."), ends("stop"), dialect=dialect).calls
    native = calls(part("read", '{"path": "b"}', index=0, id="call_1"))
    assert called(decode(*thought, native, ends("stop"), dialect=dialect)) == [("read", {"path": "b"})]


@pytest.mark.parametrize(
    "fragments",
    [
        [part(None, '{"path": "a"}', index=0, id="c1"), part("read", None, index=0)],
        [part(None, '{"path": "a"}', index=0, id="c1"), part("read", "", index=0, id="c1")],
        [part(None, '{"path": "a"}', index=0, id="c1"), part("read", None, index=0, id="another")],
        [part(None, None, index=0, id="c1"), part("read", '{"path": "a"}', index=0)],
        [part(None, '{"path"', index=0, id="c1"), part("read", ': "a"}', index=0)],
        [part(None, '{"path"', index=0, id="c1"), part(None, ': "a"}', index=0), part("read", None, index=0)],
        [part(None, '{"path": "a"}', id="c1"), part("read", None, id="c1")],
        [part(None, '{"path": "a"}'), part("read", None)],
    ],
)
def test_late_name_belongs_to_its_call(fragments: list[Any]) -> None:
    message = decode(*[calls(each) for each in fragments], ends("tool_calls"))
    assert called(message) == [("read", {"path": "a"})]


def test_second_nameless_call_under_one_number_is_another() -> None:
    message = decode(
        calls(part(None, '{"path": "a"}', index=0, id="c1")),
        calls(part("read", '{"path": "b"}', index=0, id="c2")),
        ends("tool_calls"),
    )
    assert [part.input for part in message.calls] == [{"path": "a"}, {"path": "b"}]
