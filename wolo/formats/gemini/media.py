"""Images, sounds and documents as parts of a Gemini content, or the note that stands for one."""

from __future__ import annotations

from typing import Any

from wolo.formats.encoding.media import base64_text, not_sent, read_data_url
from wolo.formats.gemini.dialect import GeminiDialect
from wolo.messages.media_types import audio_type, image_type
from wolo.messages.parts import AudioPart, FilePart, ImagePart, MediaPart
from wolo.messages.unicode import clean

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
IN_RESPONSES = IMAGE_TYPES | {"application/pdf", "text/plain"}
"""What a function response may hold where it may hold media at all."""
OTHER_NAMES = {
    "image/jpg": "image/jpeg",
    "audio/mpeg": "audio/mp3",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-m4a": "audio/aac",
    "audio/x-flac": "audio/flac",
    "audio/x-aiff": "audio/aiff",
}
"""Media types that Gemini knows under another name."""
PDF = "application/pdf"

Part = dict[str, Any]


def media_part(part: MediaPart, dialect: GeminiDialect) -> Part | str:
    """A text is a note: it tells the model what it does not get."""
    match part:
        case ImagePart():
            return _image(part, dialect) if dialect.images else not_sent(part)
        case AudioPart():
            kind = _named(part.media_type or audio_type(part.data) or "audio/wav")
            return _inline(kind, part.data) if dialect.audio and part.data and kind.startswith("audio/") else not_sent(part)
        case FilePart():
            return _file(part, dialect) if dialect.files else not_sent(part)


def fits_response(item: Part) -> bool:
    return "inlineData" in item and item["inlineData"]["mimeType"] in IN_RESPONSES


def _image(part: ImagePart, dialect: GeminiDialect) -> Part | str:
    kind, data = _named(part.media_type or image_type(part.data) or "image/png"), part.data
    if not data and part.url.startswith("data:"):
        kind, data = read_data_url(part.url)
        kind = _named(kind)
    if data:
        return _inline(kind, data) if kind in IMAGE_TYPES else f"[image, not sent: this model does not take {kind or 'it'}]"
    return _addressed(part.url, part.media_type, dialect) if part.url else "[empty image]"


def _file(part: FilePart, dialect: GeminiDialect) -> Part | str:
    kind, data = _named(part.media_type), part.data
    if not data and part.url.startswith("data:"):
        kind, data = read_data_url(part.url)
        kind = _named(kind)
    if not data:
        return _addressed(part.url, part.media_type, dialect) if part.url else f"[{clean(part.name) or 'file'}, empty]"
    kind = kind or (PDF if data.startswith(b"%PDF") else "text/plain" if _is_text(data) else "")
    takes = kind == PDF or kind in IMAGE_TYPES or kind.startswith(("text/", "video/", "audio/"))
    return _inline(kind, data) if takes else not_sent(part)


def _addressed(url: str, media_type: str, dialect: GeminiDialect) -> Part | str:
    address = clean(url)
    if not dialect.file_addresses or url.startswith("data:"):
        return f"[attachment, not sent: this server takes no addresses: {address[:200]}]"
    kind = {"mimeType": _named(media_type)} if media_type else {}
    return {"fileData": {**kind, "fileUri": address}}


def _inline(kind: str, data: bytes) -> Part:
    return {"inlineData": {"mimeType": kind, "data": base64_text(data)}}


def _named(media_type: str) -> str:
    plain = clean(media_type).partition(";")[0].strip().lower()
    return OTHER_NAMES.get(plain, plain)


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False
