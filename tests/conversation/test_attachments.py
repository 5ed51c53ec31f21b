"""What a prompt carries besides its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.conversation.attachments import compose
from wolo.errors import UsageError
from wolo.messages.parts import AudioPart, ImagePart, TextPart

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def test_words_alone_are_one_text_part() -> None:
    (part,) = compose("hello", cwd=Path.cwd()).parts
    assert isinstance(part, TextPart)
    assert part.text == "hello"


def test_a_mentioned_file_is_attached_once_and_a_mention_of_nothing_stays_a_word() -> None:
    Path("notes.txt").write_text("remember\n")
    message = compose("look at @notes.txt, and @notes.txt; mail me@example.com or @nobody", cwd=Path.cwd())
    assert len(message.parts) == 2
    assert "remember" in message.text
    assert message.text.startswith("look at @notes.txt, and @notes.txt; mail me@example.com or @nobody")


def test_a_name_with_blanks_is_quoted() -> None:
    Path("two words.txt").write_text("inside\n")
    assert "inside" in compose('read @"two words.txt"', cwd=Path.cwd()).text


@pytest.mark.parametrize(
    ("data", "kind", "media_type"),
    [
        (PNG, ImagePart, "image/png"),
        (b"\xff\xd8\xff\xe0rest", ImagePart, "image/jpeg"),
        (b"GIF89arest", ImagePart, "image/gif"),
        (b"RIFF\0\0\0\0WEBPrest", ImagePart, "image/webp"),
        (b"ID3rest", AudioPart, "audio/mpeg"),
        (b"\xff\xfbrest", AudioPart, "audio/mpeg"),
        (b"OggSrest", AudioPart, "audio/ogg"),
        (b"fLaCrest", AudioPart, "audio/flac"),
        (b"RIFF\0\0\0\0WAVErest", AudioPart, "audio/wav"),
    ],
)
def test_media_are_told_by_their_first_bytes_whatever_the_name(data: bytes, kind: type, media_type: str) -> None:
    Path("file.dat").write_bytes(data)
    part = compose("see", files=(Path("file.dat"),), cwd=Path.cwd()).parts[1]
    assert isinstance(part, kind)
    assert (part.media_type, part.data) == (media_type, data)  # type: ignore[attr-defined]  # both kinds have these


def test_what_cannot_be_attached_is_said() -> None:
    Path("blob").write_bytes(b"\0\1\2")
    Path("folder").mkdir()
    for name in ("missing", "blob", "folder"):
        with pytest.raises(UsageError, match=name):
            compose("x", files=(Path(name),), cwd=Path.cwd())
