"""Create image and audio parts from bytes, base64, URLs, files or Pillow images.

The only code in this package that reads files, and only paths it is given.
"""

from __future__ import annotations

import base64
import binascii
from io import BytesIO
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from wolo.messages.parts import AudioPart, ImagePart

ADDRESSES = ("http://", "https://")
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


def image(source: str | bytes | Picture) -> ImagePart:
    """`source`: a URL, data URL, base64, bytes, or a Pillow image (saved in its own format, else PNG).

    URLs are not fetched and have no media type. Raises ValueError for other text.
    """
    if not isinstance(source, str | bytes):
        buffer = BytesIO()
        source.save(buffer, source.format or "PNG")
        source = buffer.getvalue()
    if isinstance(source, bytes):
        return ImagePart(media_type=image_type(source[:HEAD_BYTES]) or DEFAULT_IMAGE, data=source)
    if source.startswith(ADDRESSES):
        return ImagePart(url=source)
    stated, data = _decode(source, "an image")
    return ImagePart(media_type=image_type(data[:HEAD_BYTES]) or stated or DEFAULT_IMAGE, data=data)


def image_file(path: str | Path) -> ImagePart:
    """Raises OSError when the file cannot be read."""
    return replace(image(Path(path).read_bytes()), name=Path(path).name)


def audio(source: str | bytes) -> AudioPart:
    """`source`: bytes, base64, a data URL, or `file:` and a path.

    Raises ValueError for other text, OSError when the file cannot be read.
    """
    if isinstance(source, str) and source.startswith(FILE):
        return audio_file(source.removeprefix(FILE))
    if isinstance(source, bytes):
        return AudioPart(media_type=audio_type(source[:HEAD_BYTES]) or DEFAULT_AUDIO, data=source)
    stated, data = _decode(source, "a recording")
    return AudioPart(media_type=audio_type(data[:HEAD_BYTES]) or stated or DEFAULT_AUDIO, data=data)


def audio_file(path: str | Path) -> AudioPart:
    """Raises OSError when the file cannot be read."""
    return replace(audio(Path(path).read_bytes()), name=Path(path).name)


def to_base64(part: ImagePart | AudioPart) -> tuple[str, str]:
    """Base64 data and media type; for an image URL, the URL and an empty string."""
    if isinstance(part, ImagePart) and part.url and not part.data:
        return part.url, ""
    return base64.b64encode(part.data).decode(), part.media_type


def _decode(text: str, what: str) -> tuple[str, bytes]:
    """Media type stated by a data URL, and the bytes."""
    stated = ""
    packed = text
    if text.startswith("data:"):
        head, _, packed = text.partition(",")
        stated = head.removeprefix("data:").partition(";")[0]
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
