"""Requests of Gemini: valid by construction, append-only, every signature where it came."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.formats.histories import PNG, TOOLS, histories, request
from wolo.formats.encoding.encoder import CONTINUE, NO_ANSWER
from wolo.formats.format import ThinkingLevel, ToolSpec
from wolo.formats.gemini import Gemini, GeminiDialect
from wolo.formats.gemini.encode import (
    MEDIA_BELOW,
    NO_SIGNATURE,
    THOUGHT_SIGNATURE,
    gemini_name,
    is_signature,
    own_name,
    own_names,
)
from wolo.formats.lint.gemini import lint
from wolo.messages.message import Message, Producer, system, user
from wolo.messages.parts import AudioPart, Blob, FilePart, ImagePart, Part, TextPart, ThinkingPart, ToolPart
from wolo.models.prompt_cache import all_blocks

OWN = Producer(provider="gemini", format="gemini", model="gemini-3-test")
OTHER_MODEL = Producer(provider="gemini", format="gemini", model="gemini-2.5-test")
FOREIGN = Producer(provider="openai", format="openai-responses", model="m")
S1, S2 = "c2lnbmF0dXJlLTE=", "c2lnbmF0dXJlLTI="
NEW, OLD = "gemini-3-test", "gemini-2.5-test"
DIALECTS = {
    "plain": GeminiDialect(),
    "old": GeminiDialect(schema_field="parameters", system_instruction=False, call_ids=False, file_addresses=False),
    "no media": GeminiDialect(images=False, audio=False, files=False, tool_mode="", thinking_style="none"),
}
LEVELS: tuple[ThinkingLevel | None, ...] = (None, "off", "minimal", "low", "medium", "high", "xhigh", "max")

dialects = st.sampled_from(list(DIALECTS.values()))
models = st.sampled_from([NEW, OLD, "gemma-3-27b-it", "my-deployment"])
blobs = st.sampled_from(
    [(), (Blob(THOUGHT_SIGNATURE, S1),), (Blob(THOUGHT_SIGNATURE, "not base64!"),), (Blob("anthropic.signature", S2),)]
)


@st.composite
def signed_histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """Any history, of the makers and with the signatures that matter here."""
    made = []
    for message in draw(histories):
        if message.role == "assistant":
            parts = [replace(part, blobs=draw(blobs)) for part in message.parts]
            message = replace(message, parts=tuple(parts), producer=draw(st.sampled_from([OWN, OWN, OTHER_MODEL, FOREIGN, None])))
        made.append(message)
    return tuple(made)


def body_of(dialect: GeminiDialect, history: tuple[Message, ...], *, model: str = NEW, **fields: Any) -> dict[str, Any]:
    body = msgspec.json.decode(Gemini(dialect).encode(request(history, **{"model": model, "producer": OWN, **fields})))
    assert isinstance(body, dict)
    return body


def contents_of(history: tuple[Message, ...], **fields: Any) -> list[dict[str, Any]]:
    return list(body_of(fields.pop("dialect", GeminiDialect()), history, **fields)["contents"])


def answered(*parts: Any, producer: Producer | None = OWN) -> Message:
    return Message(role="assistant", parts=parts, producer=producer, finished=True)


def done(tool: str = "read", output: str = "result", signature: str = "", **fields: Any) -> ToolPart:
    signed = (Blob(THOUGHT_SIGNATURE, signature),) if signature else ()
    return ToolPart(tool=tool, **{"status": "completed", "outcome": "ok", "output": output, "blobs": signed, **fields})


def signed_text(text: str, signature: str) -> TextPart:
    return TextPart(text=text, blobs=(Blob(THOUGHT_SIGNATURE, signature),))


# How it is used


def test_a_conversation_becomes_the_body_of_a_request() -> None:
    call = done(call_id="id-1", input={"path": "a"}, raw_input='{"path": "a"}', output="text of a", signature=S1)
    history = (user("Read a"), answered(ThinkingPart(text="hm"), TextPart(text="I read it."), call), user("Thanks"))
    assert body_of(GeminiDialect(), history, tools=TOOLS[:1], max_tokens=100, thinking="high") == {
        "systemInstruction": {"parts": [{"text": "You are Wolo."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "read",
                        "description": "Reads a file.",
                        "parametersJsonSchema": {
                            "type": "object",
                            "properties": {"path": {"type": "string"}},
                            "required": ["path"],
                        },
                    }
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "contents": [
            {"role": "user", "parts": [{"text": "Read a"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "I read it."},
                    {"functionCall": {"id": "id-1", "name": "read", "args": {"path": "a"}}, "thoughtSignature": S1},
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "id-1", "name": "read", "response": {"output": "text of a"}}}],
            },
            {"role": "model", "parts": [{"text": NO_ANSWER}]},
            {"role": "user", "parts": [{"text": "Thanks"}]},
        ],
        "generationConfig": {
            "maxOutputTokens": 100,
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"},
        },
    }


def test_the_path_names_the_model() -> None:
    gemini = Gemini(GeminiDialect())
    assert gemini.path("gemini-3.8-flash") == "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    assert gemini.path("models/gemini-3.8-flash") == gemini.path("gemini-3.8-flash")
    assert gemini.path("tunedModels/mine-1") == "/v1beta/tunedModels/mine-1:streamGenerateContent?alt=sse"
    vertex = Gemini(GeminiDialect(models_path="/v1/projects/p/locations/global/publishers/google/models"))
    assert vertex.path("gemini-3.8-flash").startswith(
        "/v1/projects/p/locations/global/publishers/google/models/gemini-3.8-flash:"
    )
    assert gemini.path("a/b c?:ü") == "/v1beta/models/a%2Fb%20c%3F%3A%C3%BC:streamGenerateContent?alt=sse"


# What holds for every history


@given(signed_histories(), dialects, models, st.sampled_from(LEVELS))
def test_any_history_becomes_a_valid_request(
    history: tuple[Message, ...], dialect: GeminiDialect, model: str, level: ThinkingLevel | None
) -> None:
    asked = request(history, model=model, producer=OWN, thinking=level)
    encoded = Gemini(dialect).encode(asked)
    body = json.loads(encoded, parse_constant=pytest.fail)
    assert lint(body) == []
    assert Gemini(dialect).encode(asked) == encoded


@given(signed_histories(), dialects, models)
def test_longer_history_begins_with_the_shorter_bytes(history: tuple[Message, ...], dialect: GeminiDialect, model: str) -> None:
    """Whatever comes later: no signature and no placeholder appears or goes in what was sent."""
    history = (user("first"), *history)
    whole = contents_of(history, dialect=dialect, model=model)
    for count in range(1, len(history)):
        shorter = contents_of(history[:count], dialect=dialect, model=model)
        closing = [{"role": "user", "parts": [{"text": CONTINUE}]}]
        shorter = shorter[:-1] if shorter[-1:] == closing else shorter
        assert msgspec.json.encode(whole).startswith(msgspec.json.encode(shorter)[:-1])


@given(signed_histories(), signed_histories(), dialects)
def test_remembered_parts_give_the_bytes_of_fresh_start(
    first: tuple[Message, ...], second: tuple[Message, ...], dialect: GeminiDialect
) -> None:
    gemini = Gemini(dialect)
    for history in (first, first[:-1], first[:-1] + second, first, second):
        asked = request(history, model=NEW, producer=OWN)
        assert gemini.encode(asked) == Gemini(dialect).encode(asked)


@given(signed_histories())
def test_signatures_go_in_place_to_their_producer_only(history: tuple[Message, ...]) -> None:
    for message in history:
        if message.role != "assistant":
            continue
        sent = [part for content in contents_of((user("go"), message)) for part in content["parts"]]
        signed = [part for part in sent if part.get("thoughtSignature") not in (None, NO_SIGNATURE)]
        if message.producer != OWN:
            assert not signed
        assert len(signed) <= sum(
            any(blob.data == S1 and blob.kind == THOUGHT_SIGNATURE for blob in p.blobs) for p in message.parts
        )
        calls = [part for part in sent if "functionCall" in part]
        assert all("thoughtSignature" in call for call in calls[:1])
        assert all(call.get("thoughtSignature") != NO_SIGNATURE for call in calls[1:])


def test_encoding_changes_nothing_and_blocks_name_the_prefix() -> None:
    history = (user("a"), answered(done(signature=S1)))
    before = msgspec.json.encode(history)
    gemini = Gemini(GeminiDialect())
    gemini.encode(request(history, model=NEW, producer=OWN))
    assert msgspec.json.encode(history) == before
    assert [block.label for block in all_blocks(gemini.blocks())] == ["tools", "system", "user message 1", "assistant message 2"]


# Signatures


def test_other_models_carry_placeholder_on_first_call_only() -> None:
    history = (user("go"), answered(done(), done(), producer=FOREIGN), answered(done(), producer=None))
    parts = [part for content in contents_of(history) for part in content["parts"] if "functionCall" in part]
    assert [part.get("thoughtSignature") for part in parts] == [NO_SIGNATURE, None, NO_SIGNATURE]
    older = [part for content in contents_of(history, model=OLD) for part in content["parts"]]
    assert all("thoughtSignature" not in part for part in older)


def test_a_signature_on_a_later_call_stays_there() -> None:
    history = (user("go"), answered(done(signature=S1), done(signature=S2), done()))
    parts = contents_of(history)[1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == [S1, S2, None]


def test_signature_on_empty_text_or_thought_keeps_part() -> None:
    thought = ThinkingPart(text="hm", field="thought", blobs=(Blob(THOUGHT_SIGNATURE, S1),))
    history = (user("go"), answered(thought, ThinkingPart(text="unsigned"), TextPart(text="Hi"), signed_text("", S2)))
    assert contents_of(history)[1]["parts"] == [
        {"text": "hm", "thought": True, "thoughtSignature": S1},
        {"text": "Hi"},
        {"text": "", "thoughtSignature": S2},
    ]


def test_signature_without_base64_is_not_sent() -> None:
    history = (user("go"), answered(signed_text("Hi", "no base64!"), done(signature="x")))
    assert [part.get("thoughtSignature") for part in contents_of(history)[1]["parts"]] == [None, NO_SIGNATURE]
    assert is_signature(NO_SIGNATURE)
    assert [is_signature(text) for text in ("QQ==", "QQ", "Q", "", "Q=Q=", "a b", "ab-_")] == [
        True,
        True,
        False,
        False,
        False,
        False,
        True,
    ]


def test_corrupt_signatures_are_left_out() -> None:
    history = (user("go"), answered(signed_text("Hi", S1), done(signature=S2)))
    parts = contents_of(history, dropped_fields=frozenset({"thoughtSignature"}))[1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == [None, NO_SIGNATURE]


# Calls and results


def test_server_ids_return_and_none_is_invented() -> None:
    theirs = answered(done(call_id="id-1"), done(call_id=""), done(call_id="id-1"), producer=OTHER_MODEL)
    ours = answered(done(call_id="call_abc"), producer=FOREIGN)
    contents = contents_of((user("go"), theirs, user("and"), ours))
    calls = [part["functionCall"].get("id") for content in contents for part in content["parts"] if "functionCall" in part]
    answers = [
        part["functionResponse"].get("id") for content in contents for part in content["parts"] if "functionResponse" in part
    ]
    assert calls == answers == ["id-1", None, None, None]
    withheld = contents_of((user("go"), theirs), dropped_fields=frozenset({"id"}))
    assert "id-1" not in json.dumps(withheld)


def test_answer_results_are_one_ordered_content() -> None:
    failed = done(status="failed", outcome="error", output="no such file")
    waiting = ToolPart(tool="read", status="running")
    history = (user("go"), answered(done(output="one"), failed, waiting))
    contents = contents_of(history)
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    responses = [part["functionResponse"]["response"] for part in contents[2]["parts"]]
    assert responses[:2] == [{"output": "one"}, {"error": "no such file"}]
    assert "interrupted" in responses[2]["error"]


def test_result_media_go_inside_or_behind_all() -> None:
    image = ImagePart(media_type="image/png", data=PNG)
    data = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}}
    history = (user("go"), answered(done(output="seen", output_parts=(image,)), done(output="two")))
    nested, plain = contents_of(history)[2]["parts"]
    assert nested["functionResponse"]["parts"] == [data]
    assert "parts" not in plain["functionResponse"]
    for fields in ({"model": OLD}, {"dropped_fields": frozenset({"functionResponse.parts"})}):
        parts = contents_of(history, **fields)[2]["parts"]
        assert ["functionResponse" in part for part in parts] == [True, True, False, False]
        assert parts[2:] == [{"text": MEDIA_BELOW}, data]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (ImagePart(data=b"\xff\xd8\xff\xe0"), {"inlineData": {"mimeType": "image/jpeg", "data": "/9j/4A=="}}),
        (ImagePart(media_type="image/jpg", data=b"x"), {"inlineData": {"mimeType": "image/jpeg", "data": "eA=="}}),
        (ImagePart(media_type="image/gif", data=b"GIF89a"), "[image, not sent: this model does not take image/gif]"),
        (ImagePart(url="https://x/y.png"), {"fileData": {"fileUri": "https://x/y.png"}}),
        (ImagePart(url="data:image/png;base64,eA=="), {"inlineData": {"mimeType": "image/png", "data": "eA=="}}),
        (ImagePart(), "[empty image]"),
        (AudioPart(media_type="audio/mpeg", data=b"x"), {"inlineData": {"mimeType": "audio/mp3", "data": "eA=="}}),
        (AudioPart(media_type="application/ogg", data=b"x"), "[audio, not sent: this model does not take it]"),
        (FilePart(name="a.pdf", data=b"%PDF"), {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}}),
        (FilePart(name="a", data=b"x"), {"inlineData": {"mimeType": "text/plain", "data": "eA=="}}),
        (FilePart(media_type="video/mp4", data=b"x"), {"inlineData": {"mimeType": "video/mp4", "data": "eA=="}}),
        (FilePart(name="a.zip", media_type="application/zip", data=b"PK"), "[a.zip, not sent: this model does not take files]"),
        (FilePart(name="a"), "[a, empty]"),
    ],
)
def test_media_go_inline_by_address_or_as_note(part: Part, expected: dict[str, Any] | str) -> None:
    sent = contents_of((Message(role="user", parts=(TextPart(text="Look"), part)),))[0]["parts"][1]  # type: ignore[arg-type]
    assert sent == ({"text": expected} if isinstance(expected, str) else expected)


def test_addresses_become_notes_where_unfetched() -> None:
    look = Message(role="user", parts=(ImagePart(url="https://x/y.png"),))
    (part,) = contents_of((look,), dialect=GeminiDialect(file_addresses=False))[0]["parts"]
    assert "https://x/y.png" in part["text"]


# The rest of the body


def test_system_prompt_without_field_is_said_first() -> None:
    for fields in ({"dialect": GeminiDialect(system_instruction=False)}, {"dropped_fields": frozenset({"systemInstruction"})}):
        contents = contents_of((user("Hi"),), **fields)
        assert [part["text"] for content in contents for part in content["parts"]] == ["You are Wolo.", NO_ANSWER, "Hi"]
    own = body_of(GeminiDialect(), (system("Mine."), user("Hi")))
    assert own["systemInstruction"] == {"parts": [{"text": "Mine."}]}


@pytest.mark.parametrize(
    ("model", "dialect", "expected"),
    [
        (NEW, GeminiDialect(), {None: None, "off": "LOW", "minimal": "LOW", "medium": "MEDIUM", "xhigh": "HIGH", "max": "HIGH"}),
        (NEW, GeminiDialect(thinking_levels=("minimal", "high")), {"off": "MINIMAL", "low": "HIGH"}),
        (OLD, GeminiDialect(), {None: None, "off": 0, "minimal": 512, "high": 16_384, "max": 24_576}),
        (OLD, GeminiDialect(thinking_budgets=(128, 32_768)), {"off": 128, "max": 32_768}),
    ],
)
def test_thinking_is_a_level_or_a_budget(model: str, dialect: GeminiDialect, expected: dict[ThinkingLevel | None, Any]) -> None:
    for level, value in expected.items():
        config = body_of(dialect, (user("Hi"),), model=model, thinking=level)["generationConfig"]["thinkingConfig"]
        assert config.get("thinkingLevel", config.get("thinkingBudget")) == value
        assert config.get("includeThoughts", False) is (level != "off")


def test_unthinking_models_are_not_asked_to_think() -> None:
    for model in ("gemini-2.0-flash", "gemma-3-27b-it", "gemini-1.5-pro"):
        assert "generationConfig" not in body_of(GeminiDialect(), (user("Hi"),), model=model, thinking="high")


def test_options_are_said_and_refused_ones_left_out() -> None:
    asked: dict[str, Any] = {
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": float("nan"),
        "stop": tuple("abcdef"),
        "json_schema": {"type": "object"},
    }
    options = body_of(GeminiDialect(), (user("Hi"),), **asked)["generationConfig"]
    assert options == {
        "maxOutputTokens": 9,
        "stopSequences": ["a", "b", "c", "d", "e"],
        "thinkingConfig": {"includeThoughts": True},
        "temperature": 0.5,
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object"},
    }
    dropped = frozenset({"thinkingConfig", "temperature", "stop", "max_tokens", "responseJsonSchema", "toolConfig"})
    body = body_of(GeminiDialect(), (user("Hi"),), **asked, dropped_fields=dropped)
    assert {"generationConfig", "toolConfig"}.isdisjoint(body)
    assert "temperature" not in body_of(GeminiDialect(sampling="fixed"), (user("Hi"),), **asked)["generationConfig"]
    old = body_of(GeminiDialect(), (user("Hi"),), model=OLD, **asked)
    assert "responseJsonSchema" in old["generationConfig"]
    assert "tools" not in old


def test_tools_without_arguments_lack_schema_names_are_legal() -> None:
    names = ["plain", "3d", "-x", "mcp.server/odd", "größe", "", "x" * 80]
    tools = tuple(ToolSpec(name=name, description="", parameters={"type": "object", "properties": {}}) for name in names)
    body = body_of(GeminiDialect(), (user("Hi"),), tools=tools)
    declared = body["tools"][0]["functionDeclarations"]
    assert lint(body) == []
    assert [set(each) for each in declared] == [{"name", "description"}] * len(names)
    assert [own_name(each["name"], own_names(names)) for each in declared] == names
    assert own_name("default_api.plain", own_names(names)) == own_name("default_api:plain", own_names(names)) == "plain"
    assert own_name("default_api.unknown", own_names(names)) == "default_api.unknown"
    assert gemini_name("_3d") != gemini_name("3d")


def test_changed_tools_are_encoded_anew() -> None:
    gemini = Gemini(GeminiDialect())
    first = gemini.encode(request((user("Hi"),), model=NEW, producer=OWN, tools=TOOLS[:1]))
    assert gemini.encode(request((user("Hi"),), model=NEW, producer=OWN, tools=TOOLS)) != first
    assert gemini.encode(request((user("Hi"),), model=NEW, producer=OWN, tools=TOOLS[:1])) == first
