"""Answers of servers as text and media."""

from __future__ import annotations

import base64
from pathlib import Path

from tests.fakes.mcp_server import PIXEL
from wolo.mcp.tool_answer import MOST_MEDIA_BYTES, ToolAnswer, read_answer
from wolo.messages.parts import AudioPart, ImagePart

SAVED: dict[str, bytes] = {}


def save(name: str, data: bytes) -> Path:
    SAVED[name] = data
    return Path("kept", name)


def text(answer: ToolAnswer) -> str:
    return answer.text(save)


DATA = base64.b64encode(PIXEL).decode()


def test_texts_are_joined_and_pictures_stand_beside_them() -> None:
    answer = read_answer(
        {
            "content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": DATA, "mimeType": "image/jpeg"},
                {"type": "audio", "data": base64.b64encode(b"RIFF....WAVE").decode(), "mimeType": "audio/wav"},
                {"type": "text", "text": "two"},
            ]
        }
    )
    assert text(answer) == "one\ntwo"
    picture, sound = answer.media
    assert isinstance(picture, ImagePart)
    assert (picture.media_type, picture.data) == ("image/png", PIXEL)  # what it is, not what the server says
    assert isinstance(sound, AudioPart)
    assert not answer.is_error


def test_resources_are_text_where_they_can_be() -> None:
    answer = read_answer(
        {
            "content": [
                {"type": "resource", "resource": {"uri": "a://1", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "a://2", "blob": DATA, "mimeType": "image/png"}},
                {"type": "resource", "resource": {"uri": "a://3", "blob": "AAAA", "mimeType": "application/zip"}},
                {"type": "resource_link", "uri": "a://4", "name": "there"},
                {"type": "hologram"},
            ],
            "isError": True,
        }
    )
    assert text(answer).splitlines() == [
        "[a://1]",
        "inside",
        "[a://3: application/zip: 3 bytes, saved to kept/3.zip]",
        "[a link to a://4 there]",
        "[a part of the kind hologram, which is not understood]",
    ]
    assert SAVED["3.zip"] == b"\0\0\0"
    assert len(answer.media) == 1
    assert answer.is_error


def test_structured_content_counts_where_nothing_else_is_said() -> None:
    assert text(read_answer({"content": [{"type": "text", "text": '{"a": 1}'}], "structuredContent": {"a": 1}})) == '{"a": 1}'
    assert text(read_answer({"structuredContent": {"a": 1}})) == '{\n "a": 1\n}'
    assert text(read_answer({})) == ""


def test_malformed_or_surplus_media_are_reported() -> None:
    huge = "A" * (MOST_MEDIA_BYTES * 2)
    kinds = [{"type": "image", "data": data, "mimeType": "image/png"} for data in ("", "!!!", huge)]
    answer = read_answer({"content": kinds})
    assert answer.media == ()
    assert "of more than 20 MB" in text(answer)


def test_one_bad_item_costs_only_itself() -> None:
    not_a_picture = base64.b64encode(b"<svg></svg>").decode()
    answer = read_answer(
        {
            "content": [
                "no block",
                {"type": "image", "data": "!!!", "mimeType": "image/png"},
                {"type": "resource"},
                {"type": "image", "data": not_a_picture, "mimeType": "image/svg+xml"},
                {"type": "image", "data": DATA, "mimeType": "image/png"},
            ]
        }
    )
    assert text(answer).splitlines() == [
        "[a part that cannot be read]",
        "[image that cannot be read]",
        "[a resource that cannot be read]",
        "[image: image/svg+xml: 11 bytes, saved to kept/image.svg]",
    ]
    assert len(answer.media) == 1
