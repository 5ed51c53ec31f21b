"""The JSON form of messages: stable, complete, open to what a later wolo adds."""

from __future__ import annotations

import json

from wolo.messages.message import MESSAGES, VERSION, Message, Producer, Usage, UsageCost
from wolo.messages.parts import AudioPart, Blob, FilePart, ImagePart, TextPart, ThinkingPart, ToolPart

EVERYTHING = Message(
    id="msg_1",
    role="assistant",
    parts=[
        ThinkingPart(id="part_1", text="\n1. Look", field="reasoning", blobs=(Blob(kind="anthropic.signature", data="Eqo"),)),
        TextPart(id="part_2", text="Looking. 🙂", phase="commentary", item_id="msg_9"),
        ImagePart(id="part_3", media_type="image/png", data=b"\x89PNG"),
        AudioPart(id="part_4", media_type="audio/ogg", data=b"OggS"),
        FilePart(id="part_5", name="a.pdf", media_type="application/pdf", data=b"%PDF"),
        ToolPart(
            id="call_1",
            tool="read",
            input={"path": "a"},
            raw_input='{"path": "a"}',
            call_id="functions.read:0",
            status="completed",
            outcome="ok",
            output="text",
            output_parts=(ImagePart(id="part_6", url="https://example.org/a.png"),),
            start_time=1.5,
            end_time=2.5,
            terminate=True,
            metadata={"verdict": {"decision": "allow"}},
        ),
    ],
    timestamp=1704067200.0,
    finished=True,
    finish_reason="tool_calls",
    usage=Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cost=UsageCost(total=0.5), estimated=True),
    producer=Producer(provider="zai", format="openai-chat", model="glm-5.2"),
    metadata={"compressed": True},
)


def test_every_field_survives() -> None:
    assert MESSAGES.decode(MESSAGES.encode(EVERYTHING)) == EVERYTHING


def test_stored_form_equals_the_form_on_disks() -> None:
    message = Message(id="m", role="user", parts=[TextPart(id="t", text="hi")], timestamp=1.0, finished=True)
    kept = b'{"id":"m","role":"user","parts":[{"type":"text","id":"t","text":"hi"}],"timestamp":1.0,"finished":true}'
    assert (VERSION, MESSAGES.encode(message)) == (1, kept)


def test_later_fields_are_passed_over() -> None:
    written = json.loads(MESSAGES.encode(EVERYTHING))
    written["mood"] = "good"
    written["parts"][1]["colour"] = "red"
    assert MESSAGES.decode(json.dumps(written).encode()) == EVERYTHING


def test_half_characters_and_odd_values_lose_no_message() -> None:
    message = Message(role="user", parts=[TextPart(text="a\ud83d")], metadata={"where": object})
    assert MESSAGES.decode(MESSAGES.encode(message)).text == "a\ufffd"
