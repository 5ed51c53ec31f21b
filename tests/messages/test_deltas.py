"""The assembler: deltas in, a message out."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.messages.deltas import (
    Assembler,
    BreakDelta,
    CallDelta,
    Delta,
    FinishDelta,
    TextDelta,
    ThinkingDelta,
    UsageDelta,
    join,
)
from wolo.messages.message import FinishReason, Message, Producer, Usage
from wolo.messages.parts import Blob, TextPart, ThinkingPart, ToolPart


def assemble(*deltas: Delta) -> Message:
    assembler = Assembler()
    assembler.add(deltas)
    return assembler.message()


def finished(*deltas: Delta, reason: FinishReason = "tool_calls") -> Message:
    return assemble(*deltas, FinishDelta(reason))


def test_deltas_become_parts_in_the_order_they_came() -> None:
    message = finished(
        ThinkingDelta("\n1. "),
        ThinkingDelta("look"),
        TextDelta("I "),
        TextDelta("read."),
        CallDelta(0, "call_a", "read", '{"pa'),
        CallDelta(0, arguments='th": "a"}'),
        TextDelta("more"),
    )
    thinking, text, call, more = message.parts
    assert isinstance(thinking, ThinkingPart)
    assert thinking.text == "\n1. look"
    assert isinstance(text, TextPart)
    assert text.text == "I read."
    assert isinstance(call, ToolPart)
    assert (call.tool, call.call_id, call.input, call.raw_input) == ("read", "call_a", {"path": "a"}, '{"path": "a"}')
    assert call.status == "pending"
    assert call.outcome is None
    assert more == msgspec.structs.replace(TextPart(text="more"), id=more.id)
    assert message.role == "assistant"
    assert message.finished
    assert message.finish_reason == "tool_calls"


def test_usage_and_producer_are_kept_last_usage_wins() -> None:
    assembler = Assembler()
    assembler.add([UsageDelta(Usage(input_tokens=1)), UsageDelta(Usage(input_tokens=9)), FinishDelta("stop", "eos")])
    message = assembler.message(message_id="msg_1", producer=Producer(provider="p"))
    assert message.usage == Usage(input_tokens=9)
    assert (message.id, message.producer) == ("msg_1", Producer(provider="p"))


def test_thinking_fields_stay_separate_with_their_blobs() -> None:
    message = assemble(ThinkingDelta("a", "reasoning"), ThinkingDelta("b", "text"), ThinkingDelta("", "text", (Blob("k", "d"),)))
    assert [(part.text, part.field, part.blobs) for part in message.of(ThinkingPart)] == [
        ("a", "reasoning", ()),
        ("b", "text", (Blob("k", "d"),)),
    ]


def test_lone_closing_tag_turns_text_into_thinking() -> None:
    message = assemble(TextDelta("pla"), TextDelta("n"), ThinkingDelta("!", "text", takes_text=True), TextDelta("Hi"))
    assert message.reasoning_content == "plan!"
    assert message.text == "Hi"


def test_calls_sharing_an_id_get_own_ids() -> None:
    message = finished(
        CallDelta(0, "x", "read", '{"a": 1}'), CallDelta(1, "x", "read", '{"a": 2}'), CallDelta(2, "x_2", "read", '{"a": 3}')
    )
    ids = [call.wire_id for call in message.calls]
    assert ids[0] == "x"
    assert len(set(ids)) == 3


def test_call_without_id_goes_by_its_own() -> None:
    (call,) = finished(CallDelta(0, tool="read")).calls
    assert call.call_id == ""
    assert call.wire_id == call.id
    assert call.id.startswith("call_")


def test_the_same_call_sent_twice_is_one_call() -> None:
    message = finished(CallDelta(0, "c", "read", '{"a": 1}'), CallDelta(1, "c", "read", '{"a": 1}'))
    assert len(message.calls) == 1


def test_calls_without_ids_stay_distinct() -> None:
    assert len(finished(CallDelta(0, tool="read", arguments="{}"), CallDelta(1, tool="read", arguments="{}")).calls) == 2


def test_unreadable_arguments_fail_their_call_only() -> None:
    message = finished(
        CallDelta(0, "a", "shell", '{"command":"touch X", description":"y"}'), CallDelta(1, "b", "read", '{"path": "f"}')
    )
    broken, valid = message.calls
    assert (broken.status, broken.outcome, broken.input) == ("failed", "invalid", {})
    assert broken.raw_input == '{"command":"touch X", description":"y"}'
    assert "shell" in broken.output
    assert "character 23" in broken.output
    assert "description" in broken.output
    assert valid.status == "pending"


@pytest.mark.parametrize("arguments", ['{"path": "a", "content": "half', '{"path": "a"}', ""])
def test_no_call_of_a_cut_answer_runs(arguments: str) -> None:
    message = finished(CallDelta(0, "a", "write", arguments), UsageDelta(Usage(output_tokens=4096)), reason="length")
    (call,) = message.calls
    assert (call.status, call.outcome) == ("failed", "cut_off")
    assert "4096 tokens" in call.output


def test_no_call_of_a_refused_answer_may_run() -> None:
    (call,) = finished(CallDelta(0, "a", "write", "{}"), reason="refused").calls
    assert (call.status, call.outcome) == ("failed", "never_started")


def test_early_ended_answer_keeps_text_and_runs_nothing() -> None:
    message = assemble(TextDelta("half an ans"), CallDelta(0, "a", "write", '{"path": "a"}'))
    assert message.text == "half an ans"
    assert not message.finished
    assert message.finish_reason == ""
    assert message.calls[0].outcome == "never_started"


def test_deep_argument_nest_is_an_error_result() -> None:
    (call,) = finished(CallDelta(0, "a", "write", '{"a":' * 100_000)).calls
    assert call.outcome == "invalid"


def test_character_halves_join_and_lone_ones_are_replaced() -> None:
    message = finished(
        TextDelta("\ud83d"),
        TextDelta("\ude00 \ud83d"),
        CallDelta(0, "a", "t", '{"x": "\ud83d'),
        CallDelta(0, arguments='\ude00"}'),
    )
    assert message.text == "😀 \ufffd"
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_half_characters_in_names_and_blobs_break_nothing() -> None:
    half = Blob("anthropic.signature", "EqoB\ud800")
    message = finished(
        ThinkingDelta("Hm.", blobs=(half, Blob("anthropic.signature", "EqoB")), item_id="rs_\ud800"),
        ThinkingDelta("", "summary", blobs=(half,)),
        CallDelta(0, "call_\ud800", "read", "{}", item_id="fc_\ud800", blobs=(half,)),
    )
    thinking, call = message.parts
    assert (thinking.item_id, thinking.blobs) == ("rs_\ufffd", (Blob("anthropic.signature", "EqoB"),))
    assert isinstance(call, ToolPart)
    assert (call.call_id, call.item_id, call.blobs) == ("call_\ufffd", "fc_\ufffd", ())
    assert msgspec.json.encode(message)


@given(
    st.lists(st.sampled_from(["a", "\n", " ", "字", "😀", "{"]), max_size=30),
    st.lists(st.integers(1, 5), min_size=1, max_size=8),
)
def test_text_cuts_change_nothing(letters: list[str], sizes: list[int]) -> None:
    text = "".join(letters)
    pieces, at = [], 0
    for size in itertools.cycle(sizes):
        if at >= len(text):
            break
        pieces.append(text[at : at + size])
        at += size
    assert assemble(*map(TextDelta, pieces)).text == text
    assert assemble(*(ThinkingDelta(piece) for piece in pieces)).reasoning_content == text


def test_message_may_be_requested_repeatedly() -> None:
    assembler = Assembler()
    assembler.add([TextDelta("a"), CallDelta(0, "c", "read", "{}")])
    first = assembler.message(message_id="m")
    assembler.add([CallDelta(1, "d", "read", "{}"), FinishDelta("tool_calls")])
    second = assembler.message(message_id="m")
    assert first.calls[0].id == second.calls[0].id
    assert [call.status for call in second.calls] == ["pending", "pending"]


def test_neighbouring_fragments_are_joined_and_nothing_else() -> None:
    blob = Blob("k", "data")
    deltas = [
        TextDelta("a"),
        TextDelta("b"),
        ThinkingDelta("c", "reasoning"),
        ThinkingDelta("d", "reasoning"),
        ThinkingDelta("e", "thinking"),
        ThinkingDelta("f", "thinking", (blob,)),
        ThinkingDelta("g", "thinking"),
        CallDelta(0, "id", "read", "{"),
        CallDelta(0, arguments='"a":'),
        CallDelta(0, arguments="1}"),
        CallDelta(1, arguments="{}"),
        CallDelta(1, arguments="{}", replaces=True),
        BreakDelta(),
        TextDelta("h"),
        BreakDelta(),
        TextDelta("i"),
        TextDelta(""),
    ]
    assert join(deltas) == [
        TextDelta("ab"),
        ThinkingDelta("cd", "reasoning"),
        ThinkingDelta("e", "thinking"),
        ThinkingDelta("fg", "thinking", (blob,)),
        CallDelta(0, "id", "read", '{"a":1}'),
        CallDelta(1, arguments="{}"),
        CallDelta(1, arguments="{}", replaces=True),
        BreakDelta(),
        TextDelta("h"),
        BreakDelta(),
        TextDelta("i"),
    ]
