"""Answers of Gemini: what they become, however they are cut, counted, spoilt and refused."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.replies_gemini import called, said, usage, word
from tests.formats.histories import TOOLS, request
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
from wolo.formats.gemini import Gemini, GeminiDialect
from wolo.formats.gemini.decode import GeminiDecoder
from wolo.formats.gemini.encode import THOUGHT_SIGNATURE
from wolo.messages.deltas import Assembler, Delta, TextDelta
from wolo.messages.message import Message, Producer, Usage, user
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart
from wolo.models.http.response_body import SseSplitter
from wolo.models.retry import RetrySettings, tries_for

OWN = Producer(provider="gemini", format="gemini", model="gemini-3-test")
RECORDINGS = sorted((Path(__file__).with_name("recordings") / "gemini").glob("*.txt"))
S1, S2 = "c2lnbmF0dXJlLTE=", "c2lnbmF0dXJlLTI="
STOP = said(finish="STOP")


def decoder() -> GeminiDecoder:
    return Gemini(GeminiDialect()).decoder(request((user("go"),), tools=TOOLS))


def heard(*payloads: Mapping[str, Any] | bytes, close: bool = True) -> Message:
    """The message as it is after these payloads, and the end of the stream."""
    assembler, reading = Assembler(), decoder()
    for payload in payloads:
        assembler.add(reading.feed(payload if isinstance(payload, bytes) else json.dumps(payload).encode()))
    if close:
        assembler.add(reading.close())
    return assembler.message(producer=OWN)


def deltas_of(data: bytes, cuts: list[int] | None = None) -> list[Delta]:
    """What a recording becomes, received in pieces that end at these places."""
    splitter, reading, deltas = SseSplitter(), decoder(), list[Delta]()
    for first, last in itertools.pairwise([0, *sorted(cuts or ()), len(data)]):
        for payload in splitter.feed(data[first:last]):
            deltas += reading.feed(payload)
    for payload in splitter.end():
        deltas += reading.feed(payload)
    return [*deltas, *reading.close()]


def played(data: bytes) -> Message:
    assembler = Assembler()
    assembler.add(deltas_of(data))
    return assembler.message(producer=OWN)


def shape(message: Message) -> list[Any]:
    """The parts without what is made anew each time."""
    return [_shape(part) for part in message.parts]


def _shape(part: object) -> Any:
    assert isinstance(part, TextPart | ThinkingPart | ToolPart)
    assert all(blob.kind == THOUGHT_SIGNATURE for blob in part.blobs)
    signed = [blob.data for blob in part.blobs]
    match part:
        case TextPart():
            return [part.text, *signed]
        case ThinkingPart():
            return {part.field: part.text, "signed": signed} if signed else {part.field: part.text}
        case ToolPart():
            return (part.tool, part.call_id, part.input, part.status, *signed)


# What was recorded

CALL_SIGNATURE, TEXT_SIGNATURE = "EqQBCqEBAdHtim9k3fQ0cGxhbiB0aGUgY2FsbA==", "EogCCoUCAdHtim/QQ2lnbmVkLXRleHQ+LzA5Zg=="
EDIT = {
    "path": "src/app.py",
    "edits": [{"line": 3, "text": 'x = "🙂"\n'}, {"line": 9.5}],
    "dry": True,
    "odd name": None,
}
EXPECTED: dict[str, tuple[str, list[Any], Usage]] = {
    "thoughts_and_text": (
        "stop",
        [
            {
                "thought": "**Weighing it**\n\nThe user wants a greeting.**Choosing**\n\nGerman, 你好 and 🙂.",
            },
            ["Grüß dich, 世界 🙂!"],
            ["", TEXT_SIGNATURE],
        ],
        Usage(input_tokens=29, output_tokens=819, reasoning_tokens=804),
    ),
    "call_with_signature": (
        "tool_calls",
        [["I will look."], ("read", "8f2yJ1pq", {"path": "src/größe.py", "limit": 40}, "pending", CALL_SIGNATURE)],
        Usage(input_tokens=300, output_tokens=94, cache_read_tokens=512, reasoning_tokens=71),
    ),
    "parallel_calls": (
        "tool_calls",
        [
            ("read", "", {"path": "a.py"}, "pending", CALL_SIGNATURE),
            ("read", "", {"path": "b.py"}, "pending"),
            ("list_everything", "", {}, "pending"),
        ],
        Usage(input_tokens=90, output_tokens=161, reasoning_tokens=120),
    ),
    "arguments_in_pieces": (
        "tool_calls",
        [("edit", "", EDIT, "pending", CALL_SIGNATURE)],
        Usage(input_tokens=50, output_tokens=30),
    ),
    "cut_at_the_limit": ("length", [["Long ago, in a"]], Usage(input_tokens=12, output_tokens=5)),
    "blocked_prompt": ("refused", [], Usage(input_tokens=7)),
    "stopped_for_safety": ("refused", [["First you"]], Usage(input_tokens=12, output_tokens=2)),
    "searched_on_the_server": ("stop", [["It is one."]], Usage(input_tokens=64, output_tokens=9)),
}


def test_every_recording_is_expected() -> None:
    assert {path.stem for path in RECORDINGS} == set(EXPECTED)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recording_becomes_this_message(path: Path) -> None:
    reason, parts, counted = EXPECTED[path.stem]
    message = played(path.read_bytes())
    assert (message.finish_reason, shape(message), message.usage) == (reason, parts, counted)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_stream_cut_at_any_byte_gives_equal_deltas(path: Path) -> None:
    data = path.read_bytes()
    whole = deltas_of(data)
    for at in range(1, len(data)):
        assert deltas_of(data, [at]) == whole
    assert deltas_of(data, list(range(1, len(data)))) == whole


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_stream_ending_anywhere_runs_nothing_and_keeps_text(path: Path) -> None:
    data = path.read_bytes().rstrip()
    for size_bytes in range(len(data)):
        splitter, reading, assembler = SseSplitter(), decoder(), Assembler()
        for payload in [*splitter.feed(data[:size_bytes]), *splitter.end()]:
            assembler.add(reading.feed(payload))
        assert not reading.is_complete
        with pytest.raises(Unavailable):
            reading.close()
        message = assembler.message()
        assert all(call.outcome == "never_started" for call in message.calls)
        begun = data[:size_bytes].rpartition(b"\n")[0]
        assert all(text[:5] in message.text for text in _texts(begun))


def _texts(events: bytes) -> list[str]:
    """The words in those events that have come to their end."""
    found = []
    for line in events.splitlines():
        for candidate in json.loads(line.removeprefix(b"data: ")).get("candidates", []) if line.strip() else []:
            found += [p["text"] for p in candidate["content"].get("parts", []) if "text" in p and not p.get("thought")]
    return found


# Signatures and parts


def test_signed_part_stays_separate() -> None:
    message = heard(
        said(word("a")), said(word("b")), said(word("c", S1)), said(word("d")), said(word("", S2)), said(word("e")), STOP
    )
    assert shape(message) == [["ab"], ["c", S1], ["d"], ["", S2], ["e"]]
    assert message.text == "abcde"


def test_a_thought_may_be_signed_too() -> None:
    thoughts = [said(word(text, sign, thought=True)) for text, sign in (("a", ""), ("b", S1), ("c", ""))]
    assert shape(heard(*thoughts, STOP)) == [{"thought": "a"}, {"thought": "b", "signed": [S1]}, {"thought": "c"}]


def test_an_answer_goes_back_as_it_came() -> None:
    sent = [
        word("Look: ", S1),
        called("read", {"z": 1, "a": [1.0, None]}, S2, "id-1"),
        called("read", call_id="id-2"),
        word("", S1),
    ]
    message = heard(said(*sent), STOP)
    body = json.loads(Gemini(GeminiDialect()).encode(request((user("go"), message), model="gemini-3-test", producer=OWN)))
    sent[2]["functionCall"]["args"] = {}
    assert body["contents"][1]["parts"] == sent
    assert list(body["contents"][1]["parts"][1]["functionCall"]["args"]) == ["z", "a"]


def test_two_calls_with_equal_words_are_two() -> None:
    message = heard(said(called("read", {"path": "a"}), called("read", {"path": "a"})), STOP)
    assert [call.input for call in message.calls] == [{"path": "a"}, {"path": "a"}]


def test_the_servers_names_of_tools_become_ours() -> None:
    names = [call.tool for call in heard(said(called("mcp_server_odd_tool_ff097e82"), called("default_api.read")), STOP).calls]
    assert names == ["mcp.server/odd tool", "read"]


def test_non_object_arguments_are_reported_to_the_model() -> None:
    (call,) = heard(said({"functionCall": {"name": "read", "args": "a.py"}}), STOP).calls
    assert (call.status, call.outcome) == ("failed", "invalid")


def test_new_call_ends_the_streaming_one() -> None:
    begun = {"functionCall": {"name": "read", "partialArgs": [{"jsonPath": "$.path", "stringValue": "a"}], "willContinue": True}}
    message = heard(said(begun), said(called("read", {"path": "b"})), STOP)
    assert [call.input for call in message.calls] == [{"path": "a"}, {"path": "b"}]


def test_odd_paths_of_arguments_do_no_harm() -> None:
    paths = ["$", "", "$.a[99999999]", "$[0]", "$.a.b", "$.a[0]", "$.c[1][0].d"]
    pieces = [{"jsonPath": path, "stringValue": "x"} for path in paths]
    (call,) = heard(said({"functionCall": {"name": "read", "partialArgs": pieces}}), STOP).calls
    assert call.input == {"a": {"b": "x"}, "c": [None, [{"d": "x"}]]} or call.outcome is None


def test_call_open_at_the_end_was_cut() -> None:
    begun = said({"functionCall": {"name": "read", "willContinue": True}})
    with pytest.raises(Unavailable, match="in the middle of a call"):
        heard(begun, STOP)
    assert heard(begun, said(finish="MAX_TOKENS")).calls[0].outcome == "cut_off"


# What servers do beside the rules


def test_only_the_first_candidate_counts() -> None:
    second = said(word("No."), finish="SAFETY", index=1)
    assert shape(heard(said(word("Yes.")), second, STOP)) == [["Yes."]]


def test_unknown_parts_fields_and_payloads_are_passed_over() -> None:
    odd: list[dict[str, Any]] = [
        {"hologram": {"data": "x"}},
        {"inlineData": {"mimeType": "image/png", "data": "eA=="}},
        {},
        {"text": None},
    ]
    message = heard(b"no json", b"7", {"novelty": 1}, said(*odd, word("Hi"), novelty={"a": 1}), {"candidates": []}, STOP)
    assert shape(message) == [["Hi"]]


@pytest.mark.parametrize(
    "odd",
    [
        {"thought": "no"},
        {"thoughtSignature": 7},
        {"functionCall": "read"},
        {"text": ["x"]},
        {"functionCall": {"name": 7}},
        {"functionCall": {"name": "read", "partialArgs": [{"jsonPath": None}, {"jsonPath": 3}]}},
    ],
)
def test_misshapen_part_leaves_the_others_alone(odd: dict[str, Any]) -> None:
    spoilt = said({"text": "a"}, odd, {"text": "b"}, usageMetadata=usage(3, 4))
    spoilt["candidates"][0]["index"] = [0]
    message = heard(spoilt, {**STOP, "usageMetadata": None})
    assert (message.text, message.finish_reason, message.usage) == ("ab", "stop", Usage(3, 4))


def test_character_halves_join_and_lone_ones_are_replaced() -> None:
    first = b'{"candidates":[{"content":{"parts":[{"text":"a\\ud83d"}]}}]}'
    second = b'{"candidates":[{"content":{"parts":[{"text":"\\ude00b"}]}}]}'
    assert heard(first, second, STOP).text == "a😀b"
    assert heard(second, STOP).text == "\ufffdb"


def test_empty_answer_is_returned_unchanged() -> None:
    message = heard(STOP)
    assert (message.parts, message.finish_reason, message.finished) == ((), "stop", True)


def test_a_stream_without_a_reason_ended_early() -> None:
    for last in (said(word("Hi")), said(word("Hi"), finish="FINISH_REASON_UNSPECIFIED"), said(word("Hi"), finish="")):
        with pytest.raises(Unavailable, match="ended early"):
            heard(last)


def test_last_reason_counts_when_each_payload_has_one() -> None:
    message = heard(said(word("a"), finish="STOP"), said(word("b"), finish="STOP"), said(word("c"), finish="MAX_TOKENS"))
    assert (message.text, message.finish_reason) == ("abc", "length")


@pytest.mark.parametrize(
    ("word_of_theirs", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("CONTINUATION", "length"),
        *((name, "refused") for name in ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")),
        *((name, "refused") for name in ("IMAGE_SAFETY", "MODEL_ARMOR", "ESCALATION", "NEW_SAFETY_FILTER")),
        ("SOMETHING_NEW", "stop"),
    ],
)
def test_every_reason_means_something(word_of_theirs: str, reason: str) -> None:
    assert heard(said(word("Hi"), finish=word_of_theirs)).finish_reason == reason


def test_a_refusal_says_why() -> None:
    assert heard(said(word("Hi"), finish="RECITATION")).error == "RECITATION"
    ended = said(finish="SAFETY")
    ended["candidates"][0]["finishMessage"] = "Too dangerous."
    assert heard(ended).error == "SAFETY: Too dangerous."
    blocked = heard({"promptFeedback": {"blockReason": "BLOCKLIST", "blockReasonMessage": "A word of it is on a list."}})
    assert (blocked.finish_reason, blocked.error) == ("refused", "BLOCKLIST: A word of it is on a list.")


@pytest.mark.parametrize(
    "name",
    [
        *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"),
        *("MALFORMED_RESPONSE", "OTHER", "IMAGE_OTHER", "NO_IMAGE"),
    ],
)
def test_spoilt_answer_is_worth_another_try(name: str) -> None:
    ended = said(finish=name)
    ended["candidates"][0]["finishMessage"] = "Malformed function call: print(default_api.read("
    with pytest.raises(Unavailable, match="default_api") as failed:
        heard(ended)
    assert tries_for(failed.value, RetrySettings()) == 2


# Counts


@given(*(st.integers(0, 10**6) for _ in range(4)), st.integers(0, 10**6))
def test_tokens_are_counted_once(prompt: int, cached: int, candidates: int, thoughts: int, tool_use: int) -> None:
    counted = usage(prompt, candidates, cached=min(cached, prompt), thoughts=thoughts, tool_use=tool_use)
    found = heard({**STOP, "usageMetadata": counted}).usage or Usage()
    assert found.input_tokens + found.cache_read_tokens == prompt + tool_use
    assert found.output_tokens == candidates + thoughts
    assert found.reasoning_tokens == thoughts


def test_the_last_count_holds_and_nonsense_is_none() -> None:
    assert heard({**said(word("a")), "usageMetadata": usage(5, 1)}, {**STOP, "usageMetadata": usage(5, 9)}).usage == Usage(5, 9)
    assert heard({**STOP, "usageMetadata": {"promptTokenCount": -1, "candidatesTokenCount": 1e300}}).usage == Usage()


# One document instead of a stream


def test_answer_comes_whole_or_as_a_list() -> None:
    gemini = Gemini(GeminiDialect())
    for body in ({**said(word("Hi"), finish="STOP")}, [said(word("H")), said(word("i"), finish="STOP")]):
        assembler = Assembler()
        assembler.add(gemini.read_whole(json.dumps(body, indent=1).encode()))
        assert (assembler.message().text, assembler.message().finish_reason) == ("Hi", "stop")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", BadAnswer),
        (b"<html>", BadAnswer),
        (b"7", BadAnswer),
        (b"{}", BadAnswer),
        (b"[]", BadAnswer),
        (b'[{"candidates":[{"content"', Unavailable),
        (json.dumps([said(word("Hi"))]).encode(), Unavailable),
        (b'[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]', Unavailable),
    ],
)
def test_non_answer_document_is_an_error(body: bytes, kind: type[ProviderError]) -> None:
    with pytest.raises(kind):
        Gemini(GeminiDialect()).read_whole(body)


# Refusals


def refusal(status: int, name: str, message: str, *details: Mapping[str, Any]) -> bytes:
    return json.dumps({"error": {"code": status, "message": message, "status": name, "details": list(details)}}).encode()


QUOTA = "You exceeded your current quota, please check your plan and billing details."
PER_DAY = {"@type": "…QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}
PER_MINUTE = {"@type": "…QuotaFailure", "violations": [{"quotaId": "GenerateContentInputTokensPerModelPerMinute"}]}
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}


@pytest.mark.parametrize(
    ("body", "kind", "is_retried", "delay_s"),
    [
        (refusal(429, "RESOURCE_EXHAUSTED", QUOTA, PER_MINUTE, RETRY), RateLimited, True, 34.4),
        (refusal(429, "RESOURCE_EXHAUSTED", QUOTA, PER_DAY, RETRY), QuotaExhausted, False, None),
        (refusal(429, "RESOURCE_EXHAUSTED", QUOTA, PER_MINUTE), RateLimited, True, None),
        (refusal(429, "RESOURCE_EXHAUSTED", QUOTA), QuotaExhausted, False, None),
        (refusal(429, "RESOURCE_EXHAUSTED", "Resource exhausted, try again."), RateLimited, True, None),
        (refusal(500, "INTERNAL", "An internal error has occurred."), Unavailable, True, None),
        (refusal(503, "UNAVAILABLE", "The model is overloaded."), Unavailable, True, None),
        (refusal(504, "DEADLINE_EXCEEDED", "Deadline expired."), Unavailable, True, None),
        (refusal(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), AuthError, False, None),
        (refusal(403, "PERMISSION_DENIED", "Your API key was reported as leaked."), AuthError, False, None),
        (refusal(404, "NOT_FOUND", "models/gemini-9 is not found for API version v1beta"), BadRequest, False, None),
        (refusal(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), BadRequest, False, None),
        (
            refusal(
                400, "INVALID_ARGUMENT", "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."
            ),
            ContextOverflow,
            False,
            None,
        ),
        (
            refusal(400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."),
            ContextOverflow,
            False,
            None,
        ),
    ],
)
def test_a_refusal_is_understood(body: bytes, kind: type[ProviderError], is_retried: bool, delay_s: float | None) -> None:
    status = json.loads(body)["error"]["code"]
    listed = b"[" + body + b"]"
    for error in (Gemini(GeminiDialect()).read_error(status, {}, each) for each in (body, listed)):
        assert isinstance(error, kind)
        assert error.retryable is is_retried
        assert error.delay_s == delay_s or delay_s is None
    for payload in (body, listed):
        with pytest.raises(kind):
            heard(said(word("Hi")), payload)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("Unknown name \"thinkingLevel\" at 'generation_config.thinking_config': Cannot find field.", "thinkingLevel"),
        ("Unknown name \"response_json_schema\" at 'generation_config': Cannot find field.", "responseJsonSchema"),
        ("Unknown name \"parts\" at 'contents[2].parts[0].function_response': Cannot find field.", "functionResponse.parts"),
        ("Unknown name \"id\" at 'contents[1].parts[0].function_call': Cannot find field.", "id"),
        ("Thinking level MINIMAL is not supported for this model.", "thinkingLevel"),
        ("Budget 0 is invalid. This model only works in thinking mode.", "thinkingBudget"),
        ("Thinking is not enabled for models/gemini-1.5-flash", "thinkingConfig"),
        ("Developer instruction is not enabled for models/gemma-3-27b-it", "systemInstruction"),
        ("Corrupted thought signature.", "thoughtSignature"),
        ("Thought signature is not valid.", "thoughtSignature"),
        ("Function call is missing a thought_signature in functionCall parts.", None),
        ("Please ensure that function call turn comes immediately after a user turn", None),
    ],
)
def test_a_refused_field_is_named(message: str, field: str | None) -> None:
    error = Gemini(GeminiDialect()).read_error(400, {}, refusal(400, "INVALID_ARGUMENT", message))
    assert isinstance(error, BadRequest)
    assert error.field == field


def test_a_wrong_address_is_told_where_it_ends() -> None:
    for body in (b"404 page not found", b'{"error":"Not Found"}', b"<html>Error 404</html>"):
        error = Gemini(GeminiDialect()).read_error(404, {}, body)
        assert isinstance(error, ProviderError)
        assert "host alone" in error.hint
    unknown = Gemini(GeminiDialect()).read_error(404, {}, refusal(404, "NOT_FOUND", "models/x is not found"))
    assert isinstance(unknown, ProviderError)
    assert "models list" in unknown.hint


@given(
    st.lists(
        st.sampled_from([word("a"), word("b", S1), word("c", thought=True), word("d", S2, thought=True), called("read")]),
        max_size=6,
    )
)
def test_any_parts_come_out_in_order(parts: list[dict[str, Any]]) -> None:
    together = heard(said(*parts), STOP)
    apart = heard(*(said(part) for part in parts), STOP)
    assert shape(together) == shape(apart)
    assert together.text == "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
    assert any(isinstance(delta, TextDelta) for delta in decoder().feed(json.dumps(said(word("x"))).encode()))
