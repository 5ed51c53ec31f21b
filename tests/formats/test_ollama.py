"""Requests of Ollama's own API: valid by construction, append-only, equal bytes for equal histories."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.formats.histories import FOREIGN, PNG, TOOLS, histories, request
from wolo.errors import BadRequest, ContextOverflow, ProviderError
from wolo.formats.encoding.encoder import CONTINUE, NO_ANSWER
from wolo.formats.format import Request
from wolo.formats.lint.ollama import lint
from wolo.formats.ollama import Ollama, OllamaDialect
from wolo.messages.message import Message, Producer, system, user
from wolo.messages.parts import AudioPart, ImagePart, TextPart, ThinkingPart, ToolPart

OWN = Producer(provider="own", format="openai-chat", model="m-1")
DIALECTS = [
    OllamaDialect(),
    OllamaDialect(call_ids=True, thinking_replay=False, images=False),
    OllamaDialect(think="levels", refuse_overflow=False, keep_alive="30m"),
]
BODY_KEYS = {"model", "messages", "tools", "stream", "truncate", "shift", "think", "format", "keep_alive", "options"}
MESSAGE_KEYS = {"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"}

dialects = st.sampled_from(DIALECTS)


def body_of(asked: Request, dialect: OllamaDialect | None = None) -> dict[str, Any]:
    body = msgspec.json.decode(Ollama(dialect or OllamaDialect()).encode(asked))
    assert isinstance(body, dict)
    return body


def sent(*history: Message, dialect: OllamaDialect | None = None) -> list[dict[str, Any]]:
    """The messages behind the system's."""
    messages: list[dict[str, Any]] = body_of(request(history), dialect)["messages"]
    return messages[1:]


def answered(text: str = "", *calls: ToolPart, thinking: str = "", producer: Producer = OWN) -> Message:
    thought = [ThinkingPart(text=thinking, field="thinking")] if thinking else []
    texts = [TextPart(text=text)] if text else []
    return Message(role="assistant", parts=(*thought, *texts, *calls), producer=producer, finished=True)


def done(tool: str = "read", output: str = "result", **fields: Any) -> ToolPart:
    return ToolPart(tool=tool, status="completed", outcome="ok", output=output, **fields)


# How it is used


def test_a_conversation_becomes_the_body_of_a_request() -> None:
    call = done(call_id="call_a", input={"path": "a"}, raw_input='{"path": "a"}', output="text of a")
    history = (user("Read a"), answered("I read it.", call, thinking="\nhm"), user("Thanks"))
    assert body_of(request(history, tools=TOOLS[:1], max_tokens=100, temperature=0.2, stop=("X",), thinking="high")) == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "You are Wolo."},
            {"role": "user", "content": "Read a"},
            {
                "role": "assistant",
                "content": "I read it.",
                "thinking": "\nhm",
                "tool_calls": [{"function": {"name": "read", "arguments": {"path": "a"}}}],
            },
            {"role": "tool", "tool_name": "read", "content": "text of a"},
            {"role": "user", "content": "Thanks"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads a file.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
                },
            }
        ],
        "stream": True,
        "truncate": False,
        "shift": False,
        "think": True,
        "options": {"num_ctx": 65536, "num_predict": 100, "temperature": 0.2, "stop": ["X"]},
    }


# Properties


@given(histories, dialects)
def test_every_history_becomes_a_valid_request(history: tuple[Message, ...], dialect: OllamaDialect) -> None:
    before = msgspec.json.encode([repr(message) for message in history])
    body = body_of(request(history, thinking="low"), dialect)
    assert lint(body, strict_template=True) == []
    assert set(body) <= BODY_KEYS
    assert all(set(message) <= MESSAGE_KEYS for message in body["messages"])
    assert msgspec.json.encode([repr(message) for message in history]) == before


@given(histories, dialects)
def test_longer_history_begins_with_shorter_bytes(history: tuple[Message, ...], dialect: OllamaDialect) -> None:
    growing = Ollama(dialect)
    before: list[Any] = []
    talk = (user("begin"), *history)  # what stands in front of it would be another system prompt
    for size in range(1, len(talk) + 1):
        asked = request(talk[:size])
        encoded = growing.encode(asked)
        assert encoded == Ollama(dialect).encode(asked)
        now = msgspec.json.decode(encoded)["messages"]
        if before and before[-1] == {"role": "user", "content": CONTINUE}:  # may be the close, which nothing was built upon
            before = before[:-1]
        assert now[: len(before)] == before
        before = now


@given(histories)
def test_reasoning_returns_to_its_producer_only(history: tuple[Message, ...]) -> None:
    stranger = Producer(provider="own", format="ollama", model="another")
    assert not any("thinking" in message for message in body_of(request(history, producer=stranger))["messages"])
    own = [message for message in body_of(request(history))["messages"] if "thinking" in message]
    assert bool(own) <= any(message.producer == OWN for message in history)


# Messages


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (ToolPart(tool="read", status="failed", outcome="error", output="no such file"), "no such file"),
        (ToolPart(tool="read", status="pending"), "never started"),
        (ToolPart(tool="read", status="running"), "interrupted"),
        (done(output=""), "(no output)"),
        (done(output=" \n"), "(blank output)"),
    ],
)
def test_every_call_has_an_explaining_result(call: ToolPart, text: str) -> None:
    result = sent(user("Go"), answered("", call))[-1]
    assert result["role"] == "tool"
    assert text in result["content"]


def test_results_come_in_the_order_of_their_calls() -> None:
    calls = [done("read", "1", call_id="x"), done("grep", "2", call_id="x"), done("read", "3", call_id="y")]
    _, assistant, *results = sent(user("Go"), answered("", *calls), dialect=OllamaDialect(call_ids=True))
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert len(set(ids)) == 3
    assert [(each["tool_name"], each["content"], each["tool_call_id"]) for each in results] == [
        ("read", "1", ids[0]),
        ("grep", "2", ids[1]),
        ("read", "3", ids[2]),
    ]


def test_arguments_go_as_the_object_the_model_wrote() -> None:
    call = done(input={"b": 1, "a": "é"}, raw_input='{"b": 1, "a": "\\u00e9"}')
    broken = ToolPart(tool="read", raw_input='{"path": ', status="failed", outcome="invalid", output="no JSON")
    encoded = Ollama(OllamaDialect()).encode(request((user("Go"), answered("", call, broken))))
    assert '"arguments":{"b":1,"a":"é"}'.encode() in encoded
    assert b'"arguments":{}' in encoded


def test_images_are_bare_base64_beside_the_text() -> None:
    data_url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    parts = (
        TextPart(text="See"),
        ImagePart(media_type="image/png", data=PNG),
        ImagePart(url=data_url),
        ImagePart(url="https://x/y.png"),
        ImagePart(url="data:image/png;base64,???"),
        AudioPart(media_type="audio/wav", data=b"RIFF"),
    )
    (message,) = sent(Message(role="user", parts=parts))
    assert message["images"] == [base64.b64encode(PNG).decode()] * 2
    assert message["content"].startswith("See\n[image, not sent: this server takes no such address: https://x/y.png]")
    assert "audio, not sent" in message["content"]


def test_images_of_results_follow_all_results() -> None:
    image = ImagePart(media_type="image/png", data=PNG)
    calls = [done(output_parts=(image,)), done("grep")]
    *_, first, second, images, between, last = sent(user("Go"), answered("", *calls), user("And?"))
    assert [first["role"], second["role"]] == ["tool", "tool"]
    assert "images" not in first
    assert len(images["images"]) == 1
    assert between == {"role": "assistant", "content": NO_ANSWER}
    assert last["content"] == "And?"


def test_blind_model_is_told_of_missing_images() -> None:
    picture = Message(role="user", parts=(ImagePart(media_type="image/png", data=PNG),))
    (message,) = sent(picture, dialect=OllamaDialect(images=False))
    assert message == {"role": "user", "content": "[image, not sent: this model does not take images]"}


def test_reasoning_from_inside_text_does_not_return() -> None:
    parts = (ThinkingPart(text="tagged", field="text"), ThinkingPart(text="named", field="thinking"), TextPart(text="Hi"))
    said = Message(role="assistant", parts=parts, producer=OWN, finished=True)
    assert sent(user("Go"), said, user("on"))[1] == {"role": "assistant", "content": "Hi", "thinking": "named"}
    assert "thinking" not in sent(user("Go"), replace(said, producer=FOREIGN), user("on"))[1]


def test_system_message_of_the_conversation_opens_it() -> None:
    assert body_of(request((system("Be short."), user("hi"))))["messages"][0] == {"role": "system", "content": "Be short."}
    assert body_of(request((user("hi"),), system=" "))["messages"] == [{"role": "user", "content": "hi"}]


# Fields


@pytest.mark.parametrize(
    ("model", "dialect", "level", "think"),
    [
        ("qwen3", OllamaDialect(), None, None),
        ("qwen3", OllamaDialect(), "off", False),
        ("qwen3", OllamaDialect(), "minimal", True),
        ("qwen3", OllamaDialect(), "max", True),
        ("gpt-oss:20b", OllamaDialect(), None, None),
        ("gpt-oss:20b", OllamaDialect(), "off", "low"),
        ("GPT-OSS:120b-cloud", OllamaDialect(), "medium", "medium"),
        ("gpt-oss:20b", OllamaDialect(), "max", "high"),
        ("gpt-oss:20b", OllamaDialect(think="bool"), "max", True),
        ("deepseek", OllamaDialect(think="levels", thinking_levels=("high", "max")), "xhigh", "max"),
        ("qwen3", OllamaDialect(think="none"), "high", None),
    ],
)
def test_levels_become_what_the_model_knows(model: str, dialect: OllamaDialect, level: Any, think: bool | str | None) -> None:
    assert body_of(request((user("hi"),), model=model, thinking=level), dialect).get("think") == think


@pytest.mark.parametrize(
    ("model", "dropped", "think"),
    [
        ("gpt-oss:20b", {"think"}, True),
        ("gpt-oss:20b", {"think", "thinking"}, None),
        ("qwen3", {"think"}, None),
        ("qwen3", {"thinking"}, None),
    ],
)
def test_refused_field_is_left_out(model: str, dropped: set[str], think: bool | None) -> None:
    asked = request(
        (user("hi"),), model=model, thinking="high", temperature=0.5, dropped_fields=frozenset({*dropped, "temperature"})
    )
    body = body_of(asked)
    assert body.get("think") == think
    assert body["options"] == {"num_ctx": 65536}


@pytest.mark.parametrize(
    ("num_ctx", "context", "expected"), [(65_536, None, 65_536), (65_536, 8_192, 8_192), (65_536, 1 << 20, 65_536), (9, 0, 9)]
)
def test_the_window_is_always_said(num_ctx: int, context: int | None, expected: int) -> None:
    body = body_of(request((user("hi"),), context=context), OllamaDialect(num_ctx=num_ctx))
    assert body["options"] == {"num_ctx": expected}


def test_the_rest_of_the_fields() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    asked = request((user("hi"),), json_schema=schema, temperature=float("nan"), top_p=0.9, tools=())
    body = body_of(asked, OllamaDialect(keep_alive="-1m", refuse_overflow=False))
    assert body["format"] == schema
    assert body["keep_alive"] == "-1m"
    assert body["options"] == {"num_ctx": 65536, "top_p": 0.9}
    assert not {"tools", "truncate", "shift"} & set(body)


@pytest.mark.parametrize("flags", [{"num_ctx": 0}, {"num_ctxx": 1}, {"think": "high"}])
def test_a_wrong_flag_is_found(flags: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(flags, OllamaDialect)


# Refusals


@pytest.mark.parametrize(
    ("status", "text", "kind", "field"),
    [
        (400, '"m" does not support thinking', BadRequest, "thinking"),
        (400, 'invalid think value: "high" (must be true or false)', BadRequest, "think"),
        (400, 'think value "low" is not supported for this model', BadRequest, "think"),
        (400, "registry.ollama.ai/library/m does not support tools", BadRequest, None),
        (400, "the input length exceeds the context length", ContextOverflow, None),
        (400, "prompt too long; exceeded max context length by 12 tokens", ContextOverflow, None),
        (500, "the prompt is longer than the context length currently available to the model", ContextOverflow, None),
        (500, "input exceeds maximum context length and cannot be truncated further", ContextOverflow, None),
        (404, 'model "m" not found, try pulling it first', BadRequest, None),
    ],
)
def test_refusals_are_understood(status: int, text: str, kind: type[ProviderError], field: str | None) -> None:
    error = Ollama(OllamaDialect()).read_error(status, {}, msgspec.json.encode({"error": text}))
    assert type(error) is kind
    assert getattr(error, "field", None) == field
    if "tools" in text:
        assert "tools" in getattr(error, "hint", "")
    if status == 404:
        assert "ollama pull" in getattr(error, "hint", "")
