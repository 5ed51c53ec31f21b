"""Streams of Ollama's own API become messages, however they are cut and wherever they end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.replies_ollama import called, done, said
from tests.formats.histories import OWN, TOOLS, request
from tests.formats.streams import called as calls_in
from tests.formats.streams import cut, shape
from wolo.errors import AuthError, BadAnswer, ContextOverflow, ProviderError, Unavailable
from wolo.formats.ollama import Ollama, OllamaDialect
from wolo.messages.deltas import Assembler, FinishDelta
from wolo.messages.message import Message
from wolo.models.http.response_body import LineSplitter

RECORDINGS = sorted((Path(__file__).parent / "recordings/ollama").glob("*.ndjson"))
READ_A = {"path": "a"}


def encoded(line: dict[str, Any] | bytes) -> bytes:
    return line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode()


def decode(*lines: dict[str, Any] | bytes, dialect: OllamaDialect | None = None, close: bool = True) -> Message:
    assembler = Assembler()
    decoder = Ollama(dialect or OllamaDialect()).decoder(request(tools=TOOLS))
    for line in lines:
        assembler.add(decoder.feed(encoded(line)))
    if close:
        assembler.add(decoder.close())
    return assembler.message(producer=OWN)


def played(stream: bytes, size_bytes: int) -> Message:
    splitter = LineSplitter()
    lines = [line for at in range(0, len(stream), size_bytes) for line in splitter.feed(stream[at : at + size_bytes])]
    return decode(*lines, *splitter.end())


# What is said


def test_thinking_text_and_a_call_become_a_message() -> None:
    message = decode(
        said(thinking="I should "),
        said(thinking="look."),
        said(content="Let me "),
        said(content="see."),
        said(tool_calls=[called("read", READ_A, id="call_7")]),
        done(prompt=120, answer=30),
    )
    assert shape(message) == [{"thinking": "I should look."}, "Let me see.", ("read", "call_7", READ_A, "pending")]
    assert message.finish_reason == "tool_calls"
    assert message.usage is not None
    assert (message.usage.input_tokens, message.usage.output_tokens) == (120, 30)


def test_calls_come_together_apart_numbered_and_without_ids() -> None:
    apart = decode(said(tool_calls=[called("read", READ_A)]), said(tool_calls=[called("read", READ_A)]), done())
    assert calls_in(apart) == [("read", READ_A)] * 2
    together = decode(said(tool_calls=[called("read", READ_A), called("read", {"path": "b"})]), done())
    assert calls_in(together) == [("read", READ_A), ("read", {"path": "b"})]
    in_the_last_line = decode({**done(), "message": {"tool_calls": [called("read", READ_A)]}})
    assert calls_in(in_the_last_line) == [("read", READ_A)]


def test_equal_numbered_call_is_a_repetition() -> None:
    numbered = {"function": {"index": 0, "name": "read", "arguments": READ_A}}
    other = {"function": {"index": 0, "name": "read", "arguments": {"path": "b"}}}
    message = decode(said(tool_calls=[numbered]), said(tool_calls=[numbered, other]), done())
    assert calls_in(message) == [("read", READ_A), ("read", {"path": "b"})]


@pytest.mark.parametrize(
    ("arguments", "read", "raw"),
    [
        ({"b": 1, "a": 2}, {"b": 1, "a": 2}, '{"b": 1, "a": 2}'),
        ({}, {}, "{}"),
        (None, {}, "{}"),
        ('{"path": "a"}', READ_A, '{"path": "a"}'),
        ("", {}, ""),
    ],
)
def test_arguments_keep_their_order_and_may_be_text(arguments: Any, read: dict[str, Any], raw: str) -> None:
    (call,) = decode(said(tool_calls=[called("read", arguments)]), done()).calls
    assert (call.input, call.raw_input) == (read, raw)


def test_escapes_that_the_server_added_are_taken_out() -> None:
    line = (
        rb'{"message":{"tool_calls":[{"function":{"name":"read","arguments":{"z":"\u003ca\u0026b\u003e","a":1}}}]},"done":true}'
    )
    (call,) = decode(line).calls
    assert call.raw_input == '{"z": "<a&b>", "a": 1}'


def test_arguments_that_are_no_object_do_not_run() -> None:
    (call,) = decode(said(tool_calls=[called("read", [1])]), done()).calls
    assert (call.status, call.outcome) == ("failed", "invalid")


def test_tools_get_their_own_names_back() -> None:
    wire = json.loads(Ollama(OllamaDialect()).encode(request()))["tools"][1]["function"]["name"]
    assert wire != TOOLS[1].name
    assert calls_in(decode(said(tool_calls=[called(wire, {})]), done())) == [(TOOLS[1].name, {})]


# What models leave in the text


@pytest.mark.parametrize("size", [1, 3, 100])
def test_reasoning_between_tags_is_reasoning(size: int) -> None:
    pieces = [said(content=piece) for piece in cut("<think>hm</think>\n\nHi there.", [size])]
    assert shape(decode(*pieces, done())) == [{"text": "hm"}, "Hi there."]
    plain = decode(*pieces, done(), dialect=OllamaDialect(think_tags=False))
    assert plain.text.startswith("<think>")


def test_tags_behind_named_reasoning_are_text() -> None:
    assert shape(decode(said(thinking="hm"), said(content="<think>x</think>"), done())) == [
        {"thinking": "hm"},
        "<think>x</think>",
    ]


@pytest.mark.parametrize("size", [1, 7, 500])
def test_written_call_counts_without_a_real_one(size: int) -> None:
    written = '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>'
    pieces = [said(content=piece) for piece in cut("I read.\n" + written, [size])]
    leaked = decode(*pieces, done())
    assert calls_in(leaked) == [("read", READ_A)]
    assert leaked.finish_reason == "tool_calls"
    assert calls_in(decode(*pieces, said(tool_calls=[called("read", READ_A)]), done())) == [("read", READ_A)]
    other = decode(*pieces, said(tool_calls=[called("read", {"path": "b"})]), done())
    assert calls_in(other) == [("read", {"path": "b"})]
    assert '{"name": "read", "arguments": {"path": "a"}}' in other.text
    assert written in decode(*pieces, done(), dialect=OllamaDialect(leaked_calls=False)).text


def test_two_calls_written_as_text_are_two() -> None:
    written = [f'<tool_call>{{"name": "read", "arguments": {{"path": "{name}"}}}}</tool_call>' for name in "ab"]
    assert calls_in(decode(said(content="\n".join(written)), done())) == [("read", READ_A), ("read", {"path": "b"})]


# How it ends


@pytest.mark.parametrize(
    ("reason", "meaning"),
    [("stop", "stop"), ("length", "length"), ("load", "stop"), ("unload", "stop"), (None, "stop"), ("new", "stop")],
)
def test_the_reason_is_told(reason: str | None, meaning: str) -> None:
    message = decode(said(content="Hi"), done(reason))
    assert message.finish_reason == meaning
    assert message.finished


def test_call_cut_by_the_limit_never_runs() -> None:
    (call,) = decode(said(tool_calls=[called("read", READ_A)]), done("length")).calls
    assert call.outcome == "cut_off"


def test_a_model_that_was_only_loaded_said_nothing() -> None:
    message = decode(done("load", prompt=None, answer=None))
    assert message.parts == ()
    assert message.usage is None


@pytest.mark.parametrize(
    ("prompt", "answer", "counted"), [(None, 5, (0, 5)), (-3, 5, (0, 5)), (10**15, 5, (0, 5)), (7, None, (7, 0))]
)
def test_counts_may_be_missing_or_mad(prompt: int | None, answer: int | None, counted: tuple[int, int]) -> None:
    usage = decode(said(content="Hi"), done(prompt=prompt, answer=answer)).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == counted


def test_stream_without_last_line_ended_early_callless() -> None:
    lines: list[dict[str, Any] | bytes] = [
        said(content="Hi"),
        said(tool_calls=[called("read", READ_A)]),
        b"no json",
        b"[1]",
        b'"x"',
    ]
    with pytest.raises(Unavailable, match="3 chunks were not valid JSON"):
        decode(*lines)
    (call,) = decode(*lines, close=False).calls
    assert call.outcome == "never_started"


def test_answer_completes_exactly_with_its_last_line() -> None:
    decoder = Ollama(OllamaDialect()).decoder(request())
    decoder.feed(encoded(said(content="Hi")))
    assert not decoder.is_complete
    decoder.feed(encoded(done()))
    assert decoder.is_complete


# What keeps to no rule


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"error": "an error was encountered while running the model: unexpected EOF"}, Unavailable),
        ({"error": "the input length exceeds the context length"}, ContextOverflow),
        ({"error": "unauthorized"}, AuthError),
        ({"error": {"message": "model runner has unexpectedly stopped"}, "done": True}, Unavailable),
        ({"detail": "upstream timed out"}, Unavailable),
    ],
)
def test_an_error_in_the_stream_is_raised(line: dict[str, Any], kind: type[ProviderError]) -> None:
    decoder = Ollama(OllamaDialect()).decoder(request())
    decoder.feed(encoded(said(content="Hi")))
    with pytest.raises(kind):
        decoder.feed(encoded(line))


def test_odd_lines_are_read_as_far_as_possible() -> None:
    message = decode(
        {"status": "loading model"},
        {"message": None, "done": False, "error": None},
        {"message": {"role": "assistant", "content": None, "thinking": 5, "tool_calls": None}, "done": False},
        {"message": {"content": "Hi", "tool_calls": {"function": {"name": "read", "arguments": READ_A, "index": "0"}}}},
        {"message": {"tool_calls": [{}, 1, {"function": None}, {"function": {}}]}, "prompt_eval_count": 1.5},
        {"done": True, "done_reason": 7, "prompt_eval_count": 12.0, "eval_count": "x"},
    )
    assert shape(message) == ["Hi", ("read", "", READ_A, "pending")]
    assert message.usage is not None
    assert message.usage.input_tokens == 12


def test_halves_of_characters_do_no_harm() -> None:
    assert decode(rb'{"message":{"content":"a\ud83d"}}', done()).text == "a\ufffd"
    assert decode(b'{"message":{"content":"a\xff"}}', done()).text == "a\ufffd"


@pytest.mark.parametrize("end", [{}, {"done": True, "done_reason": "stop"}])
def test_an_answer_in_one_document_is_whole(end: dict[str, Any]) -> None:
    document = {"message": {"content": "<think>hm</think>Hi", "tool_calls": [called("read", READ_A)]}, "eval_count": 3, **end}
    assembler = Assembler()
    deltas = Ollama(OllamaDialect()).read_whole(json.dumps(document, indent=2).encode())
    assembler.add(deltas)
    assert shape(assembler.message()) == [{"text": "hm"}, "Hi", ("read", "", READ_A, "pending")]
    assert isinstance(deltas[-1], FinishDelta)
    assert shape(decode(json.dumps({**document, "done": True}, indent=2).encode())) == shape(assembler.message())


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"no", BadAnswer), (b"{}", BadAnswer), (b'{"choices":[]}', BadAnswer), (b'{"error":"overloaded"}', Unavailable)],
)
def test_a_document_that_is_no_answer_is_named(body: bytes, kind: type[ProviderError]) -> None:
    with pytest.raises(kind):
        Ollama(OllamaDialect()).read_whole(body)


# Recordings


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_cuts_do_not_matter(path: Path) -> None:
    stream = path.read_bytes()
    expected = shape(played(stream, len(stream)))
    assert expected
    for size_bytes in (1, 2, 3, 5, 64, 1000):
        assert shape(played(stream, size_bytes)) == expected
    assert shape(played(stream.replace(b"\n", b"\r\n"), 7)) == expected


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_an_answer_cut_anywhere_runs_nothing(path: Path) -> None:
    stream = path.read_bytes().rstrip()
    for size_bytes in range(0, len(stream), 7):
        lines = _lines_of(stream[:size_bytes])
        with pytest.raises(Unavailable):
            decode(*lines)
        message = decode(*lines, close=False)
        assert all(call.outcome == "never_started" for call in message.calls)


def test_recordings_are_there() -> None:
    assert len(RECORDINGS) >= 3


def _lines_of(stream: bytes) -> Sequence[bytes]:
    splitter = LineSplitter()
    return [*splitter.feed(stream), *splitter.end()]
