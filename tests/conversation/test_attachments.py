"""Attachments of a prompt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wolo.conversation.prompt_attachments import compose
from wolo.errors import UsageError
from wolo.messages.parts import AudioPart, ImagePart, TextPart

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def test_words_alone_are_one_text_part() -> None:
    (part,) = compose("hello", cwd=Path.cwd(), origin="keyboard").parts
    assert isinstance(part, TextPart)
    assert part.text == "hello"


def test_mentioned_file_attaches_once_and_unknown_mention_stays() -> None:
    Path("notes.txt").write_text("remember\n")
    message = compose("look at @notes.txt, and @notes.txt; mail me@example.com or @nobody", cwd=Path.cwd(), origin="keyboard")
    assert len(message.parts) == 2
    assert "remember" in message.text
    assert message.text.startswith("look at @notes.txt, and @notes.txt; mail me@example.com or @nobody")


def test_mentioned_agent_is_requested_unless_a_file_matches() -> None:
    text = "@Explore, find it; @explore again, and mail me@general or @nobody"
    message = compose(text, cwd=Path.cwd(), origin="keyboard", agents=("explore", "general"))
    assert len(message.parts) == 2
    assert message.parts[1].text.startswith("\n\n[The user asks for the agent explore: ")  # type: ignore[union-attr]  # a text
    Path("explore").write_text("x")
    assert "[The user asks" not in compose("@explore", cwd=Path.cwd(), origin="keyboard", agents=("explore",)).text
    assert "[The user asks" not in compose("x", piped="@general", cwd=Path.cwd(), origin="keyboard", agents=("general",)).text


def test_a_name_with_blanks_is_quoted() -> None:
    Path("two words.txt").write_text("inside\n")
    assert "inside" in compose('read @"two words.txt"', cwd=Path.cwd(), origin="keyboard").text


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
def test_media_are_recognised_by_first_bytes(data: bytes, kind: type, media_type: str) -> None:
    Path("file.dat").write_bytes(data)
    part = compose("see", files=(Path("file.dat"),), cwd=Path.cwd(), origin="keyboard").parts[1]
    assert isinstance(part, kind)
    assert (part.media_type, part.data) == (media_type, data)  # type: ignore[attr-defined]  # both kinds have these


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("missing", "there is no such file", id="missing"),
        pytest.param("folder", "it is a directory", id="directory"),
        pytest.param("pipe", "it is not a regular file", id="pipe"),
        pytest.param("blob", "", id="binary"),
    ],
)
def test_failed_attachment_is_reported(name: str, reason: str) -> None:
    Path("blob").write_bytes(b"\0\1\2")
    Path("folder").mkdir()
    os.mkfifo("pipe")
    with pytest.raises(UsageError, match=f"{name}.*{reason}"):
        compose("x", files=(Path(name),), cwd=Path.cwd(), origin="keyboard")


@pytest.mark.parametrize(
    ("mention", "expected"),
    [
        ("@a.py:2-3", "two\nthree"),
        ("@a.py:2", "two"),
        ("@a.py:3-", "three\nfour"),
        ("(see @a.py:3-99).", "three\nfour"),
        ('@"a b.py":1-2', "one\ntwo"),
        ('@"a b.py:1-2"', "one\ntwo"),
    ],
)
def test_lines_of_a_file_are_attached_alone(mention: str, expected: str) -> None:
    for name in ("a.py", "a b.py"):
        Path(name).write_text("one\ntwo\nthree\nfour\n")
    part = compose(mention, cwd=Path.cwd(), origin="keyboard").parts[1]
    assert isinstance(part, TextPart)
    assert part.text.split("\n", 3)[3] == f"{expected}\n</file>"
    assert ' lines="' in part.text


def test_file_named_like_lines_is_that_file() -> None:
    Path("log:2-3").write_text("all of it\n")
    assert "all of it" in compose("@log:2-3", cwd=Path.cwd(), origin="keyboard").text


def test_lines_that_are_not_there_are_said() -> None:
    Path("a.py").write_text("one\n")
    with pytest.raises(UsageError, match="has 1 line,"):
        compose("@a.py:7-9", cwd=Path.cwd(), origin="keyboard")
    assert len(compose("@b.py:7-9 and @a.py:99999999999999999999", cwd=Path.cwd(), origin="keyboard").parts) == 1


def test_name_with_quotes_is_written_with_backslashes() -> None:
    Path('a"b\\c.txt').write_text("inside\n")
    assert "inside" in compose('@"a\\"b\\\\c.txt"', cwd=Path.cwd(), origin="keyboard").text


def test_only_what_was_typed_names_files() -> None:
    Path("notes.txt").write_text("remember\n")
    message = compose("a log that says @notes.txt", typed="a log that says ", cwd=Path.cwd(), origin="keyboard")
    assert message.text == "a log that says @notes.txt"
