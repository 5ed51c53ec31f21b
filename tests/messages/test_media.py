"""Images and sounds from whatever a caller has."""

from __future__ import annotations

import base64
from io import BytesIO
from pathlib import Path

import pytest

from wolo.messages.media import image_size
from wolo.messages.parts import AudioPart, ImagePart

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
IMAGES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0" + bytes(8),
    "image/gif": b"GIF89a" + bytes(8),
    "image/webp": b"RIFF\x10\0\0\0WEBPVP8 ",
}
SOUNDS = {
    "audio/mpeg": [b"ID3\x04" + bytes(8), b"\xff\xfb" + bytes(8), b"\xff\xf3" + bytes(8), b"\xff\xf2" + bytes(8)],
    "audio/ogg": [b"OggS" + bytes(8)],
    "audio/flac": [b"fLaC" + bytes(8)],
    "audio/wav": [b"RIFF\x10\0\0\0WAVEfmt "],
}


@pytest.mark.parametrize(("media_type", "data"), IMAGES.items())
def test_an_image_is_told_by_its_first_bytes(media_type: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / "picture.bin").write_bytes(data)
    whole = ImagePart(media_type=media_type, data=data)
    packed = base64.b64encode(data).decode()
    for made in (
        ImagePart.of(data),
        ImagePart.of(packed),
        ImagePart.of(f"data:image/x;base64,{packed}"),
        ImagePart.from_file(tmp_path / "picture.bin"),
    ):
        assert (made.media_type, made.data, made.url) == (whole.media_type, whole.data, "")
        assert made.to_base64() == [(packed, media_type)]


@pytest.mark.parametrize(("media_type", "data"), [(kind, each) for kind, several in SOUNDS.items() for each in several])
def test_a_recording_is_told_by_its_first_bytes(media_type: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / "clip").write_bytes(data)
    packed = base64.b64encode(data).decode()
    for made in (
        AudioPart.of(data),
        AudioPart.of(packed),
        AudioPart.of(f"file:{tmp_path / 'clip'}"),
        AudioPart.from_file(tmp_path / "clip"),
    ):
        assert (made.media_type, made.data) == (media_type, data)
        assert made.to_base64() == [(packed, media_type)]


def test_unknown_media_have_the_usual_type() -> None:
    assert ImagePart.of(b"?").media_type == "image/png"
    assert AudioPart.of(b"?").media_type == "audio/mpeg"
    assert ImagePart.of("data:image/tiff;base64,Pz8=").media_type == "image/tiff"


def test_an_address_stays_one() -> None:
    made = ImagePart.of("https://example.com/a.png")
    assert (made.url, made.data) == ("https://example.com/a.png", b"")
    assert made.to_base64() == [("https://example.com/a.png", "")]


def test_pillow_picture_is_written_in_its_format() -> None:
    class Pillow:
        def __init__(self, format: str | None) -> None:
            self.format = format

        def save(self, fp: BytesIO, format: str) -> None:
            fp.write({"JPEG": IMAGES["image/jpeg"], "PNG": PNG}[format])

    assert ImagePart.of(Pillow("JPEG")).media_type == "image/jpeg"
    assert ImagePart.of(Pillow(None)).media_type == "image/png"


@pytest.mark.parametrize("make", [ImagePart.of, AudioPart.of])
def test_text_without_media_is_refused_with_a_sentence(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match="neither base64 nor"):
        make("./not base64!")


def test_base64_in_lines_is_read() -> None:
    packed = base64.encodebytes(PNG * 20).decode()
    assert "\n" in packed.strip()
    assert ImagePart.of(packed).data == PNG * 20
    assert isinstance(AudioPart.of(packed), AudioPart)


SIZED = {
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (640).to_bytes(4) + (480).to_bytes(4) + bytes(5),
    "gif": b"GIF89a" + (640).to_bytes(2, "little") + (480).to_bytes(2, "little"),
    "jpeg": b"\xff\xd8\xff\xe0\0\x04ab\xff\xc4\0\x03x\xff\xff\xc2\0\x11\x08" + (480).to_bytes(2) + (640).to_bytes(2) + bytes(9),
    "webp": b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"),
    "webp, lossless": b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (639 | 479 << 14).to_bytes(4, "little") + bytes(9),
    "webp, lossy": b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + b"\x80\x02\xe0\x01" + bytes(9),
}


@pytest.mark.parametrize("name", SIZED)
def test_image_size_comes_from_its_head(name: str) -> None:
    assert image_size(SIZED[name]) == (640, 480)


@pytest.mark.parametrize("data", [b"", b"\x89PNG", b"GIF8", b"RIFF\0\0\0\0WEBP", b"\xff\xd8" + b"\xff" * 99, b"\xff\xd8\xff\xc0"])
def test_image_with_partial_head_has_no_size(data: bytes) -> None:
    assert image_size(data) is None


@pytest.mark.parametrize(("name", "data"), [("a.txt", b"hello"), ("a.png", b"hello"), ("a.png", b""), ("a", b"hello")])
def test_file_that_is_no_image_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=f"'{name}' is no image. PNG, JPEG, GIF and WebP are accepted."):
        ImagePart.from_file(tmp_path / name)


def test_other_image_has_the_type_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "scan.tiff").write_bytes(b"II*\0")
    assert ImagePart.from_file(tmp_path / "scan.tiff").media_type == "image/tiff"
