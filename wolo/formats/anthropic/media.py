"""Images and documents as blocks of the Messages API."""

from __future__ import annotations

from typing import Any

from wolo.formats.anthropic.dialect import AnthropicDialect
from wolo.formats.encoding.media import base64_text, not_fetched, not_sent, read_data_url
from wolo.messages.media_types import image_type
from wolo.messages.parts import AudioPart, FilePart, ImagePart, MediaPart
from wolo.messages.unicode import clean

Block = dict[str, Any]

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
PDF = "application/pdf"
ADDRESSES = ("https://", "http://")
READ_AS_TEXT = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")


def media_block(part: MediaPart, dialect: AnthropicDialect) -> Block | str:
    """A block, or a note that stands for what this server does not take."""
    match part:
        case ImagePart():
            return _image(part, dialect) if dialect.images else not_sent(part)
        case AudioPart():
            return not_sent(part)
        case FilePart():
            return _document(part) if dialect.files else not_sent(part)


def _image(part: ImagePart, dialect: AnthropicDialect) -> Block | str:
    kind, data = (part.media_type, part.data) if part.data else read_data_url(part.url)
    if data:
        kind = image_type(data[:16]) or kind
        if kind not in IMAGE_TYPES:
            return f"[image, not sent: this server does not take {clean(kind) or 'its type'}]"
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": base64_text(data)}}
    url = clean(part.url).strip()
    if url.startswith(ADDRESSES) and dialect.image_urls:
        return {"type": "image", "source": {"type": "url", "url": url}}
    return not_fetched(url)


def _document(part: FilePart) -> Block | str:
    source = _document_source(part)
    if source is None:
        return not_sent(part)
    name = clean(part.name).strip()
    return {"type": "document", "source": source, **({"title": name} if name else {})}


def _document_source(part: FilePart) -> Block | None:
    if part.data.startswith(b"%PDF") or (part.data and part.media_type == PDF):
        return {"type": "base64", "media_type": PDF, "data": base64_text(part.data)}
    if part.media_type.startswith(READ_AS_TEXT):
        text = clean(part.data.decode("utf-8", "replace"))
        return {"type": "text", "media_type": "text/plain", "data": text} if text.strip() else None
    url = clean(part.url).strip()
    return {"type": "url", "url": url} if not part.data and url.startswith(ADDRESSES) else None
