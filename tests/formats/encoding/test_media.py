"""Media on the wire: data URLs are read strictly, and what is not sent is told."""

from __future__ import annotations

import pytest

from wolo.formats.encoding.attachments import data_url, not_fetched, not_sent, read_data_url
from wolo.messages.parts import AudioPart, FilePart, ImagePart


def test_data_url_returns_its_content() -> None:
    assert read_data_url(data_url("image/png", b"\x89PNG")) == ("image/png", b"\x89PNG")
    assert read_data_url("DATA:image/PNG;charset=utf-8;base64,aGk=") == ("image/png", b"hi")


@pytest.mark.parametrize(
    "url", ["", "https://h/a.png", "data:image/png,hi", "data:image/png;base64,a?b", "data:image/png;base64,aGk=é", "aGk="]
)
def test_any_other_address_holds_nothing(url: str) -> None:
    assert read_data_url(url) == ("", b"")


def test_unsent_media_are_named_in_their_place() -> None:
    notes = [not_sent(part) for part in (ImagePart(), AudioPart(), FilePart(name="a\0.pdf"), FilePart())]
    assert all("not sent" in note for note in notes)
    assert len(set(notes)) == 4
    assert not_fetched("") == "[empty image]"
    assert len(not_fetched("https://h/" + "x" * 5_000)) < 300
