"""Images and documents that a session of another agent holds."""

from __future__ import annotations

import base64

from wolo.messages import media
from wolo.messages.media import audio_type, image_type
from wolo.messages.parts import AudioPart, FilePart, ImagePart, MediaPart, TextPart


def medium(source: str, media_type: str = "", name: str = "") -> MediaPart | TextPart:
    """`source`: an address, a data URL or base64. A note stands for what is none of these: no file is ever opened for it."""
    if source.startswith(media.ADDRESSES):
        return ImagePart(url=source) if not media_type or media_type.startswith("image/") else note(name or source)
    stated, _, packed = source.rpartition(",") if source.startswith("data:") else ("", "", source)
    kind = media_type or stated.removeprefix("data:").partition(";")[0] or "image/png"
    try:
        data = base64.b64decode("".join(packed.split()), validate=True)
    except ValueError:
        data = b""
    if not data:
        return note(name or kind)
    if kind.startswith("audio/"):
        return AudioPart(media_type=audio_type(data[: media.HEAD_BYTES]) or kind, data=data)
    if kind.startswith("image/"):
        return ImagePart(media_type=image_type(data[: media.HEAD_BYTES]) or kind, data=data)
    return FilePart(name=name, media_type=kind, data=data)


def note(name: str) -> TextPart:
    return TextPart(text=f"[{name} was attached here; it did not come along.]")
