"""Encode attachments as text, and describe those a model does not support."""

from __future__ import annotations

import base64
import binascii

from wolo.messages.parts import AudioPart, ImagePart, MediaPart
from wolo.messages.unicode import clean

SHOWN_CHARACTERS = 200
MEDIA_BELOW = "Attached by the tool results above:"
"""User text before media that results cannot contain."""
NOT_SENT = "not sent: this "
"""Part of every note about an attachment that is left out; used to detect them."""
NOT_SUPPORTED = f"{NOT_SENT}model does not take"
ONLY_ATTACHMENT = "(an attachment of the assistant, not sent)"
"""Text of an assistant message with only attachments."""


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64_text(data)}"


def read_data_url(url: str) -> tuple[str, bytes]:
    """Media type and content; empty for other URLs and invalid base64."""
    head, _, written = url.partition(",")
    scheme, _, media_type = head.lower().partition(":")
    kind, *more = media_type.split(";")
    if scheme != "data" or "base64" not in more:
        return "", b""
    try:
        return kind, base64.b64decode(written, validate=True)
    except (binascii.Error, ValueError):
        return "", b""


def not_fetched(url: str) -> str:
    """Note for an image URL that the server does not fetch."""
    return f"[image, not sent: this server takes no such address: {clean(url)[:SHOWN_CHARACTERS]}]" if url else "[empty image]"


def not_sent(part: MediaPart) -> str:
    """Note for the model in place of the attachment."""
    match part:
        case ImagePart():
            return f"[image, {NOT_SUPPORTED} images]"
        case AudioPart():
            return f"[audio, {NOT_SUPPORTED} it]"
        case _:
            return f"[{clean(part.name) or 'file'}, {NOT_SUPPORTED} files]"
