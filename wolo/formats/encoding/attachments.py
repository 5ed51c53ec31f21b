"""Images, sounds and documents: as text on the wire, and the notes that stand for what a model does not take."""

from __future__ import annotations

import base64
import binascii

from wolo.messages.parts import AudioPart, ImagePart, MediaPart
from wolo.messages.unicode import clean

SHOWN_CHARACTERS = 200
MEDIA_BELOW = "Attached by the tool results above:"
"""What the user says in front of what results cannot hold."""
NOT_SUPPORTED = "not sent: this model does not take"
"""Said of an attachment in its place; what was left out can be told by these words."""
ONLY_ATTACHMENT = "(an attachment of the assistant, not sent)"
"""What the assistant said that wrote neither text nor calls."""


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64_text(data)}"


def read_data_url(url: str) -> tuple[str, bytes]:
    """Media type and content; both empty for any other address, and for one that holds no base64."""
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
    """In place of an image that has only an address, where the server does not take it."""
    return f"[image, not sent: this server takes no such address: {clean(url)[:SHOWN_CHARACTERS]}]" if url else "[empty image]"


def not_sent(part: MediaPart) -> str:
    """Told to the model in the part's place."""
    match part:
        case ImagePart():
            return f"[image, {NOT_SUPPORTED} images]"
        case AudioPart():
            return f"[audio, {NOT_SUPPORTED} it]"
        case _:
            return f"[{clean(part.name) or 'file'}, {NOT_SUPPORTED} files]"
