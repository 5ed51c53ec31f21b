"""Requests of the Responses API: valid by construction, append-only, reasoning to its producer only."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.formats.histories import FOREIGN, OWN, PNG, TOOLS, histories, request
from wolo.formats.encoding.encoder import CONTINUE
from wolo.formats.format import Request, ThinkingLevel, ToolSpec
from wolo.formats.lint.responses import lint
from wolo.formats.openai_responses import OpenAIResponses, ResponsesDialect
from wolo.formats.openai_responses.encode import ENCRYPTED, ORIGINAL_PARTS
from wolo.messages.message import Message, system, user
from wolo.messages.parts import AnyPart, Blob, FilePart, ImagePart, TextPart, ThinkingPart, ToolPart
from wolo.models.prompt_cache import all_blocks

OPENAI = ResponsesDialect(summary="auto", cache_key=True, parallel_flag=True, sampling="fixed")
PLAIN = ResponsesDialect(
    system="system", images=False, effort=False, encrypted_reasoning=False, reasoning_replay="never", phase=False
)
OPEN = ResponsesDialect(system="developer", files=False, reasoning_replay="always", strict_field=False, schema_null_types=False)
DIALECTS = {"generic": ResponsesDialect(), "openai": OPENAI, "plain": PLAIN, "open weights": OPEN}
BODY_KEYS = {
    *("model", "instructions", "input", "tools", "stream", "store", "include", "reasoning", "parallel_tool_calls"),
    *("max_output_tokens", "temperature", "top_p", "text", "prompt_cache_key"),
}

dialects = st.sampled_from(list(DIALECTS.values()))


def body_of(dialect: ResponsesDialect, asked: Request) -> dict[str, Any]:
    body = msgspec.json.decode(OpenAIResponses(dialect).encode(asked))
    assert isinstance(body, dict)
    return body


def input_of(*history: Message, dialect: ResponsesDialect | None = None) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = body_of(dialect or ResponsesDialect(), request(history))["input"]
    return items


def answered(*parts: AnyPart, **fields: Any) -> Message:
    return Message(**{"role": "assistant", "parts": parts, "producer": OWN, "finished": True, **fields})


def thought(id: str = "rs_1", text: str = "", encrypted: str = "gAAA", *more: Blob) -> ThinkingPart:
    blobs = (Blob(ENCRYPTED, encrypted),) if encrypted else ()
    return ThinkingPart(text=text, item_id=id, field="summary", blobs=(*blobs, *more))


def said(text: str = "I look.", id: str = "msg_1", **fields: Any) -> TextPart:
    return TextPart(text=text, item_id=id, **fields)


def done(call_id: str = "call_1", id: str = "fc_1", **fields: Any) -> ToolPart:
    return ToolPart(
        **{
            **{"tool": "read", "call_id": call_id, "item_id": id, "input": {"path": "a"}, "raw_input": '{"path":"a"}'},
            **{"status": "completed", "outcome": "ok", "output": "text of a"},
            **fields,
        }
    )


def kinds(items: list[dict[str, Any]]) -> list[str]:
    """`reasoning rs_1`, `function_call fc_1`: each item with its id, if it has one."""
    return [" ".join([item.get("role", item["type"]), *([item["id"]] if "id" in item else [])]) for item in items]


# How it is used


def test_a_conversation_becomes_the_body_of_a_request() -> None:
    history = (user("Read a"), answered(thought(text="Hm."), said(phase="commentary"), done()), user("Thanks"))
    asked = request(history, tools=TOOLS[:1], thinking="high", max_tokens=100, session_id="ses_1")
    assert body_of(OPENAI, asked) == {
        "model": "m-1",
        "instructions": "You are Wolo.",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Read a"}]},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Hm."}],
                "encrypted_content": "gAAA",
            },
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
                "phase": "commentary",
            },
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": '{"path":"a"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "text of a"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Thanks"}]},
        ],
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
                "strict": False,
            }
        ],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "auto"},
        "parallel_tool_calls": True,
        "max_output_tokens": 100,
        "prompt_cache_key": "ses_1",
    }


# Properties


@st.composite
def replayable(draw: st.DrawFn) -> tuple[Message, ...]:
    """Histories in which some parts carry ids and encrypted reasoning, rightly or not."""
    numbers = itertools.count()

    def named(part: AnyPart) -> AnyPart:
        prefix = "rs" if isinstance(part, ThinkingPart) else "msg" if isinstance(part, TextPart) else "fc"
        choices = [f"{prefix}_{next(numbers)}"] * 5 + [
            f"{prefix}_same",
            "",
            f"{prefix}_{'9' * 70}",
            "ws_1",
            f"{prefix}_é",
            f"{prefix}_",
        ]
        part = replace(part, item_id=draw(st.sampled_from(choices)))
        if isinstance(part, ThinkingPart) and draw(st.sampled_from([True, True, True, False])):
            return replace(part, blobs=(*part.blobs, Blob(ENCRYPTED, draw(st.sampled_from(["gAAA", "gBBB==", "\ud800"])))))
        return part

    history = draw(histories)
    return tuple(replace(message, parts=tuple(map(named, message.parts))) for message in history)


@given(replayable(), dialects)
def test_every_history_becomes_universally_valid_request(history: tuple[Message, ...], dialect: ResponsesDialect) -> None:
    before = [repr(message) for message in history]
    body = body_of(dialect, request(history))
    assert lint({**body, "store": dialect.reasoning_replay == "always"}) == []
    assert set(body) <= BODY_KEYS
    assert [repr(message) for message in history] == before


@given(replayable(), dialects)
def test_equal_histories_give_equal_bytes_however_they_grew(history: tuple[Message, ...], dialect: ResponsesDialect) -> None:
    grown = OpenAIResponses(dialect)
    for count in range(len(history) + 1):
        asked = request(history[:count])
        assert grown.encode(asked) == OpenAIResponses(dialect).encode(asked)


@given(replayable(), replayable(), st.integers(0, 8), dialects)
def test_history_changed_midway_is_laid_out_anew(
    history: tuple[Message, ...], other: tuple[Message, ...], at: int, dialect: ResponsesDialect
) -> None:
    used = OpenAIResponses(dialect)
    for changed in (history, history[:at] + other, history[:at], history):
        assert used.encode(request(changed)) == OpenAIResponses(dialect).encode(request(changed))


@given(replayable(), dialects)
def test_request_begins_with_the_items_before(history: tuple[Message, ...], dialect: ResponsesDialect) -> None:
    opening = next((at for at, message in enumerate(history) if message.role != "system"), len(history))
    bodies = [body_of(dialect, request(history[:count])) for count in range(opening + 1, len(history) + 1)]
    go_on = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": CONTINUE}]}
    sent = [body for body in bodies if body["input"][-1] != go_on]
    for before, now in itertools.pairwise(sent):
        assert now["input"][: len(before["input"])] == before["input"]


@given(replayable(), dialects)
def test_nothing_opaque_reaches_another_producer(history: tuple[Message, ...], dialect: ResponsesDialect) -> None:
    stranger = replace(OWN, model="another")
    items = body_of(dialect, request(history, producer=stranger))["input"]
    assert not any("id" in item or "phase" in item or item["type"] == "reasoning" for item in items)


@given(replayable())
def test_encrypted_reasoning_goes_back_unchanged(history: tuple[Message, ...]) -> None:
    written = {
        (part.item_id, blob.data)
        for message in history
        if message.producer == OWN
        for part in message.of(ThinkingPart)
        for blob in part.blobs
    }
    for item in body_of(OPENAI, request(history))["input"]:
        if item["type"] == "reasoning":
            assert (item["id"], item["encrypted_content"]) in written


@given(replayable())
def test_each_call_batch_is_answered_in_order(history: tuple[Message, ...]) -> None:
    items = body_of(OPENAI, request(history))["input"]
    for is_result, run in itertools.groupby(items, lambda item: item["type"] == "function_call_output"):
        if is_result:
            answers = [item["call_id"] for item in run]
            calls = [item["call_id"] for item in items if item["type"] == "function_call" and item["call_id"] in answers]
            assert answers == calls


# Reasoning and ids


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((thought(), said(), done()), ["reasoning rs_1", "assistant msg_1", "function_call fc_1"]),
        ((thought(), done(), done("call_2", "fc_2")), ["reasoning rs_1", "function_call fc_1", "function_call fc_2"]),
        ((thought(), thought("rs_2"), done()), ["reasoning rs_1", "reasoning rs_2", "function_call fc_1"]),
        (
            (thought(), said(), thought("rs_2"), done()),
            ["reasoning rs_1", "assistant msg_1", "reasoning rs_2", "function_call fc_1"],
        ),
        ((thought(encrypted=""), done()), ["function_call"]),
        ((thought(id="r1"), done()), ["function_call"]),
        ((thought(), done(id="")), ["function_call"]),
        ((thought(), said(" "), done()), ["function_call"]),
        ((said(), thought()), ["assistant msg_1"]),
        ((thought(encrypted=""), said(), thought("rs_2"), done()), ["assistant", "reasoning rs_2", "function_call fc_1"]),
        ((thought(), thought(), done()), ["function_call"]),
        ((done(id="fc_" + "9" * 62),), ["function_call"]),
        ((said(), said("More.")), ["assistant msg_1", "assistant"]),
    ],
)
def test_reasoning_goes_with_its_result_or_not(parts: tuple[AnyPart, ...], expected: list[str]) -> None:
    outputs = ["function_call_output"] * sum(isinstance(part, ToolPart) for part in parts)
    sent = kinds(input_of(user("hi"), answered(*parts), user("go on")))
    assert sent == ["user", *expected, *outputs, "user"]


def test_an_id_goes_out_once() -> None:
    """A careless copy of a message would be refused as a duplicate item."""
    sent = kinds(input_of(user("a"), answered(thought(), said()), user("b"), answered(thought(), said())))
    assert sent == ["user", "reasoning rs_1", "assistant msg_1", "user", "assistant", "user"]


def test_another_models_answer_is_plain_text() -> None:
    history = (user("hi"), answered(thought(), said(phase="final_answer"), producer=FOREIGN), user("go on"))
    assert input_of(*history)[1:2] == [{"type": "message", "role": "assistant", "content": "I look."}]


def test_summary_of_several_parts_returns_unchanged() -> None:
    pieces = [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]
    as_it_came = Blob(ORIGINAL_PARTS, json.dumps({"summary": pieces}))
    (_, reasoning, *_) = input_of(user("hi"), answered(thought("rs_1", "one\n\ntwo", "gAAA", as_it_came), said()))
    assert reasoning == {"type": "reasoning", "id": "rs_1", "summary": pieces, "encrypted_content": "gAAA"}


@pytest.mark.parametrize("broken", ["", "[", "[1]", '{"summary": 5}', '{"summary": [{"type": "summary_text"}, 7]}'])
def test_a_damaged_blob_costs_no_request(broken: str) -> None:
    items = input_of(user("hi"), answered(thought("rs_1", "hm", "gAAA", Blob(ORIGINAL_PARTS, broken)), said()))
    assert lint({"input": items, "store": False}) == []


def test_open_reasoning_returns_where_the_server_reads_it() -> None:
    plain = ThinkingPart(text="Hm.", field="reasoning_text", item_id="rs_1")
    history = (user("hi"), answered(plain, done()))
    assert kinds(input_of(*history)) == ["user", "function_call", "function_call_output"]
    (_, reasoning, *_) = input_of(*history, dialect=OPEN)[1:]
    assert reasoning == {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}


# What a user sends


def test_images_and_files_are_native_everywhere() -> None:
    image, file = ImagePart(media_type="image/png", data=PNG, detail="high"), FilePart(name="a.pdf", data=b"%PDF")
    linked = (ImagePart(url="https://x/y.png", detail="odd"), FilePart(url="https://x/y.pdf"))
    (asked, _, result) = input_of(user("Look", *linked), answered(done(output_parts=(image, file))))
    assert asked["content"] == [
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "detail": "auto", "image_url": "https://x/y.png"},
        {"type": "input_file", "file_url": "https://x/y.pdf"},
    ]
    assert result["output"] == [
        {"type": "input_text", "text": "text of a"},
        {"type": "input_image", "detail": "high", "image_url": "data:image/png;base64,iVBORw0KGgo="},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
    ]


def test_unaccepted_part_is_named_in_words() -> None:
    (asked, _, result) = input_of(
        user("Look", ImagePart(data=PNG)), answered(done(output_parts=(ImagePart(data=PNG),))), dialect=PLAIN
    )[1:]
    note = "[image, not sent: this model does not take images]"
    assert asked["content"] == [{"type": "input_text", "text": "Look"}, {"type": "input_text", "text": note}]
    assert result["output"] == f"text of a\n{note}"


def test_a_failed_call_says_so_in_its_output() -> None:
    (*_, result) = input_of(user("hi"), answered(done(status="failed", outcome="denied_by_person", output="")))
    assert result["output"].startswith("The user denied this call.")


@pytest.mark.parametrize(("dialect", "role"), [(PLAIN, "system"), (OPEN, "developer")])
def test_the_prompt_can_be_an_item(dialect: ResponsesDialect, role: str) -> None:
    body = body_of(dialect, request((user("hi"),)))
    assert "instructions" not in body
    assert body["input"][0] == {"type": "message", "role": role, "content": [{"type": "input_text", "text": "You are Wolo."}]}


def test_conversation_keeps_its_own_system_message() -> None:
    assert body_of(OPENAI, request((system("Another."), user("hi"))))["instructions"] == "Another."


# Options


@pytest.mark.parametrize(
    ("level", "levels", "expected"),
    [
        (None, (), None),
        ("off", (), "none"),
        ("off", ("off", "low"), "none"),
        ("off", ("minimal", "high"), "minimal"),
        ("max", ("off", "low", "high"), "high"),
        ("xhigh", (), "xhigh"),
    ],
)
def test_a_level_becomes_an_effort(level: ThinkingLevel | None, levels: tuple[ThinkingLevel, ...], expected: str | None) -> None:
    body = body_of(ResponsesDialect(thinking_levels=levels), request((user("hi"),), thinking=level))
    assert body.get("reasoning") == (None if expected is None else {"effort": expected})


def test_no_summary_is_requested_without_reasoning() -> None:
    assert body_of(OPENAI, request((user("hi"),), thinking="off"))["reasoning"] == {"effort": "none"}


def test_unreasoning_model_is_asked_for_none() -> None:
    body = body_of(PLAIN, request((user("hi"),), thinking="high"))
    assert "reasoning" not in body
    assert "include" not in body


def test_sampling_is_sent_where_it_is_taken() -> None:
    asked = request((user("hi"),), temperature=0.5, top_p=float("nan"))
    assert body_of(ResponsesDialect(), asked)["temperature"] == 0.5
    assert "top_p" not in body_of(ResponsesDialect(), asked)
    assert "temperature" not in body_of(OPENAI, asked)


def test_a_limit_is_never_below_what_is_taken() -> None:
    assert body_of(OPENAI, request((user("hi"),), max_tokens=1))["max_output_tokens"] == 16


def test_a_schema_of_the_answer_goes_into_text() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    body = body_of(ResponsesDialect(verbosity="low"), request((user("hi"),), json_schema=schema))
    strict = {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
    closed = {"type": "object", "properties": strict, "required": ["a"], "additionalProperties": False}
    named = {"type": "json_schema", "name": "answer", "schema": closed, "strict": True}
    assert body["text"] == {"format": named, "verbosity": "low"}


@pytest.mark.parametrize("field", ["include", "reasoning", "parallel_tool_calls", "max_output_tokens", "prompt_cache_key"])
def test_a_refused_field_is_left_out(field: str) -> None:
    asked = request((user("hi"),), thinking="low", max_tokens=99, session_id="s")
    assert field in body_of(OPENAI, asked)
    assert field not in body_of(OPENAI, replace(asked, dropped_fields=frozenset({field})))


def test_a_refused_summary_leaves_the_effort() -> None:
    asked = request((user("hi"),), thinking="low", dropped_fields=frozenset({"summary"}))
    assert body_of(OPENAI, asked)["reasoning"] == {"effort": "low"}


def test_nothing_is_ever_kept_on_the_server() -> None:
    body = body_of(OPENAI, request((user("hi"),), dropped_fields=frozenset({"store", "stream"})))
    assert (body["store"], body["stream"]) == (False, True)


def test_tools_are_flat_and_legal() -> None:
    odd = ToolSpec(name="größe", description="", parameters={"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}})
    (tool,) = body_of(OPENAI, request((user("hi"),), tools=(odd,)))["tools"]
    assert tool["name"].isascii()
    assert (tool["type"], tool["strict"], tool["parameters"]) == ("function", False, {"type": "object", "properties": {}})


def test_request_blocks_are_tools_then_system_then_messages() -> None:
    format = OpenAIResponses(OPENAI)
    format.encode(request((user("hi"), answered(said()), user("go on"))))
    assert [block.label for block in all_blocks(format.blocks())] == [
        "tools",
        "system",
        "user message 1",
        "assistant message 2",
        "user message 3",
    ]
