"""C3: typed contents and one class for each role. Each test bears the number of the promise it shows."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.formats.test_every_format import Side
from wolo import (
    AgentMessage,
    AssistantMessage,
    AudioPart,
    BaseMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImagePart,
    LLMMessage,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolMessage,
    ToolPart,
    ToolResult,
    Usage,
    UserMessage,
    to_messages,
)

HEADS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\0\0\0\0WEBP",
}
SOUNDS = {
    b"ID3\x03": "audio/mpeg",
    b"\xff\xfb\x90": "audio/mpeg",
    b"\xff\xf3\x90": "audio/mpeg",
    b"\xff\xf2\x90": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
    b"RIFF\0\0\0\0WAVE": "audio/wav",
    b"what?": "audio/mpeg",
}


def called(*ids: str) -> AssistantMessage:
    return AssistantMessage(contents=tuple(ToolPart(tool="read", call_id=id) for id in ids), stop_reason="tool_calls")


def test_c3_01_contents_have_a_type() -> None:
    parts = (TextPart(), ImagePart(), AudioPart(), ThinkingPart(), ToolPart(tool="x"))
    assert [part.type for part in parts] == ["text", "image", "audio", "thinking", "tool"]
    assert ToolResult.__struct_config__.tag == "tool_result"


class Picture:
    """What a Pillow image can do."""

    format = "GIF"

    def save(self, fp: BytesIO, format: str) -> None:
        fp.write(HEADS[f"image/{format.lower()}"])


def test_c3_03_images_of_every_form_become_base64(tmp_path: Path) -> None:
    for kind, head in HEADS.items():
        packed = base64.b64encode(head).decode()
        (tmp_path / "image").write_bytes(head)
        made = UserMessage.with_images("see", [head, packed]).contents[1:]
        for part in (*made, ImagePart.from_file(tmp_path / "image")):
            assert isinstance(part, ImagePart)
            assert part.to_base64() == [(packed, kind)]
    (_, drawn) = UserMessage.with_images("see", [Picture()]).contents
    assert isinstance(drawn, ImagePart)
    assert drawn.to_base64()[0][1] == "image/gif"
    assert ImagePart.from_url("https://x/y.png").to_base64() == [("https://x/y.png", "")]
    with pytest.raises(ValueError, match="begins with http"):
        ImagePart.from_url("y.png")


def test_c3_04_audio_of_every_form_names_its_kind(tmp_path: Path) -> None:
    for head, kind in SOUNDS.items():
        (tmp_path / "sound").write_bytes(head)
        packed = base64.b64encode(head).decode()
        made = UserMessage.with_audio("hear", [head, packed, f"file:{tmp_path}/sound"]).contents[1:]
        for part in (*made, AudioPart.from_file(tmp_path / "sound"), AudioPart.from_base64(packed)):
            assert isinstance(part, AudioPart)
            assert part.to_base64() == [(packed, kind)]
    with pytest.raises(ValueError, match="neither base64"):
        AudioPart.from_base64("file:sound")


def test_c3_08_message_has_role_contents_id_and_time() -> None:
    said = UserMessage.text("hi")
    assert isinstance(said, BaseMessage)
    assert (said.role, len(said.contents), said.id != UserMessage.text("hi").id, said.timestamp > 0) == ("user", 1, True, True)


def test_c3_09_there_are_seven_roles() -> None:
    names = {kind.__struct_config__.tag for kind in get_args(AgentMessage)}
    assert names == {"system", "user", "assistant", "tool", "custom", "branch_summary", "compaction_summary"}


def test_c3_10_factories() -> None:
    assert SystemMessage.text("x").contents[0].text == "x"
    assert [part.type for part in UserMessage.with_images("see", [HEADS["image/png"], "https://x/y.png"]).contents] == [
        *("text", "image", "image"),
    ]
    one, two = ToolResult(id="a"), ToolResult(id="b")
    assert ToolMessage.from_results([one, two]).contents == (one, two)
    assert ToolMessage.from_result(one).contents == (one,)


def test_c3_11_answer_gives_text_calls_and_thoughts() -> None:
    parts = (ThinkingPart(text="hm"), TextPart(text="I "), ToolPart(tool="read"), TextPart(text="read."))
    said = AssistantMessage(contents=parts, usage=Usage(output_tokens=3), stop_reason="tool_calls", error="")
    assert said.text_content() == "I read."
    assert said.tool_calls() == (parts[2],)
    assert said.thinking() == (parts[0],)


def test_c3_12_the_unions() -> None:
    assert get_args(LLMMessage) == (SystemMessage, UserMessage, AssistantMessage, ToolMessage)
    assert set(get_args(AgentMessage)) == {
        *get_args(LLMMessage),
        *(CustomMessage, BranchSummaryMessage, CompactionSummaryMessage),
    }


RESULTS: dict[str, Any] = {
    "openai-chat": lambda body: [each["content"] for each in body["messages"] if each["role"] == "tool"],
    "openai-responses": lambda body: [each["output"] for each in body["input"] if each["type"] == "function_call_output"],
    "anthropic": lambda body: [
        part["content"] for each in body["messages"] for part in each["content"] if part["type"] == "tool_result"
    ],
    "gemini": lambda body: [
        part["functionResponse"]["response"]["output"]
        for each in body["contents"]
        for part in each["parts"]
        if "functionResponse" in part
    ],
    "ollama": lambda body: [each["content"] for each in body["messages"] if each["role"] == "tool"],
}


@pytest.mark.parametrize("name", RESULTS)
def test_c3_16_user_message_results_reach_each_provider(name: str) -> None:
    results = (ToolResult(id="a", content="one"), ToolResult(id="b", content="two"))
    history = to_messages([UserMessage.text("go"), called("a", "b"), UserMessage(contents=results)])
    side = Side(name)
    found = RESULTS[name](json.loads(side.format().encode(side.request(history))))
    assert all(word in json.dumps(each) for word, each in zip(("one", "two"), found, strict=True))


def test_c3_17_user_message_may_carry_audio() -> None:
    said = UserMessage.with_audio("Transcribe this", [b"ID3\x03", base64.b64encode(b"OggS").decode()])
    assert [part.type for part in said.contents] == ["text", "audio", "audio"]
    assert [part.media_type for part in said.contents[1:]] == ["audio/mpeg", "audio/ogg"]  # type: ignore[union-attr]
