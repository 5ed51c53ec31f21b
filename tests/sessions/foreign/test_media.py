"""Images and documents in sessions of other agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions.foreign.sources import PIXEL, complaints
from wolo.messages.message import Message
from wolo.messages.parts import AudioPart, FilePart, ImagePart, TextPart
from wolo.sessions.exchange.foreign.builder import medium


@pytest.mark.parametrize("source", [PIXEL, f"data:image/png;base64,{PIXEL}", f"data:image/webp;base64,{PIXEL}"])
@pytest.mark.parametrize("media_type", ["", "image/png", "image/jpeg"])
def test_an_image_is_what_its_bytes_say(source: str, media_type: str) -> None:
    part = medium(source, media_type)
    assert isinstance(part, ImagePart)
    assert (part.media_type, len(part.data)) == ("image/png", 70)


def test_an_address_stays_one() -> None:
    part = medium("https://example.com/x.png")
    assert isinstance(part, ImagePart)
    assert part.url == "https://example.com/x.png"


def test_documents_and_sounds_are_kept_as_such() -> None:
    assert isinstance(medium("JVBERi0xLjQK", "application/pdf", "a.pdf"), FilePart)
    assert isinstance(medium("data:audio/wav;base64,UklGRg=="), AudioPart)


@pytest.mark.parametrize("kind", ["", "image/png", "audio/wav", "application/pdf"])
@pytest.mark.parametrize(
    "source", ["file:{}", "file://{}", "{}", "data:audio/wav;base64,file:{}", "", "data:", "!!", "data:image/png;base64,"]
)
def test_file_named_by_a_session_is_not_opened(source: str, kind: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"RIFF----WAVE a secret")
    part = medium(source.format(secret), kind)
    assert isinstance(part, TextPart) or b"secret" not in part.data


@pytest.mark.parametrize("media_type", ["image/svg+xml", "image/bmp", "audio/x-odd", "application/zip", "text/csv"])
def test_unaccepted_kinds_do_not_stop_the_work(media_type: str) -> None:
    part = medium("aGVsbG8=", media_type, "thing")
    assert complaints([Message(role="user", parts=(part,))]) == []
