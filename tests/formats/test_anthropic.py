"""Requests of the Messages API: valid by construction, append-only, thinking only where it was written."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.formats.histories import FOREIGN, OWN, PNG, TOOLS, histories, request
from wolo.formats.anthropic import Anthropic, AnthropicDialect
from wolo.formats.anthropic.encode import PREFIX, SIGNATURE
from wolo.formats.encoding.cached_blocks import format_conversation_for_cache
from wolo.formats.encoding.encoder import CONTINUE, NO_ANSWER
from wolo.formats.format import Request, ThinkingLevel, ToolSpec
from wolo.formats.lint.anthropic import lint
from wolo.messages.deltas import Assembler
from wolo.messages.message import MESSAGES, Message, system, user
from wolo.messages.parts import AnyPart, AudioPart, Blob, FilePart, ImagePart, TextPart, ThinkingPart, ToolPart
from wolo.models.prompt_cache import all_blocks

ADAPTIVE = AnthropicDialect(
    thinking_style="adaptive", thinking_off="refused", thinks_unasked=True, sampling="fixed", thinking_display="summarized"
)
PLAIN = AnthropicDialect(thinking_style="none", cache_marks=False, images=False, files=False, bound_thinking=False)
UNSIGNED = AnthropicDialect(unsigned_thinking=True, tool_result_media=False, long_cache=True, image_urls=False)
DIALECTS = {"generic": AnthropicDialect(), "adaptive": ADAPTIVE, "plain": PLAIN, "unsigned": UNSIGNED}
dialects = st.sampled_from(list(DIALECTS.values()))
levels: Any = st.sampled_from([None, "off", "low", "max"])


def body_of(dialect: AnthropicDialect, asked: Request) -> dict[str, Any]:
    return read(Anthropic(dialect).encode(asked))


def read(encoded: bytes) -> dict[str, Any]:
    body = msgspec.json.decode(encoded)
    assert isinstance(body, dict)
    return body


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: unmarked(inner) for name, inner in value.items() if name != "cache_control"}
    return [unmarked(inner) for inner in value] if isinstance(value, list) else value


def sent(dialect: AnthropicDialect, *history: Message, **fields: Any) -> list[dict[str, Any]]:
    """The messages, without cache marks."""
    messages = unmarked(body_of(dialect, request(history, **fields)))["messages"]
    assert isinstance(messages, list)
    return messages


def answered(*parts: Any, **fields: Any) -> Message:
    return Message(role="assistant", parts=parts, producer=fields.pop("producer", OWN), finished=True, **fields)


def done(output: str = "result", **fields: Any) -> ToolPart:
    return ToolPart(tool="read", status="completed", outcome="ok", output=output, **fields)


def signed(text: str = "hm", signature: str = "sig", prefix: str = "") -> ThinkingPart:
    stamp = (Blob(PREFIX, prefix),) if prefix else ()
    return ThinkingPart(text=text, field="thinking", blobs=(Blob(SIGNATURE, signature), *stamp))


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


# How it is used


def test_a_conversation_becomes_the_body_of_a_request() -> None:
    call = done("text of a", call_id="toolu_a", input={"path": "a"}, raw_input='{"path": "a"}')
    history = (user("Read a"), answered(signed("\nhm"), TextPart(text="I read it."), call))
    kept = {"type": "ephemeral"}
    assert body_of(AnthropicDialect(), request(history, tools=TOOLS[:1], max_tokens=100)) == {
        "model": "m-1",
        "max_tokens": 100,
        "stream": True,
        "tools": [
            {
                "name": "read",
                "description": "Reads a file.",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
                "cache_control": kept,
            }
        ],
        "system": [{**said("You are Wolo."), "cache_control": kept}],
        "messages": [
            {"role": "user", "content": [{**said("Read a"), "cache_control": kept}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "\nhm", "signature": "sig"},
                    said("I read it."),
                    {"type": "tool_use", "id": "toolu_a", "name": "read", "input": {"path": "a"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_a", "content": "text of a", "cache_control": kept},
                ],
            },
        ],
    }


# Any history


@given(histories, dialects, levels)
def test_any_history_becomes_a_strictly_valid_request(
    history: tuple[Message, ...], dialect: AnthropicDialect, level: ThinkingLevel | None
) -> None:
    before = copy.deepcopy(history)
    asked = request(history, thinking=level)
    encoded = Anthropic(dialect).encode(asked)
    assert lint(read(encoded)) == []
    assert encoded == Anthropic(dialect).encode(asked)
    assert history == before


@given(histories, dialects)
def test_longer_history_begins_with_shorter_one(history: tuple[Message, ...], dialect: AnthropicDialect) -> None:
    growing = Anthropic(dialect)
    before: list[Any] = []
    for end in range(len(history) + 1):
        asked = request(history[:end])
        encoded = growing.encode(asked)
        assert encoded == Anthropic(dialect).encode(asked)
        now = unmarked(read(encoded))["messages"]
        at_least = len(before) - (before[-1:] == [{"role": "user", "content": [said(CONTINUE)]}])
        assert now[:at_least] == before[:at_least]
        before = now


@given(histories, dialects, st.lists(st.integers(0, 8), max_size=5))
def test_shrunk_and_grown_history_has_fresh_bytes(
    history: tuple[Message, ...], dialect: AnthropicDialect, ends: list[int]
) -> None:
    kept = Anthropic(dialect)
    for end in ends:
        asked = request(history[:end])
        assert kept.encode(asked) == Anthropic(dialect).encode(asked)
        assert kept.decoder(asked).stamp == Anthropic(dialect).decoder(asked).stamp


@given(histories)
def test_reasoning_of_others_never_goes_out(history: tuple[Message, ...]) -> None:
    foreign = tuple(replace(message, producer=FOREIGN) if message.role == "assistant" else message for message in history)
    blocks = [block for message in sent(AnthropicDialect(), *foreign) for block in message["content"]]
    assert not [block for block in blocks if "thinking" in block["type"]]


@given(st.integers(1, 4), st.booleans(), st.lists(st.booleans(), min_size=1, max_size=6))
def test_four_marks_at_most_with_one_at_end(rounds: int, has_tools: bool, cached: list[bool]) -> None:
    blocks = [replace(user(f"block {at}"), metadata={"cache": is_cached}) for at, is_cached in enumerate(cached)]
    loop = [answered(*(done(call_id=f"c{at}_{n}") for n in range(15))) for at in range(rounds)]
    body = body_of(UNSIGNED, request((*blocks, *loop), tools=TOOLS if has_tools else ()))
    assert lint(body) == []
    assert "cache_control" in body["messages"][-1]["content"][-1]
    assert body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


# Turns and results


def test_answer_results_share_one_first_message() -> None:
    shot = ImagePart(media_type="image/png", data=PNG)
    broken = ToolPart(tool="read", call_id="c2", status="failed", outcome="error", output="no such file", output_parts=(shot,))
    calls = (done("a", call_id="c1", output_parts=(shot,)), broken, ToolPart(tool="read", call_id="c3"))
    messages = sent(AnthropicDialect(), user("go"), answered(*calls), user("and now?"))
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    first, second, third, behind = messages[2]["content"]
    assert [block["type"] for block in first["content"]] == ["text", "image"]
    assert (second["content"], second["is_error"], third["is_error"]) == ("no such file", True, True)
    assert "never started" in third["content"]
    assert behind["type"] == "image", "a result that is an error takes text only"
    assert messages[3] == {"role": "assistant", "content": [said(NO_ANSWER)]}


def test_media_follow_results_where_server_takes_none_inside() -> None:
    call = done("a", call_id="c1", output_parts=(ImagePart(data=PNG), FilePart(name="a.pdf", data=b"%PDF-1")))
    result, image, document = sent(UNSIGNED, user("go"), answered(call))[-1]["content"]
    assert result == {"type": "tool_result", "tool_use_id": "c1", "content": "a"}
    assert (image["type"], document["type"], document["title"]) == ("image", "document", "a.pdf")


def test_each_kind_of_attachment() -> None:
    parts: list[AnyPart] = [
        ImagePart(url="https://x/y.png"),
        ImagePart(url="data:image/gif;base64,R0lGODlh"),
        ImagePart(media_type="image/tiff", data=b"II*\0"),
        ImagePart(),
        AudioPart(media_type="audio/wav", data=b"RIFF"),
        FilePart(name="notes.md", media_type="text/markdown", data=b"# hi"),
        FilePart(name="a.bin", data=b"\0\1"),
    ]
    url, gif, tiff, empty, sound, notes, binary = sent(AnthropicDialect(), user("", *parts))[0]["content"]
    assert url["source"] == {"type": "url", "url": "https://x/y.png"}
    assert gif["source"] == {"type": "base64", "media_type": "image/gif", "data": "R0lGODlh"}
    assert all("not sent" in each["text"] for each in (tiff, sound, binary))
    assert empty == said("[empty image]")
    assert notes["source"] == {"type": "text", "media_type": "text/plain", "data": "# hi"}


def test_the_user_speaks_first_and_last() -> None:
    hello = answered(TextPart(text="Hello."))
    assert [message["role"] for message in sent(AnthropicDialect(), hello)] == ["user", "assistant", "user"]


def test_paused_answer_is_sent_unchanged_for_continuation() -> None:
    paused = answered(TextPart(text="Searching"), finish_reason="paused")
    messages = sent(AnthropicDialect(), user("go"), paused)
    assert messages[-1] == {"role": "assistant", "content": [said("Searching")]}
    longer = sent(AnthropicDialect(), user("go"), paused, answered(TextPart(text="Found")), user("thanks"))
    assert longer[:2] == messages
    assert [message["content"] for message in longer[2:]] == [[said(CONTINUE)], [said("Found")], [said("thanks")]]


def test_a_refused_answer_is_not_sent_again() -> None:
    refused = answered(TextPart(text="I will n"), finish_reason="refused")
    assert [m["content"] for m in sent(AnthropicDialect(), user("bad"), refused, user("good"))] == [
        [said("bad")],
        [said(NO_ANSWER)],
        [said("good")],
    ]


def test_conversation_system_message_replaces_ours() -> None:
    body = body_of(PLAIN, request((system("Be brief."), user("hi"), system("Now in French."))))
    assert body["system"] == [said("Be brief.")]
    assert body["messages"][-1] == {"role": "user", "content": [said("Now in French.")]}


def test_history_with_calls_names_unoffered_tools() -> None:
    body = body_of(PLAIN, request((user("go"), answered(done(call_id="c1"))), tools=()))
    assert [tool["name"] for tool in body["tools"]] == ["read"]
    assert body["tool_choice"] == {"type": "none"}
    assert "tools" not in body_of(PLAIN, request((user("go"),), tools=()))


# Thinking


def loop_of(dialect: AnthropicDialect, *history: Message) -> tuple[Message, ...]:
    """The history, and an answer as it would have come to it: thinking stamped with the request, and a call."""
    format = Anthropic(dialect)
    asked = request(history)
    format.encode(asked)
    assembler = Assembler()
    whole = {
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "blob"},
            {"type": "tool_use", "id": f"toolu_{len(history)}", "name": "read", "input": {"path": "a"}},
        ],
        "stop_reason": "tool_use",
    }
    assembler.add(format.read_whole(msgspec.json.encode(whole)))
    answer = assembler.message(producer=OWN)
    (call,) = answer.calls
    answer = answer.with_parts([replace(call, status="completed", outcome="ok", output="text of a")])
    return (*history, MESSAGES.decode(MESSAGES.encode(answer)))


def thoughts(messages: list[dict[str, Any]]) -> list[int]:
    """How many blocks of thinking each message of the assistant carries."""
    return [
        sum("thinking" in block["type"] for block in message["content"]) for message in messages if message["role"] == "assistant"
    ]


def test_thinking_returns_in_order_unchanged_after_restart() -> None:
    history = loop_of(ADAPTIVE, *loop_of(ADAPTIVE, user("go")))
    messages = sent(ADAPTIVE, *history)
    assert thoughts(messages) == [2, 2]
    assert messages[1]["content"][:2] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "blob"},
    ]


@pytest.mark.parametrize("change", ["earlier message", "system", "tools", "model", "summary before"])
def test_thinking_stays_behind_after_an_earlier_change(change: str) -> None:
    history = loop_of(ADAPTIVE, *loop_of(ADAPTIVE, user("go")))
    fields: dict[str, Any] = {}
    match change:
        case "earlier message":
            history = (user("go on"), *history[1:])
        case "system":
            fields["system"] = "You are another."
        case "tools":
            fields["tools"] = TOOLS[:1]
        case "model":
            fields["producer"] = FOREIGN
        case _:
            history = (Message(role="compaction_summary", parts=[TextPart(text="So far: …")]), *history[2:])
    assert not any(thoughts(sent(ADAPTIVE, *history, **fields)))


def test_thinking_behind_the_changed_prefix_is_kept() -> None:
    first = loop_of(ADAPTIVE, user("go"))
    later = loop_of(ADAPTIVE, user("changed"), *first[1:])
    assert thoughts(sent(ADAPTIVE, *later)) == [0, 2]
    assert thoughts(sent(ADAPTIVE, *first, *later[2:])) == [2, 0], "and only behind that one"


def test_unstamped_thinking_is_trusted_unless_some_was_omitted() -> None:
    unstamped = answered(signed(), done(call_id="c9"))
    assert thoughts(sent(ADAPTIVE, user("go"), unstamped)) == [1]
    assert thoughts(sent(ADAPTIVE, user("go"), answered(signed(prefix="0" * 32), done(call_id="c8")), unstamped)) == [0, 0]


def test_older_model_accepts_thinking_behind_other_prefix() -> None:
    older = AnthropicDialect(bound_thinking=False)
    history = loop_of(older, user("go"))
    assert thoughts(sent(older, user("changed"), *history[1:])) == [2]


def test_unsigned_and_last_thinking_stay_behind() -> None:
    broken_off = answered(TextPart(text="So"), ThinkingPart(text="hm", field="thinking"), finish_reason="interrupted")
    assert sent(AnthropicDialect(), user("go"), broken_off)[1]["content"] == [said("So")]
    assert sent(UNSIGNED, user("go"), broken_off)[1]["content"] == [said("So")], "nothing ends in thinking"
    thought = answered(ThinkingPart(text="hm", field="thinking"), TextPart(text="So"))
    assert sent(UNSIGNED, user("go"), thought)[1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": ""}


def test_call_round_without_its_thinking_continues_without_any() -> None:
    """A model that counts its thinking refuses to think where the round did not begin with thinking."""
    history = loop_of(AnthropicDialect(), user("go"))
    assert body_of(AnthropicDialect(), request(history, thinking="high"))["thinking"]["type"] == "enabled"
    changed = (user("changed"), *history[1:])
    assert "thinking" not in body_of(AnthropicDialect(), request(changed, thinking="high"))
    assert "thinking" in body_of(
        AnthropicDialect(), request((*changed, answered(TextPart(text="ok")), user("x")), thinking="high")
    )
    assert "thinking" in body_of(ADAPTIVE, request(changed, thinking="high"))


def test_a_server_that_refuses_the_signatures_gets_none() -> None:
    history = loop_of(ADAPTIVE, user("go"))
    assert thoughts(sent(ADAPTIVE, *history, dropped_fields=frozenset({"signature"}))) == [0]


@pytest.mark.parametrize(
    ("dialect", "level", "fields"),
    [
        (AnthropicDialect(), None, {}),
        (AnthropicDialect(), "off", {"thinking": {"type": "disabled"}}),
        (AnthropicDialect(), "minimal", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        (AnthropicDialect(), "max", {"thinking": {"type": "enabled", "budget_tokens": 13107}}),
        (AnthropicDialect(thinking_levels=("high",)), "low", {"thinking": {"type": "enabled", "budget_tokens": 13107}}),
        (PLAIN, "max", {}),
        (ADAPTIVE, None, {"thinking": {"type": "adaptive", "display": "summarized"}}),
        (ADAPTIVE, "off", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}}),
        (ADAPTIVE, "max", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "max"}}),
        (
            AnthropicDialect(thinking_style="adaptive", thinking_off="between_tools"),
            "off",
            {"thinking": {"type": "between_tools"}},
        ),
    ],
)
def test_levels_of_thinking(dialect: AnthropicDialect, level: Any, fields: dict[str, Any]) -> None:
    body = body_of(dialect, request((user("hi"),), thinking=level))
    assert {name: body[name] for name in ("thinking", "output_config") if name in body} == fields


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-3-7-sonnet-20250219", {"type": "enabled", "budget_tokens": 4096}),
        ("claude-sonnet-4-20250514", {"type": "enabled", "budget_tokens": 4096}),
        ("anthropic.claude-opus-4-5-20251101-v1:0", {"type": "enabled", "budget_tokens": 4096}),
        ("claude-opus-4-6", {"type": "adaptive"}),
        ("claude-opus-4.7", {"type": "adaptive", "display": "summarized"}),
        ("us.anthropic.claude-sonnet-5-5", {"type": "adaptive", "display": "summarized"}),
        ("Claude-Fable-6", {"type": "adaptive", "display": "summarized"}),
        ("glm-5.2", {"type": "enabled", "budget_tokens": 4096}),
    ],
)
def test_unlisted_claude_thinks_as_its_generation(model: str, thinking: dict[str, Any]) -> None:
    body = body_of(AnthropicDialect(), request((user("hi"),), thinking="low", model=model))
    assert body["thinking"] == thinking
    assert ("output_config" in body) == (thinking["type"] == "adaptive")


# The other fields


def test_limit_is_always_sent_leaving_room_for_answer() -> None:
    def limit(**fields: Any) -> Any:
        body = body_of(AnthropicDialect(), request((user("hi"),), thinking="max", **fields))
        assert lint(body) == []
        return body["max_tokens"], body.get("thinking", {}).get("budget_tokens")

    assert limit() == (16_384, 13_107)
    assert limit(max_output=128_000) == (128_000, 63_999)
    assert limit(max_tokens=500, max_output=8_000) == (500, None)
    assert limit(max_tokens=9_000, max_output=8_000) == (8_000, 6_400)
    assert limit(context=8_192) == (4_096, 3_276)
    assert limit(max_output=128_000, dropped_fields=frozenset({"max_tokens"})) == (4_096, 3_276)


def test_sampling_never_goes_together_with_thinking() -> None:
    warm = {"temperature": 1.7, "top_p": 0.9}
    assert body_of(AnthropicDialect(), request((user("hi"),), **warm))["temperature"] == 1.0
    for dialect, level in ((AnthropicDialect(), "low"), (ADAPTIVE, None), (AnthropicDialect(sampling="fixed"), "off")):
        body = body_of(dialect, request((user("hi"),), thinking=level, **warm))
        assert not {"temperature", "top_p"} & set(body)
    without = body_of(AnthropicDialect(), request((user("hi"),), dropped_fields=frozenset({"temperature"}), **warm))
    assert "temperature" not in without


def test_stop_words_and_the_form_of_the_answer() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}}
    structured = AnthropicDialect(structured_output=True)
    body = body_of(structured, request((user("hi"),), stop=("END", " "), json_schema=schema))
    assert body["stop_sequences"] == ["END"]
    form = body["output_config"]["format"]
    assert form["schema"]["additionalProperties"] is form["schema"]["properties"]["a"]["additionalProperties"] is False
    assert "output_config" not in body_of(AnthropicDialect(structured_output=False), request((user("hi"),), json_schema=schema))


def test_root_union_of_schema_becomes_optional_properties() -> None:
    union = {"anyOf": [{"type": "object", "properties": {name: {"type": "string"}}, "required": [name]} for name in "ab"]}
    body = body_of(PLAIN, request((user("hi"),), tools=(ToolSpec(name="t", description="", parameters=union),)))
    properties = {"a": {"type": "string"}, "b": {"type": "string"}}
    assert body["tools"][0]["input_schema"] == {"type": "object", "properties": properties}


@pytest.mark.parametrize("field", ["thinking", "output_config", "cache_control", "temperature", "tool_choice", "stop_sequences"])
def test_a_refused_field_is_left_out(field: str) -> None:
    asked = request((user("hi"),), thinking="high", stop=("x",), temperature=0.1, dropped_fields=frozenset({field}))
    for dialect in DIALECTS.values():
        assert f'"{field}"'.encode() not in Anthropic(dialect).encode(asked)


def test_cached_conversation_stretch_gets_its_own_mark() -> None:
    block = format_conversation_for_cache([user("old question"), answered(TextPart(text="old answer"))])
    body = body_of(AnthropicDialect(), request((block, user("new"))))
    assert body["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert body["messages"][0]["content"][0]["text"].startswith("User: old question")


@pytest.mark.parametrize(("num_calls", "marked"), [(5, [0, 2, 6]), (25, [2, 4, 6])])
def test_distant_end_of_last_request_is_marked(num_calls: int, marked: list[int]) -> None:
    blocks = [replace(user(f"block {at}"), metadata={"cache": True}) for at in range(2)]
    step = answered(*(done(call_id=f"c{at}") for at in range(num_calls)))
    messages = body_of(AnthropicDialect(), request((*blocks, user("go"), step)))["messages"]
    assert [at for at, message in enumerate(messages) if "cache_control" in message["content"][-1]] == marked


@pytest.mark.parametrize("is_cached", [False, True])
def test_tools_and_system_prompt_keep_session_bytes(is_cached: bool) -> None:
    opening = replace(user("long ago"), metadata={"cache": is_cached})
    grown = [answered(done(call_id=f"c{at}")) for at in range(4)]
    bodies = [body_of(AnthropicDialect(), request((opening, *grown[:end]))) for end in range(5)]
    assert len({msgspec.json.encode([body["tools"], body["system"]]) for body in bodies}) == 1


def test_the_pieces_of_the_prefix_are_named() -> None:
    format = Anthropic(AnthropicDialect())
    history = (user("a"), answered(TextPart(text="b")), user("c"))
    digests = []
    for end in (1, 3):
        format.encode(request(history[:end]))
        digests.append([block.digest for block in all_blocks(format.blocks())])
    assert [block.label for block in all_blocks(format.blocks())] == [
        *("tools", "system", "user message 1", "assistant message 2", "user message 3")
    ]
    assert digests[1][: len(digests[0])] == digests[0], "moving marks do not count"


def test_foreign_ids_become_legal_and_stay_equal() -> None:
    ids = ["functions.read:0", "x" * 200, "x" * 199 + "y", "toolu_1"]
    history = (user("go"), answered(*(done(call_id=each) for each in ids)))
    blocks = sent(AnthropicDialect(), *history)[1]["content"]
    assert blocks[-1]["id"] == "toolu_1"
    assert len({block["id"] for block in blocks}) == 4
    assert blocks == sent(AnthropicDialect(), *history, user("more"))[1]["content"]


def test_every_pair_of_dialects_hands_a_conversation_over() -> None:
    for one, other in itertools.permutations(DIALECTS.values(), 2):
        history = loop_of(other, *loop_of(one, user("go")))
        assert lint(body_of(other, request(history, thinking="high"))) == []
