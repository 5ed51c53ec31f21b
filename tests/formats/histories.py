"""Any conversation that may come to a format: generators for property tests."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from wolo.formats.format import Request, ToolSpec
from wolo.messages.message import Message, Producer, Role
from wolo.messages.parts import (
    AnyPart,
    AudioPart,
    Blob,
    FilePart,
    ImagePart,
    Outcome,
    TextPart,
    ThinkingPart,
    ToolPart,
    ToolStatus,
)

OWN = Producer(provider="own", format="openai-chat", model="m-1")
FOREIGN = Producer(provider="other", format="openai-chat", model="m-1")
TOOLS = (
    ToolSpec(
        name="read",
        description="Reads a file.",
        parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    ),
    ToolSpec(name="mcp.server/odd tool", description="", parameters={}),
)
PNG = b"\x89PNG\r\n\x1a\n"

ODD_CHARACTERS = st.sampled_from(["\ud83d", "\ude00", "\0", "😀", "字", "\u2028", "\r", '"', "\\"])
texts = st.one_of(
    st.sampled_from(["", " ", "\n", "plain words", "<think>x</think>", "</tool_call>"]),
    st.text(max_size=20),
    st.lists(ODD_CHARACTERS, max_size=4).map("".join),
)
wire_ids = st.one_of(
    st.just(""),
    st.sampled_from(["call_1", "functions.read:0", "call_-8142", "a|b/c", "run_shell_command:0", "tool.use id", "é"]),
    st.integers(0, 3).map(lambda number: f"call_{'0' * 45}_{number}"),
    st.text(min_size=1, max_size=200),
)
producers = st.sampled_from([OWN, OWN, OWN, FOREIGN, None])
inputs = st.dictionaries(st.text(max_size=5), st.one_of(texts, st.integers(), st.none(), st.lists(texts, max_size=2)), max_size=3)


@st.composite
def tool_parts(draw: st.DrawFn) -> ToolPart:
    status: ToolStatus = draw(st.sampled_from(["pending", "running", "completed", "failed"]))
    outcomes: dict[str, list[Outcome | None]] = {
        "completed": ["ok", None],
        "failed": ["error", "denied_by_person", "denied_by_rule", "interrupted", "never_started", "cut_off", "invalid", None],
    }
    arguments = draw(inputs)
    written = json.dumps(arguments)
    return ToolPart(
        tool=draw(st.sampled_from(["read", "shell", "mcp.server/odd tool", "", "x" * 80, "größe"])),
        input=arguments,
        raw_input=draw(st.sampled_from([written, "", '{"a": ', "[1]", written + "}"])),
        call_id=draw(wire_ids),
        status=status,
        outcome=draw(st.sampled_from(outcomes.get(status, [None]))),
        output=draw(texts),
        output_parts=draw(st.lists(media, max_size=2).map(tuple)),
        blobs=draw(st.sampled_from([(), (Blob("chat.extra_content", '{"google":{"thought_signature":"s"}}'),)])),
    )


media = st.one_of(
    st.builds(
        ImagePart,
        media_type=st.sampled_from(["image/png", ""]),
        data=st.sampled_from([PNG, b""]),
        url=st.sampled_from(["", "https://x/y.png"]),
    ),
    st.builds(AudioPart, media_type=st.just("audio/wav"), data=st.just(b"RIFF")),
    st.builds(FilePart, name=texts, data=st.just(b"%PDF")),
)
thinking_parts = st.builds(
    ThinkingPart,
    text=texts,
    field=st.sampled_from(["reasoning_content", "reasoning", "text", "content", "unheard_of"]),
    blobs=st.sampled_from(
        [
            (),
            (Blob("openrouter.reasoning_details", '[{"type":"reasoning.text","text":"t"}]'),),
            (Blob("anthropic.signature", "sig"),),
        ]
    ),
)
text_parts = st.builds(TextPart, text=texts)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role: Role = draw(
        st.sampled_from(
            ["user", "user", "assistant", "assistant", "assistant", "custom", "compaction_summary", "branch_summary", "system"]
        )
    )
    kinds: list[st.SearchStrategy[AnyPart]] = [text_parts]
    if role == "assistant":
        kinds += [thinking_parts, tool_parts(), tool_parts()]
    if role == "user":
        kinds += [media]
    parts = draw(st.lists(st.one_of(*kinds), max_size=5))
    return Message(
        role=role, parts=parts, producer=draw(producers) if role == "assistant" else None, finished=draw(st.booleans())
    )


histories = st.lists(messages(), max_size=8).map(tuple)


def request(history: tuple[Message, ...] = (), **fields: object) -> Request:
    given = {"model": "m-1", "producer": OWN, "messages": history, "system": "You are Wolo.", "tools": TOOLS}
    return Request(**{**given, **fields})  # type: ignore[arg-type]  # the fields of Request, checked by whoever calls
