"""Recognize and decode images and sounds: from bytes, base64, data URLs or Pillow images."""

from __future__ import annotations

import base64
import binascii
from io import BytesIO
from typing import Protocol

ADDRESSES = ("http://", "https://")
DATA = "data:"
FILE = "file:"
DEFAULT_IMAGE = "image/png"
DEFAULT_AUDIO = "audio/mpeg"
HEAD_BYTES = 16
SHOWN_CHARACTERS = 40


class Picture(Protocol):
    """Interface of a Pillow image, so that Pillow need not be installed."""

    @property
    def format(self) -> str | None: ...

    def save(self, fp: BytesIO, format: str) -> object: ...


def image_bytes(source: str | bytes | Picture) -> tuple[str, bytes]:
    """Media type and data of a data URL, base64, bytes, or a Pillow image (saved in its own format, else PNG).

    Raises ValueError for other text.
    """
    if not isinstance(source, str | bytes):
        buffer = BytesIO()
        source.save(buffer, source.format or "PNG")
        source = buffer.getvalue()
    stated, data = ("", source) if isinstance(source, bytes) else _decode(source, "an image")
    return image_type(data[:HEAD_BYTES]) or stated or DEFAULT_IMAGE, data


def audio_bytes(source: str | bytes) -> tuple[str, bytes]:
    """Media type and data of bytes, base64 or a data URL. Raises ValueError for other text."""
    stated, data = ("", source) if isinstance(source, bytes) else _decode(source, "a recording")
    return audio_type(data[:HEAD_BYTES]) or stated or DEFAULT_AUDIO, data


def _decode(text: str, what: str) -> tuple[str, bytes]:
    stated = ""
    packed = text
    if text.startswith(DATA):
        head, _, packed = text.partition(",")
        stated = head.removeprefix(DATA).partition(";")[0]
    try:
        return stated, base64.b64decode("".join(packed.split()), validate=True)
    except (binascii.Error, ValueError):
        shown = text[:SHOWN_CHARACTERS]
        raise ValueError(f"This is neither base64 nor the address of {what}: {shown!r}") from None


_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_RECOGNIZED = frozenset(("image/webp", *(kind for _, kind in _IMAGES)))
_SOUNDS = (
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)


def image_type(head: bytes) -> str:
    """Detect the media type of a supported image; empty for anything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for magic, media_type in _IMAGES if head.startswith(magic)), "")


IMAGES_ACCEPTED = "PNG, JPEG, GIF and WebP are accepted."


def named_image_type(name: str) -> str:
    """The media type of a file name such as `scan.tiff`; empty if it names no image."""
    import mimetypes  # noqa: PLC0415  # slow, and rarely needed

    kind = mimetypes.guess_type(name)[0] or ""
    return kind if kind.startswith("image/") else ""


def is_image(media_type: str, data: bytes) -> bool:
    """False for data that is not what its type says. Other types than the four that are recognized are believed."""
    recognized = image_type(data[:HEAD_BYTES])
    is_believed = media_type.startswith("image/") and media_type not in _RECOGNIZED
    return bool(recognized) or (bool(data) and is_believed)


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None if the data does not hold them."""
    if data.startswith(b"\x89PNG") and len(data) >= 24:
        return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    if data[:3] == b"GIF" and len(data) >= 10:
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        if len(data) < 30:
            return None
        if data[12:16] == b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        if data[12:16] == b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    at = 2
    while data.startswith(b"\xff\xd8") and at + 9 <= len(data) and data[at] == 0xFF:  # JPEG: segments up to the frame header
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        at += 1 if marker == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4])
    return None


def audio_type(head: bytes) -> str:
    """Detect the media type of a recording; empty for anything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "audio/wav"
    return next((media_type for magic, media_type in _SOUNDS if head.startswith(magic)), "")
